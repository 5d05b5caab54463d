//! What is stored reaches the partitions: every way to write, and tables that were there before.

use super::*;

const INDEXES: &str = r#"{
    "BillingMode": "PAY_PER_REQUEST",
    "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}, {"AttributeName": "sk", "AttributeType": "S"},
        {"AttributeName": "team", "AttributeType": "S"}],
    "GlobalSecondaryIndexes": [{"IndexName": "by_team", "KeySchema": [{"AttributeName": "team", "KeyType": "HASH"}],
        "Projection": {"ProjectionType": "KEYS_ONLY"}}],
    "LocalSecondaryIndexes": [{"IndexName": "local", "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"},
        {"AttributeName": "team", "KeyType": "RANGE"}], "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["n"]}}]
}"#;

/// Bytes in all partitions of the table, and of its index.
fn held(bench: &Bench) -> Vec<u64> {
    bench.resources().iter().map(|one| one.partitions.iter().map(|one| one.bytes).sum()).collect()
}

/// What the engine itself says of the table, its global index and its local one.
fn described(bench: &Bench) -> [u64; 3] {
    let told = bench.call(Operation::DescribeTable, json!({ "TableName": "games" })).unwrap();
    let table = &told["Table"];
    let size = |of: &Json, name: &str| of[name].as_u64().unwrap();
    [
        size(table, "TableSizeBytes"),
        size(&table["GlobalSecondaryIndexes"][0], "IndexSizeBytes"),
        size(&table["LocalSecondaryIndexes"][0], "IndexSizeBytes"),
    ]
}

fn full(pk: &str, team: Option<&str>, filler: usize) -> Json {
    let mut item = item(pk, "a");
    item["text"] = json!({ "S": "x".repeat(filler) });
    item["n"] = json!({ "N": "12" });
    if let Some(team) = team {
        item["team"] = json!({ "S": team });
    }
    item
}

/// Puts, updates, deletes, a batch, a transaction; some of them fail.
fn write(bench: &Bench) {
    let call = |operation, request: Json| bench.call(operation, request);
    let put = |item: Json| json!({ "TableName": "games", "Item": item });
    let key = |pk: &str| json!({ "TableName": "games", "Key": item(pk, "a") });
    for nth in 0..20 {
        call(Operation::PutItem, put(full(&format!("p{nth}"), (nth % 3 > 0).then_some("red"), 100 * nth)))
            .unwrap();
    }
    call(Operation::PutItem, put(full("p3", Some("blue"), 7))).unwrap();
    let mut refused = put(full("p4", None, 9_999));
    refused["ConditionExpression"] = json!("attribute_not_exists(pk)");
    call(Operation::PutItem, refused).unwrap_err();
    for (pk, expression) in [
        ("p5", "SET team = :v REMOVE #t"),
        ("p6", "REMOVE team"),
        ("p7", "SET remark = :v"),
        ("new", "SET team = :v, n = :n"),
    ] {
        let mut update = key(pk);
        update["UpdateExpression"] = json!(expression);
        let mut values = json!({ ":v": {"S": "a longer name"} });
        values[":n"] = json!({ "N": "1234567" });
        values.as_object_mut().unwrap().retain(|name, _| expression.contains(name.as_str()));
        if !values.as_object().unwrap().is_empty() {
            update["ExpressionAttributeValues"] = values;
        }
        if expression.contains("#t") {
            update["ExpressionAttributeNames"] = json!({ "#t": "text" });
        }
        call(Operation::UpdateItem, update).unwrap();
    }
    call(Operation::DeleteItem, key("p8")).unwrap();
    call(Operation::DeleteItem, key("never there")).unwrap();
    let batch = json!([
        { "PutRequest": { "Item": full("p9", Some("red"), 3_000) } },
        { "PutRequest": { "Item": full("batched", Some("green"), 30) } },
        { "DeleteRequest": { "Key": item("p10", "a") } },
    ]);
    call(Operation::BatchWriteItem, json!({ "RequestItems": { "games": batch } })).unwrap();
    let update = json!({
        "TableName": "games", "Key": item("p11", "a"), "UpdateExpression": "SET team = :v",
        "ExpressionAttributeValues": {":v": {"S": "blue"}},
    });
    let items = json!([{ "Put": put(full("p12", None, 1)) }, { "Update": update }, { "Delete": key("p13") }]);
    call(Operation::TransactWriteItems, json!({ "TransactItems": items })).unwrap();
    let check = json!({ "TableName": "games", "Key": item("p1", "a"), "ConditionExpression": "attribute_not_exists(pk)" });
    let items = json!([{ "Put": put(full("p14", None, 5_000)) }, { "ConditionCheck": check }]);
    call(Operation::TransactWriteItems, json!({ "TransactItems": items })).unwrap_err();
}

#[test]
fn partitions_hold_what_the_engine_says_is_stored() {
    let bench = Bench::with_table(serde_json::from_str(INDEXES).unwrap());
    write(&bench);
    let [table, global, local] = described(&bench);
    assert!(table > 10_000 && global > 100 && local > 100, "{table} {global} {local}");
    assert_eq!(held(&bench), [table + local, global]);
    assert!(bench.resources()[0].partitions.iter().filter(|one| one.bytes > 0).count() > 1);
}

#[test]
fn a_table_that_was_there_before_is_weighed_at_the_start() {
    let bench = Bench::with_table(serde_json::from_str(INDEXES).unwrap());
    write(&bench);
    // More than one page of a Scan.
    for nth in 0..5 {
        let item = full(&format!("large-{nth}"), Some("red"), 300_000);
        bench.call(Operation::PutItem, json!({ "TableName": "games", "Item": item })).unwrap();
        bench.advance(1_000);
    }
    let before: Vec<u64> = bench.resources()[0].partitions.iter().map(|one| one.bytes).collect();
    let env: Arc<dyn heatsink_env::Env> = Arc::new(bench.env.clone());
    let again = block_on(Partitioned::start(Arc::clone(&bench.inner), env, RAISED)).unwrap();
    let after: Vec<u64> =
        again.snapshot("games").unwrap()[0].partitions.iter().map(|one| one.bytes).collect();
    assert_eq!(after, before);
}
