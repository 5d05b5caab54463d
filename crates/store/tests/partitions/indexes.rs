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

fn join(bench: &Bench, player: &str, team: &str) -> Result<Json, Error> {
    let update = json!({
        "TableName": "games", "Key": item(player, "a"), "UpdateExpression": "SET team = :t",
        "ExpressionAttributeValues": {":t": {"S": team}},
    });
    bench.call(Operation::UpdateItem, update)
}

/// Write units by partition of the index.
fn entries(bench: &Bench) -> Vec<f64> {
    bench.resources()[1].partitions.iter().map(|one| one.writes).collect()
}

/// Two teams whose entries lie on two partitions.
fn teams(bench: &Bench) -> [String; 2] {
    let hot = |bench: &Bench, before: &[f64]| {
        entries(bench).iter().zip(before).position(|(now, before)| now > before).unwrap()
    };
    let mut found: Vec<(usize, String)> = Vec::new();
    for nth in 0.. {
        let (before, team) = (entries(bench), format!("team-{nth}"));
        join(bench, &format!("scout-{nth}"), &team).unwrap();
        let place = hot(bench, &before);
        if found.iter().all(|(known, _)| *known != place) {
            found.push((place, team));
        }
        if let [(_, one), (_, other)] = &found[..] {
            return [one.clone(), other.clone()];
        }
    }
    unreachable!()
}

#[test]
fn updates_and_deletes_pay_where_the_entry_was_and_where_it_goes() {
    let bench = bench(json!({}));
    let [red, blue] = teams(&bench);
    let paid = |act: &dyn Fn()| {
        let before = entries(&bench);
        act();
        let mut paid: Vec<f64> = entries(&bench)
            .iter()
            .zip(before)
            .map(|(now, before)| now - before)
            .filter(|paid| *paid > 0.0)
            .collect();
        paid.sort_by(f64::total_cmp);
        paid
    };
    assert_eq!(paid(&|| drop(join(&bench, "x", &red).unwrap())), [1.0], "the entry appears");
    assert_eq!(paid(&|| drop(join(&bench, "x", &red).unwrap())), [0.0; 0], "nothing changes");
    assert_eq!(
        paid(&|| drop(join(&bench, "x", &blue).unwrap())),
        [1.0, 1.0],
        "it goes here, and comes there"
    );
    let key = json!({ "TableName": "games", "Key": item("x", "a") });
    assert_eq!(
        paid(&|| drop(bench.call(Operation::DeleteItem, key.clone()).unwrap())),
        [1.0],
        "it disappears"
    );
    assert_eq!(
        paid(&|| drop(bench.call(Operation::DeleteItem, key.clone()).unwrap())),
        [0.0; 0],
        "it is not there"
    );
    // A put of the item as it is, and one that changes what the index does not hold.
    let again =
        json!({ "TableName": "games", "Item": { "pk": {"S": "z"}, "sk": {"S": "a"}, "team": {"S": red} } });
    let put_again = || drop(bench.call(Operation::PutItem, again.clone()).unwrap());
    assert_eq!(paid(&put_again), [1.0], "the entry appears");
    assert_eq!(paid(&put_again), [0.0; 0], "the same item again");
    // The same in a batch and in a transaction.
    let put = |team: &str| {
        let mut item = item("y", "a");
        item["team"] = json!({ "S": team });
        item
    };
    let batch = json!({ "RequestItems": { "games": [{ "PutRequest": { "Item": put(&red) } }] } });
    assert_eq!(paid(&|| drop(bench.call(Operation::BatchWriteItem, batch.clone()).unwrap())), [1.0]);
    let transaction = json!({ "TransactItems": [{ "Put": { "TableName": "games", "Item": put(&blue) } }] });
    let both = paid(&|| drop(bench.call(Operation::TransactWriteItems, transaction.clone()).unwrap()));
    assert!(both.len() == 2 && both[0] == both[1], "{both:?}");
}

#[test]
fn a_hot_index_key_throttles_updates_and_deletes_too() {
    let bench = bench(json!({}));
    let [red, blue] = teams(&bench);
    let accepted = (0..2_500).filter(|nth| join(&bench, &format!("player-{nth}"), &red).is_ok()).count();
    assert!((1_400..=1_500).contains(&accepted), "{accepted}: half a second's worth, and a second's queue");
    let error = body(&join(&bench, "late", &red).unwrap_err());
    assert_eq!(error["throttlingReasons"][0]["reason"], "IndexWriteKeyRangeThroughputExceeded");
    let key = json!({ "TableName": "games", "Key": item("player-0", "a") });
    let error = body(&bench.call(Operation::DeleteItem, key).unwrap_err());
    assert_eq!(error["throttlingReasons"][0]["reason"], "IndexWriteKeyRangeThroughputExceeded");
    assert!(join(&bench, "late", &blue).is_ok(), "another team's entries lie elsewhere");
    assert!(join(&bench, "player-1", &blue).is_err(), "to leave the hot one is a write to it");
    let untouched = json!({
        "TableName": "games", "Key": item("player-1", "a"), "UpdateExpression": "SET team = :t",
        "ExpressionAttributeValues": {":t": {"S": red}},
    });
    assert!(bench.call(Operation::UpdateItem, untouched).is_ok(), "a write that leaves the entry as it is");
}

#[test]
fn an_update_pays_from_its_indexs_own_capacity() {
    let bench = bench(json!({ "ProvisionedThroughput": throughput(5, 5) }));
    let accepted = (0..20).filter(|nth| join(&bench, &nth.to_string(), "red").is_ok()).count();
    assert_eq!(accepted, 5);
    let error = body(&join(&bench, "late", "red").unwrap_err());
    assert_eq!(error["ThrottlingReasons"][0]["reason"], "IndexWriteProvisionedThroughputExceeded");
    bench.advance(300);
    assert!(join(&bench, "late", "red").is_ok());
}

#[test]
fn a_put_that_changes_no_entry_is_told_to_cost_the_table_alone() {
    let bench = bench(json!({}));
    let mut put =
        json!({ "TableName": "games", "Item": item("x", "a"), "ReturnConsumedCapacity": "INDEXES" });
    put["Item"]["team"] = json!({ "S": "red" });
    let cost = || bench.call(Operation::PutItem, put.clone()).unwrap()["ConsumedCapacity"].take();
    let first = cost();
    assert_eq!(
        (&first["CapacityUnits"], &first["GlobalSecondaryIndexes"]["by_team"]["CapacityUnits"]),
        (&json!(2.0), &json!(1.0))
    );
    let again = cost();
    assert_eq!((&again["CapacityUnits"], &again["Table"]["CapacityUnits"]), (&json!(1.0), &json!(1.0)));
    assert!(again.get("GlobalSecondaryIndexes").is_none(), "{again}");
    assert_eq!(bench.charged(1), (0.0, 1.0));
}
