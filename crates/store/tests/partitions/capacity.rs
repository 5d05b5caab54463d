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
    let mut turn = 0;
    for (operation, request) in requests {
        for ask in [None, Some("NONE"), Some("TOTAL"), Some("INDEXES")] {
            let mut request = request.clone();
            if let Some(ask) = ask {
                request["ReturnConsumedCapacity"] = json!(ask);
            }
            // The engine counts a write of an index whose entry stays as it is, so none does.
            turn += 1;
            let told = bench.call(operation, numbered(&request, turn)).unwrap();
            turn += 1;
            let asked = Bytes::from(numbered(&request, turn).to_string());
            let engine = block_on(bench.inner.call(operation, asked)).unwrap();
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

/// A request whose puts have a number.
fn numbered(request: &Json, number: u32) -> Json {
    match request {
        // What a put replaced would differ, too.
        Json::Object(members) if !members.contains_key("ReturnValues") => {
            let members = members.iter().map(|(name, value)| {
                let mut value = numbered(value, number);
                if name == "Item" {
                    value["n"] = json!({ "N": number.to_string() });
                }
                (name.clone(), value)
            });
            members.collect::<serde_json::Map<_, _>>().into()
        }
        Json::Array(all) => all.iter().map(|one| numbered(one, number)).collect(),
        other => other.clone(),
    }
}

/// The engine lists the tables of a batch in random order.
fn sorted(mut answer: Json) -> Json {
    if let Some(list) = answer.get_mut("ConsumedCapacity").and_then(Json::as_array_mut) {
        list.sort_by_key(Json::to_string);
    }
    answer
}
