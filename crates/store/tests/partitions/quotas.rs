//! The account's quotas, as the control plane refuses what goes over them.

use heatsink_physics::Quotas;

use super::*;

fn update(bench: &Bench, change: Json) -> Result<Json, Error> {
    let mut request = change;
    request["TableName"] = json!("games");
    bench.call(Operation::UpdateTable, request)
}

fn refused(done: Result<Json, Error>) -> String {
    let error = body(&done.unwrap_err());
    assert_eq!(error["__type"], "com.amazonaws.dynamodb.v20120810#LimitExceededException");
    error["message"].as_str().unwrap().to_owned()
}

fn aws() -> Bench {
    let bench = Bench::under(Quotas::default());
    bench.create("games", json!({ "ProvisionedThroughput": throughput(1_000, 1_000) }));
    bench
}

#[test]
fn decreases_are_counted_by_the_day() {
    let bench = aws();
    let set = |units| update(&bench, json!({ "ProvisionedThroughput": throughput(units, units) }));
    for nth in 1..5 {
        set(1_000 - nth).unwrap();
    }
    let message = refused(set(990));
    assert!(message.starts_with(
        "Subscriber limit exceeded: Provisioned throughput decreases are limited within a given UTC day."
    ));
    assert_eq!(bench.resources()[0].writes, 996, "nothing changed");
    set(2_000).unwrap();
    bench.advance(3_600_000);
    set(990).unwrap();
    refused(set(980));
    bench.advance(24 * 3_600_000);
    set(980).unwrap();
}

#[test]
fn switches_to_on_demand_are_counted_over_24_hours() {
    let bench = aws();
    let there = || update(&bench, json!({ "BillingMode": "PAY_PER_REQUEST" }));
    let back = || {
        let back = json!({ "BillingMode": "PROVISIONED", "ProvisionedThroughput": throughput(1_000, 1_000) });
        update(&bench, back).unwrap();
    };
    for _ in 0..4 {
        there().unwrap();
        back();
    }
    assert!(refused(there()).contains("PayPerRequest"));
    bench.advance(24 * 3_600_000);
    there().unwrap();
}

#[test]
fn no_table_and_no_account_is_provisioned_beyond_its_quota() {
    let bench = aws();
    let create = |name: &str, units: u64| {
        let request = json!({
            "TableName": name, "ProvisionedThroughput": throughput(units, units),
            "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
            "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
        });
        bench.call(Operation::CreateTable, request)
    };
    assert!(refused(create("large", 40_001)).contains("per table"));
    create("first", 40_000).unwrap();
    assert!(refused(create("second", 39_001)).contains("per account"));
    create("second", 39_000).unwrap();
    assert!(
        refused(update(&bench, json!({ "ProvisionedThroughput": throughput(1_001, 1) })))
            .contains("per account")
    );
    bench.call(Operation::DeleteTable, json!({ "TableName": "second" })).unwrap();
    update(&bench, json!({ "ProvisionedThroughput": throughput(1_001, 1) })).unwrap();
}
