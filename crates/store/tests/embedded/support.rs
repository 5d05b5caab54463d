//! What the tests of the embedded store share.

#![allow(clippy::panic, clippy::unwrap_used, reason = "a test helper fails by panicking")]

use heatsink_dynamo::{Error, Operation};
use heatsink_store::Store;
use serde_json::{Value as Json, json};

/// Calls the store, which must answer.
pub async fn call(store: &dyn Store, operation: Operation, body: Json) -> Json {
    let answer = store
        .call(operation, body.to_string().into())
        .await
        .unwrap_or_else(|why| panic!("{operation:?} {body}: {why}"));
    serde_json::from_slice(&answer).unwrap()
}

/// Calls the store, which must refuse.
pub async fn refused(store: &dyn Store, operation: Operation, body: Json) -> Error {
    match store.call(operation, body.to_string().into()).await {
        Ok(answer) => panic!("{operation:?} {body} was answered: {answer:?}"),
        Err(why) => why,
    }
}

/// Makes an on-demand table with string keys `pk` and `sk`.
pub async fn table(store: &dyn Store, name: &str) {
    let body = json!({
        "TableName": name, "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}, {"AttributeName": "sk", "AttributeType": "S"}],
        "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
    });
    call(store, Operation::CreateTable, body).await;
}

/// An item of that table.
pub fn item(partition: &str, n: u32) -> Json {
    json!({"pk": {"S": partition}, "sk": {"S": format!("{n:04}")}, "score": {"N": n.to_string()}})
}

/// A folder of its own, gone when dropped.
pub fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}
