//! Global indexes: partitions of their own, which hold up the writes of the table.

use super::*;

fn bench(index: Json) -> Bench {
    let mut by_team = json!({
        "IndexName": "by_team", "KeySchema": [{"AttributeName": "team", "KeyType": "HASH"}],
        "Projection": {"ProjectionType": "ALL"},
    });
    let provisioned = index.get("ProvisionedThroughput").is_some();
    for (name, value) in index.as_object().unwrap() {
        by_team[name] = value.clone();
    }
    let attributes = ["pk", "sk", "team"].map(|name| json!({ "AttributeName": name, "AttributeType": "S" }));
    let mut table = json!({ "AttributeDefinitions": attributes, "GlobalSecondaryIndexes": [by_team] });
    if provisioned {
        table["ProvisionedThroughput"] = throughput(40_000, 40_000);
    } else {
        table["BillingMode"] = json!("PAY_PER_REQUEST");
    }
    Bench::with_table(table)
}

fn put(bench: &Bench, nth: u64, team: Option<&str>) -> Result<Json, Error> {
    let mut item = item(&format!("player-{nth}"), "a");
    if let Some(team) = team {
        item["team"] = json!({ "S": team });
    }
    bench.call(Operation::PutItem, json!({ "TableName": "games", "Item": item }))
}

#[test]
fn a_hot_index_key_throttles_the_tables_writes() {
    let bench = bench(json!({}));
    let accepted = (0..2_500).filter(|nth| put(&bench, *nth, Some("red")).is_ok()).count();
    assert_eq!(accepted, 1_500, "half a second's worth, and a second's queue");
    let error = put(&bench, 3_000, Some("red")).unwrap_err();
    assert_eq!(
        body(&error),
        json!({
            "__type": "com.amazon.coral.availability#ThrottlingException",
            "message": "Throughput exceeds the current capacity for one or more global secondary indexes. DynamoDB is automatically scaling your index so please try again shortly.",
            "throttlingReasons": [{
                "reason": "IndexWriteKeyRangeThroughputExceeded", "resource": format!("{}/index/by_team", arn()),
            }],
        })
    );
    assert!(put(&bench, 3_000, None).is_ok(), "an item without the index's key does not touch it");
}

#[test]
fn an_index_has_its_own_provisioned_capacity() {
    let bench = bench(json!({ "ProvisionedThroughput": throughput(5, 5) }));
    let accepted = (0..10).filter(|nth| put(&bench, *nth, Some("red")).is_ok()).count();
    assert_eq!(accepted, 5);
    let error = body(&put(&bench, 100, Some("blue")).unwrap_err());
    assert_eq!(error["__type"], "com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException");
    assert_eq!(error["ThrottlingReasons"][0]["reason"], "IndexWriteProvisionedThroughputExceeded");
    assert!(error["message"].as_str().unwrap().starts_with(
        "The level of configured provisioned throughput for one or more global secondary indexes of the table was exceeded."
    ));
}

#[test]
fn a_query_on_an_index_pays_there_and_not_in_the_table() {
    let bench = bench(json!({}));
    put(&bench, 1, Some("red")).unwrap();
    let query = json!({
        "TableName": "games", "IndexName": "by_team", "KeyConditionExpression": "team = :t",
        "ExpressionAttributeValues": {":t": {"S": "red"}},
    });
    assert_eq!(bench.call(Operation::Query, query).unwrap()["Count"], 1);
    assert_eq!(
        bench.call(Operation::Scan, json!({ "TableName": "games", "IndexName": "by_team" })).unwrap()["Count"],
        1
    );
    assert_eq!(bench.charged(0), (0.0, 1.0));
    assert_eq!(bench.charged(1), (1.0, 1.0));
}

#[test]
fn an_update_of_an_index_is_charged_to_it_afterwards() {
    let bench = bench(json!({ "ProvisionedThroughput": throughput(5, 5) }));
    for nth in 0..20 {
        let update = json!({
            "TableName": "games", "Key": item("a", &nth.to_string()), "UpdateExpression": "SET team = :t",
            "ExpressionAttributeValues": {":t": {"S": "red"}},
        });
        bench.call(Operation::UpdateItem, update).unwrap();
    }
    let error = put(&bench, 1, Some("red")).unwrap_err();
    assert_eq!(body(&error)["ThrottlingReasons"][0]["reason"], "IndexWriteProvisionedThroughputExceeded");
    bench.advance(2_900);
    assert!(put(&bench, 1, Some("red")).is_err());
    bench.advance(200);
    assert!(put(&bench, 1, Some("red")).is_ok());
}
