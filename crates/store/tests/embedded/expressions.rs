//! Expressions that the engine would carry out and DynamoDB refuses, in its words; of several
//! mistakes the engine's come first.

#![allow(clippy::panic, clippy::unwrap_used, reason = "a test helper fails by panicking")]

use heatsink_dynamo::{Code, Error, Operation};
use heatsink_store::Store;
use heatsink_store::embedded::Embedded;
use serde_json::{Value as Json, json};

use crate::embedded::support::{call, item, refused, table};

const UNDEFINED: &str =
    "An expression attribute value used in expression is not defined; attribute value: :u";

fn query(filter: &str) -> Json {
    json!({"TableName": "game", "KeyConditionExpression": "pk = :p", "FilterExpression": filter,
        "ExpressionAttributeValues": {":p": {"S": "nobody"}}})
}

fn with(mut body: Json, values: Json) -> Json {
    let known = body["ExpressionAttributeValues"].as_object_mut();
    known.unwrap().extend(values.as_object().unwrap().clone());
    body
}

async fn store() -> Embedded {
    let store = Embedded::memory().unwrap();
    table(&store, "game").await;
    call(&store, Operation::PutItem, json!({"TableName": "game", "Item": item("a", 1)})).await;
    store
}

/// The words as of DynamoDB Local 1.11.478, on which each was tried.
#[tokio::test]
async fn what_no_item_decides_is_refused_whatever_items_there_are() {
    let store = store().await;
    let key = json!({"pk": {"S": "a"}, "sk": {"S": "0001"}});
    let get = |paths: &str| json!({"TableName": "game", "Key": key, "ProjectionExpression": paths});
    let put = |condition: &str| json!({"TableName": "game", "Item": key, "ConditionExpression": condition});
    let wrong = |of: &str, kind: &str| {
        format!(
            "Incorrect operand type for operator or function; operator or function: {of}, operand type: {kind}"
        )
    };
    let same = |of: &str| {
        format!(
            "The first operand must be distinct from the remaining operands for this operator or function; operator: {of}, first operand: [a]"
        )
    };
    let index = "List index is not within the allowable range; index: [99999999999]";
    let bool = json!({":b": {"BOOL": true}});
    let action = json!({"Delete": {"TableName": "game", "Key": key, "ConditionExpression": "attribute_exists(pk) OR a = :u"}});
    for (operation, body, message) in [
        (Operation::Query, query("i = :u"), UNDEFINED.to_owned()),
        (Operation::Scan, json!({"TableName": "game", "FilterExpression": "a = b AND a = :u"}), UNDEFINED.to_owned()),
        (Operation::PutItem, put("attribute_exists(pk) OR a = :u"), UNDEFINED.to_owned()),
        (Operation::TransactWriteItems, json!({"TransactItems": [action]}), UNDEFINED.to_owned()),
        (
            Operation::Query,
            with(query("attribute_type(a, :b)"), json!({":b": {"S": "QQ"}})),
            "Invalid attribute type name found; type: QQ, valid types: {B,NULL,SS,BOOL,L,BS,N,NS,S,M}".to_owned(),
        ),
        (Operation::Query, with(query("attribute_type(a, :b)"), json!({":b": {"N": "1"}})), wrong("attribute_type", "N")),
        (Operation::Query, with(query("begins_with(:b, a)"), json!({":b": {"N": "1"}})), wrong("begins_with", "N")),
        (Operation::Query, with(query("a < :b"), bool.clone()), wrong("<", "BOOL")),
        (Operation::Query, with(query("a BETWEEN :b AND :b"), bool.clone()), wrong("BETWEEN", "BOOL")),
        (Operation::Query, with(query("a BETWEEN :b AND :b"), json!({":b": {"L": []}})), wrong("BETWEEN", "L")),
        (Operation::Query, query("a = a"), same("=")),
        (Operation::Query, query("a IN (b, a)"), same("IN")),
        (Operation::Query, query("a BETWEEN b AND a"), same("BETWEEN")),
        (Operation::Query, query("a[99999999999] = b"), index.to_owned()),
        (Operation::GetItem, get("a[99999999999]"), index.to_owned()),
        (
            Operation::GetItem,
            get("a[0], a.b"),
            "Two document paths conflict with each other; must remove or rewrite one of these paths; path one: [a, [0]], path two: [a, b]".to_owned(),
        ),
    ] {
        let error = refused(&store, operation, body.clone()).await;
        let found = error.message.unwrap_or_default();
        // As the operations on one item say it.
        let found = found.strip_prefix("1 validation error detected: ").unwrap_or(&found);
        assert_eq!(error.code, Code::ValidationException, "{body}: {found}");
        assert!(found.starts_with("Invalid ") && found.ends_with(&format!("Expression: {message}")), "{body}: {found}");
    }
    let written = call(&store, Operation::GetItem, json!({"TableName": "game", "Key": key})).await;
    assert_eq!(written["Item"]["score"]["N"], "1", "nothing was written");
    for fine in ["NOT NOT a = b", "size(a) = size(a)"] {
        call(&store, Operation::Query, query(fine)).await;
    }
}

#[tokio::test]
async fn no_key_of_a_query_is_empty_and_no_list_of_attributes() {
    let store = store().await;
    let empty = "One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty string value. Key: ";
    let expressed = |condition: &str, p: &str| json!({"TableName": "game", "KeyConditionExpression": condition, "ExpressionAttributeValues": {":p": {"S": p}, ":s": {"S": ""}}});
    let legacy =
        |value: &str| json!({"pk": {"ComparisonOperator": "EQ", "AttributeValueList": [{"S": value}]}});
    let mut partition = expressed("pk = :p", "");
    partition["ExpressionAttributeValues"].as_object_mut().unwrap().remove(":s");
    for (body, key) in [
        (partition, "pk"),
        (expressed("pk = :p AND sk > :s", "a"), "sk"),
        (json!({"TableName": "game", "KeyConditions": legacy("")}), "pk"),
    ] {
        let error = refused(&store, Operation::Query, body).await;
        assert_eq!(error.message, Some(format!("{empty}{key}")));
    }
    let none = "1 validation error detected: Value '[]' at 'attributesToGet' failed to satisfy constraint: Member must have length greater than or equal to 1";
    for (operation, body) in [
        (Operation::Query, json!({"TableName": "game", "KeyConditions": legacy("a"), "AttributesToGet": []})),
        (Operation::Scan, json!({"TableName": "game", "AttributesToGet": []})),
    ] {
        assert_eq!(refused(&store, operation, body).await.message.as_deref(), Some(none));
    }
}

/// The mistakes that the engine finds before it looks for the table are DynamoDB's first ones.
#[tokio::test]
async fn of_several_mistakes_the_first_is_told() {
    let store = store().await;
    let told = async |operation, body: Json| -> Error { refused(&store, operation, body).await };
    let mut mixed = query("i = :u");
    mixed["QueryFilter"] = json!({"a": {"ComparisonOperator": "NULL"}});
    assert!(told(Operation::Query, mixed).await.message.unwrap().starts_with("Can not use both expression"));
    let mut absent = query("i = :u");
    absent["TableName"] = json!("absent");
    assert_eq!(
        told(Operation::Query, absent).await.message,
        Some(format!("Invalid FilterExpression: {UNDEFINED}"))
    );
    let mut empty = query("a = a");
    empty["ExpressionAttributeValues"] = json!({});
    assert!(told(Operation::Query, empty).await.message.unwrap().contains("must not be empty"));
    let tables = store.call(Operation::ListTables, "{}".into()).await.unwrap();
    assert_eq!(tables, r#"{"TableNames":["game"]}"#);
}
