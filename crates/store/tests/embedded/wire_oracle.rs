//! The wire checks against the engine: what the checks let through, the engine can read.
//!
//! Valid requests of every kind get one node replaced by another JSON value. Whatever happens, the
//! answer must be one that DynamoDB could give: no text of the engine's own JSON reader, and never
//! an internal error.

use heatsink_dynamo::{Code, Operation};
use heatsink_store::Store;
use heatsink_store::embedded::Embedded;
use proptest::prelude::*;
use serde_json::{Value as Json, json};

use crate::embedded::support;

fn requests() -> Vec<(Operation, Json)> {
    let key = json!({"pk": {"S": "a"}, "sk": {"S": "0001"}});
    let item = json!({"pk": {"S": "a"}, "sk": {"S": "0001"}, "l": {"L": [{"N": "1"}, {"M": {"b": {"BOOL": true}}}]}, "s": {"SS": ["x"]}, "n": {"NULL": true}});
    let values = json!({":v": {"S": "a"}});
    vec![
        (
            Operation::PutItem,
            json!({"TableName": "game", "Item": item, "ConditionExpression": "#p <> :v", "ExpressionAttributeNames": {"#p": "q"}, "ExpressionAttributeValues": values, "ReturnValues": "ALL_OLD", "ReturnConsumedCapacity": "TOTAL"}),
        ),
        (
            Operation::PutItem,
            json!({"TableName": "game", "Item": item, "Expected": {"x": {"Exists": false}, "y": {"ComparisonOperator": "NE", "AttributeValueList": [{"N": "1"}]}}}),
        ),
        (
            Operation::GetItem,
            json!({"TableName": "game", "Key": key, "ConsistentRead": true, "ProjectionExpression": "#p", "ExpressionAttributeNames": {"#p": "pk"}}),
        ),
        (Operation::GetItem, json!({"TableName": "game", "Key": key, "AttributesToGet": ["pk", "sk"]})),
        (
            Operation::DeleteItem,
            json!({"TableName": "game", "Key": key, "ReturnItemCollectionMetrics": "SIZE"}),
        ),
        (
            Operation::UpdateItem,
            json!({"TableName": "game", "Key": key, "UpdateExpression": "SET a = :v", "ExpressionAttributeValues": values, "ReturnValues": "ALL_NEW"}),
        ),
        (
            Operation::UpdateItem,
            json!({"TableName": "game", "Key": key, "AttributeUpdates": {"c": {"Value": {"N": "1"}, "Action": "ADD"}}}),
        ),
        (
            Operation::Query,
            json!({"TableName": "game", "KeyConditionExpression": "pk = :v", "ExpressionAttributeValues": values, "Limit": 2, "ScanIndexForward": false, "Select": "COUNT", "ExclusiveStartKey": key}),
        ),
        (
            Operation::Query,
            json!({"TableName": "game", "KeyConditions": {"pk": {"ComparisonOperator": "EQ", "AttributeValueList": [{"S": "a"}]}}, "ConsistentRead": false}),
        ),
        (
            Operation::Scan,
            json!({"TableName": "game", "Segment": 0, "TotalSegments": 2, "FilterExpression": "sk <> :v", "ExpressionAttributeValues": values}),
        ),
        (Operation::BatchGetItem, json!({"RequestItems": {"game": {"Keys": [key], "ConsistentRead": true}}})),
        (
            Operation::BatchWriteItem,
            json!({"RequestItems": {"game": [{"PutRequest": {"Item": item}}, {"DeleteRequest": {"Key": {"pk": {"S": "b"}, "sk": {"S": "b"}}}}]}}),
        ),
        (Operation::TransactGetItems, json!({"TransactItems": [{"Get": {"TableName": "game", "Key": key}}]})),
        (
            Operation::TransactWriteItems,
            json!({"TransactItems": [{"Put": {"TableName": "game", "Item": item}}, {"ConditionCheck": {"TableName": "game", "Key": {"pk": {"S": "b"}, "sk": {"S": "b"}}, "ConditionExpression": "attribute_not_exists(pk)"}}]}),
        ),
        (
            Operation::ExecuteStatement,
            json!({"Statement": "SELECT * FROM game WHERE pk = ?", "Parameters": [{"S": "a"}], "Limit": 3}),
        ),
        (Operation::ListTables, json!({"Limit": 3})),
        (Operation::DescribeTable, json!({"TableName": "game"})),
    ]
}

/// Every node of a body but the body itself.
fn nodes(body: &Json, path: &str, found: &mut Vec<String>) {
    let mut visit = |step: &str, inner: &Json| {
        let path = format!("{path}/{step}");
        nodes(inner, &path, found);
        found.push(path);
    };
    match body {
        Json::Object(members) => members.iter().for_each(|(name, inner)| visit(name, inner)),
        Json::Array(elements) => {
            elements.iter().enumerate().for_each(|(at, inner)| visit(&at.to_string(), inner))
        }
        _ => {}
    }
}

fn replacement() -> impl Strategy<Value = Json> {
    prop_oneof![
        Just(json!(null)),
        Just(json!(true)),
        Just(json!(1)),
        Just(json!(-1.5)),
        Just(json!("")),
        Just(json!("x")),
        Just(json!([])),
        Just(json!({})),
        Just(json!([1])),
        Just(json!([null])),
        Just(json!(["x"])),
        Just(json!([[]])),
        Just(json!([{}])),
        Just(json!({"a": 1})),
        Just(json!({"a": {}})),
        Just(json!({"a": null})),
        Just(json!({"S": "x"})),
        Just(json!({"S": "x", "N": "1"})),
    ]
}

#[test]
fn what_the_checks_let_through_the_engine_can_read() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let store = Embedded::memory().unwrap();
    runtime.block_on(support::table(&store, "game"));
    for (operation, body) in requests() {
        runtime.block_on(support::call(&store, operation, body));
    }
    proptest!(ProptestConfig::with_cases(3_000), |(request in proptest::sample::select(requests()), at in any::<proptest::sample::Index>(), with in replacement())| {
        let (operation, mut body) = request;
        let mut paths = Vec::new();
        nodes(&body, "", &mut paths);
        let path: &String = at.get(&paths);
        *body.pointer_mut(path).unwrap() = with;
        if let Err(error) = runtime.block_on(store.call(operation, body.to_string().into())) {
            let message = error.message.clone().unwrap_or_default();
            prop_assert!(error.status == 400 && error.code != Code::InternalServerError, "{operation:?} {body}: {error}");
            for leak in ["invalid type", "missing field", "unknown variant", "at line", "expected a", "expected s", "AttributeValue object"] {
                prop_assert!(!message.contains(leak), "{operation:?} {body}: {message}");
            }
        }
    });
    // It still answers.
    for (operation, body) in requests() {
        runtime.block_on(support::call(&store, operation, body));
    }
}
