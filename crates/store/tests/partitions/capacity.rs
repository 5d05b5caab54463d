//! What a client is told of capacity is what it would be told without partitions.

use super::*;

/// Every metered operation, each way of asking: the answer is the engine's own.
#[test]
fn clients_are_told_what_the_engine_tells() {
    let index = json!({
        "BillingMode": "PAY_PER_REQUEST",
        "GlobalSecondaryIndexes": [{
            "IndexName": "by_sk", "KeySchema": [{"AttributeName": "sk", "KeyType": "HASH"}], "Projection": {"ProjectionType": "ALL"},
        }],
    });
    let bench = Bench::with_table(index);
    bench.create("plain", json!({ "BillingMode": "PAY_PER_REQUEST" }));
    let key = |sk: &str| json!({ "TableName": "games", "Key": item("a", sk) });
    let query = json!({ "TableName": "games", "KeyConditionExpression": "pk = :k", "ExpressionAttributeValues": {":k": {"S": "a"}} });
    let by_index = json!({
        "TableName": "games", "IndexName": "by_sk", "KeyConditionExpression": "sk = :k", "ExpressionAttributeValues": {":k": {"S": "a"}},
    });
    let put = json!({ "PutRequest": { "Item": item("a", "a") } });
    let requests = [
        (Operation::PutItem, json!({ "TableName": "games", "Item": item("a", "a") })),
        (
            Operation::PutItem,
            json!({ "TableName": "plain", "Item": item("a", "a"), "ReturnValues": "ALL_OLD" }),
        ),
        (Operation::GetItem, key("a")),
        (Operation::Query, query),
        (Operation::Query, by_index),
        (Operation::Scan, json!({ "TableName": "games" })),
        (Operation::BatchWriteItem, json!({ "RequestItems": { "games": [put], "plain": [put] } })),
        (Operation::BatchGetItem, json!({ "RequestItems": { "games": { "Keys": [item("a", "a")] } } })),
        (Operation::TransactGetItems, json!({ "TransactItems": [{ "Get": key("a") }] })),
        (
            Operation::TransactWriteItems,
            json!({ "TransactItems": [{ "Put": { "TableName": "games", "Item": item("a", "a") } }] }),
        ),
        (Operation::DeleteItem, key("none")),
    ];
    bench.put("a", "a").unwrap();
    bench.call(Operation::PutItem, json!({ "TableName": "plain", "Item": item("a", "a") })).unwrap();
    for (operation, request) in requests {
        for ask in [None, Some("NONE"), Some("TOTAL"), Some("INDEXES")] {
            let mut request = request.clone();
            if let Some(ask) = ask {
                request["ReturnConsumedCapacity"] = json!(ask);
            }
            let told = bench.call(operation, request.clone()).unwrap();
            let engine = block_on(bench.inner.call(operation, Bytes::from(request.to_string()))).unwrap();
            let engine: Json = serde_json::from_slice(&engine).unwrap();
            assert_eq!(sorted(told.clone()), sorted(engine), "{operation:?} {ask:?}");
            let asked = matches!(ask, Some("TOTAL" | "INDEXES"));
            assert_eq!(told.get("ConsumedCapacity").is_some(), asked, "{operation:?} {ask:?}");
        }
        let mut wrong = request.clone();
        wrong["ReturnConsumedCapacity"] = json!("SOME");
        assert_eq!(bench.call(operation, wrong).unwrap_err().code.name(), "ValidationException");
    }
}

/// The engine lists the tables of a batch in random order.
fn sorted(mut answer: Json) -> Json {
    if let Some(list) = answer.get_mut("ConsumedCapacity").and_then(Json::as_array_mut) {
        list.sort_by_key(Json::to_string);
    }
    answer
}
