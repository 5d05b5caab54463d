//! Warm throughput: asked for, told, never lowered, and followed by partitions.

use super::*;

fn warm(read: u64, write: u64) -> Json {
    json!({ "ReadUnitsPerSecond": read, "WriteUnitsPerSecond": write, "Status": "ACTIVE" })
}

fn asked(read: u64, write: u64) -> Json {
    json!({ "ReadUnitsPerSecond": read, "WriteUnitsPerSecond": write })
}

fn described(bench: &Bench) -> Json {
    bench.call(Operation::DescribeTable, json!({ "TableName": "games" })).unwrap()["Table"].take()
}

fn update(bench: &Bench, more: Json) -> Result<Json, Error> {
    let mut request = json!({ "TableName": "games" });
    for (name, value) in more.as_object().unwrap() {
        request[name] = value.clone();
    }
    Ok(bench.call(Operation::UpdateTable, request)?["TableDescription"].take())
}

fn index(more: Json) -> Json {
    let mut index = json!({
        "IndexName": "by_team", "KeySchema": [{"AttributeName": "team", "KeyType": "HASH"}],
        "Projection": {"ProjectionType": "ALL"},
    });
    for (name, value) in more.as_object().unwrap() {
        index[name] = value.clone();
    }
    let attributes = ["pk", "sk", "team"].map(|name| json!({ "AttributeName": name, "AttributeType": "S" }));
    json!({ "BillingMode": "PAY_PER_REQUEST", "AttributeDefinitions": attributes, "GlobalSecondaryIndexes": [index] })
}

#[test]
fn a_new_table_is_as_warm_as_its_capacity() {
    assert_eq!(described(&Bench::on_demand())["WarmThroughput"], warm(12_000, 4_000));
    assert_eq!(described(&Bench::provisioned(10, 5))["WarmThroughput"], warm(10, 5));
    let bench = Bench::with_table(index(json!({})));
    assert_eq!(described(&bench)["GlobalSecondaryIndexes"][0]["WarmThroughput"], warm(12_000, 4_000));
}

#[test]
fn a_table_is_made_as_warm_as_asked_for() {
    let bench = Bench::with_table(json!({
        "BillingMode": "PAY_PER_REQUEST", "WarmThroughput": asked(30_000, 20_000),
    }));
    assert_eq!(described(&bench)["WarmThroughput"], warm(30_000, 20_000));
    assert_eq!(bench.resources()[0].partitions.len(), 20);
    let bench = Bench::with_table(index(json!({ "WarmThroughput": { "WriteUnitsPerSecond": 8_000 } })));
    assert_eq!(described(&bench)["GlobalSecondaryIndexes"][0]["WarmThroughput"], warm(12_000, 8_000));
    assert_eq!(bench.resources()[1].partitions.len(), 8);
    assert_eq!(bench.resources()[0].partitions.len(), 4);
}

#[test]
fn it_is_raised_alone_or_with_other_changes() {
    let bench = Bench::provisioned(10, 5);
    let told = update(&bench, json!({ "WarmThroughput": asked(10, 6_000) })).unwrap();
    assert_eq!((&told["WarmThroughput"], &told["TableStatus"]), (&warm(10, 6_000), &json!("ACTIVE")));
    assert_eq!(bench.resources()[0].partitions.len(), 6);
    assert_eq!(told["ProvisionedThroughput"]["WriteCapacityUnits"], 5, "the capacity stays as it was");
    let both = json!({ "ProvisionedThroughput": throughput(20, 20), "WarmThroughput": { "ReadUnitsPerSecond": 30_000 } });
    update(&bench, both).unwrap();
    assert_eq!(described(&bench)["WarmThroughput"], warm(30_000, 6_000));
    update(&bench, json!({ "BillingMode": "PAY_PER_REQUEST" })).unwrap();
    assert_eq!(described(&bench)["WarmThroughput"], warm(30_000, 6_000));
}

#[test]
fn that_of_an_index_is_raised_without_the_tables() {
    let bench = Bench::with_table(index(json!({})));
    let of_index = |units: Json| json!({ "GlobalSecondaryIndexUpdates": [{ "Update": { "IndexName": "by_team", "WarmThroughput": units } }] });
    update(&bench, of_index(asked(12_000, 8_000))).unwrap();
    let told = described(&bench);
    assert_eq!(told["GlobalSecondaryIndexes"][0]["WarmThroughput"], warm(12_000, 8_000));
    assert_eq!(told["WarmThroughput"], warm(12_000, 4_000));
    assert_eq!(bench.resources()[1].partitions.len(), 8);
    let refused = |units: Json| body(&update(&bench, of_index(units)).unwrap_err())["message"].take();
    assert_eq!(
        refused(asked(12_000, 7_999)),
        "One or more parameter values were invalid: Requested WriteUnitsPerSecond for WarmThroughput for index by_team is lower than current WarmThroughput, decreasing WarmThroughput is not supported"
    );
    assert_eq!(
        refused(json!({})),
        "One or more parameter values were invalid: WarmThroughput must have at least one of ReadUnitsPerSecond or WriteUnitsPerSecond specified for index: by_team"
    );
    let unknown = json!({ "GlobalSecondaryIndexUpdates": [{ "Update": { "IndexName": "ghost", "WarmThroughput": asked(12_000, 4_001) } }] });
    assert_eq!(update(&bench, unknown).unwrap_err().code.name(), "ResourceNotFoundException");
}

#[test]
fn less_is_refused_and_changes_nothing() {
    let bench = Bench::on_demand();
    let message = |error: Error| body(&error)["message"].as_str().unwrap().to_owned();
    let less = update(&bench, json!({ "WarmThroughput": { "ReadUnitsPerSecond": 6_000 } })).unwrap_err();
    assert_eq!(
        message(less),
        "One or more parameter values were invalid: Requested ReadUnitsPerSecond for WarmThroughput for table is lower than current WarmThroughput, decreasing WarmThroughput is not supported"
    );
    let more = update(&bench, json!({ "WarmThroughput": asked(12_000, 100_001) })).unwrap_err();
    assert_eq!(more.code.name(), "LimitExceededException");
    assert_eq!(described(&bench)["WarmThroughput"], warm(12_000, 4_000));
    let made = |more: Json| {
        let mut request = json!({
            "TableName": "others", "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
            "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
        });
        for (name, value) in more.as_object().unwrap() {
            request[name] = value.clone();
        }
        message(bench.call(Operation::CreateTable, request).unwrap_err())
    };
    let on_demand = made(json!({ "BillingMode": "PAY_PER_REQUEST", "WarmThroughput": asked(1, 1) }));
    assert!(on_demand.contains("ReadUnitsPerSecond for WarmThroughput for table is lower than initial throughput for OnDemand. See: https"));
    let provisioned =
        made(json!({ "ProvisionedThroughput": throughput(10, 10), "WarmThroughput": asked(10, 5) }));
    assert!(
        provisioned.ends_with("WriteUnitsPerSecond for WarmThroughput for table is lower than WriteCapacityUnits of ProvisionedThroughput")
    );
    assert!(bench.store.snapshot("others").is_none());
    let missing = json!({ "TableName": "others", "WarmThroughput": asked(12_000, 5_000) });
    assert_eq!(
        bench.call(Operation::UpdateTable, missing).unwrap_err().code.name(),
        "ResourceNotFoundException"
    );
}
