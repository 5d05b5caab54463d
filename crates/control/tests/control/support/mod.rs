//! Stores and tables for the tests of this crate.
#![allow(dead_code, reason = "each test file uses a part")]

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use heatsink_control::Rules;
use heatsink_dynamo::{Error, Operation, Outcome};
use heatsink_store::Store;
use heatsink_store::embedded::Embedded;
use serde_json::{Value as Json, json};

/// A store that counts its calls and dies at one of them.
pub struct Mortal {
    pub inner: Arc<dyn Store>,
    /// Calls it still answers.
    pub left: AtomicI64,
    /// Whether the call at which it dies is still carried out, its answer lost.
    pub acts: bool,
    pub calls: AtomicU64,
}

impl Mortal {
    pub fn new(inner: Arc<dyn Store>, left: i64, acts: bool) -> Arc<Self> {
        Arc::new(Mortal { inner, left: AtomicI64::new(left), acts, calls: AtomicU64::new(0) })
    }

    pub fn immortal(inner: Arc<dyn Store>) -> Arc<Self> {
        Mortal::new(inner, i64::MAX, false)
    }
}

impl Store for Mortal {
    fn call(&self, operation: Operation, body: Bytes) -> BoxFuture<'_, Result<Bytes, Error>> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        let left = self.left.fetch_sub(1, Ordering::SeqCst);
        if left > 0 {
            return self.inner.call(operation, body);
        }
        async move {
            if left == 0 && self.acts {
                let _ = self.inner.call(operation, body).await;
            }
            Err(Error::unavailable("dead", Outcome::Unknown))
        }
        .boxed()
    }
}

pub fn memory() -> Arc<dyn Store> {
    Arc::new(Embedded::memory().unwrap())
}

pub async fn call(store: &dyn Store, operation: Operation, body: Json) -> Json {
    let answer = store.call(operation, Bytes::from(body.to_string())).await;
    serde_json::from_slice(&answer.unwrap_or_else(|error| panic!("{operation:?}: {error}"))).unwrap()
}

/// A table with a string or binary partition key `pk`, a string sort key `sk`, one local and one
/// global index.
pub fn table(name: &str, partition: &str) -> Json {
    json!({
        "TableName": name, "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [
            { "AttributeName": "pk", "AttributeType": partition },
            { "AttributeName": "sk", "AttributeType": "S" },
            { "AttributeName": "at", "AttributeType": "N" },
        ],
        "KeySchema": [{ "AttributeName": "pk", "KeyType": "HASH" }, { "AttributeName": "sk", "KeyType": "RANGE" }],
        "LocalSecondaryIndexes": [{
            "IndexName": "local", "Projection": { "ProjectionType": "ALL" },
            "KeySchema": [{ "AttributeName": "pk", "KeyType": "HASH" }, { "AttributeName": "at", "KeyType": "RANGE" }],
        }],
        "GlobalSecondaryIndexes": [{
            "IndexName": "global", "Projection": { "ProjectionType": "KEYS_ONLY" },
            "KeySchema": [{ "AttributeName": "at", "KeyType": "HASH" }, { "AttributeName": "sk", "KeyType": "RANGE" }],
        }],
    })
}

pub fn calculated(table: &str, keys: &str, shards: u16) -> Rules {
    let text = format!(
        "[[rule]]\ntable = \"{table}\"\nkeys = \"{keys}\"\nstrategy = \"calculated\"\nshards = {shards}\n"
    );
    Rules::read("heatsink.toml", &text).unwrap()
}

/// Every item of a table, as sorted text.
pub async fn items(store: &dyn Store, table: &str) -> Vec<String> {
    let page = call(store, Operation::Scan, json!({ "TableName": table, "ConsistentRead": true })).await;
    assert!(page.get("LastEvaluatedKey").is_none(), "the tests' tables fit one page");
    let mut items: Vec<String> = page["Items"].as_array().unwrap().iter().map(ToString::to_string).collect();
    items.sort();
    items
}
