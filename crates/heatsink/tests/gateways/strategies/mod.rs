//! Strategies through a whole gateway, where the differential test does not look: tables that other
//! code sharded by hand, which buckets a Query opens, two gateways, shards that cannot be read.

mod buckets;
mod externally_assigned;
mod partial;
mod templates;

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures::FutureExt;
use futures::executor::block_on;
use futures::future::BoxFuture;
use heatsink::Gateway;
use heatsink_control::Rules;
use heatsink_dynamo::{Code, Error, Operation};
use heatsink_env::RealEnv;
use heatsink_store::Store;
use heatsink_store::embedded::Embedded;
use heatsink_workers::{Adoption, AdoptionOptions, AdoptionReport, Direction, Unwatched, WorkerError};
use serde_json::{Value as Json, json};

/// A store that notes its calls and refuses those whose body holds a text.
struct Watched {
    inner: Arc<dyn Store>,
    calls: Mutex<Vec<String>>,
    refused: Mutex<Option<&'static str>>,
}

impl Watched {
    fn new() -> Arc<Self> {
        let inner: Arc<dyn Store> = Arc::new(Embedded::memory().unwrap());
        Arc::new(Watched { inner, calls: Mutex::default(), refused: Mutex::default() })
    }

    /// The calls since the last time.
    fn calls(&self) -> Vec<String> {
        std::mem::take(&mut *self.calls.lock().unwrap())
    }
}

impl Store for Watched {
    fn call(&self, operation: Operation, body: Bytes) -> BoxFuture<'_, Result<Bytes, Error>> {
        let text = String::from_utf8_lossy(&body).into_owned();
        if self.refused.lock().unwrap().is_some_and(|refused| text.contains(refused)) {
            return async { Err(Error::new(Code::InternalServerError, "this shard is down")) }.boxed();
        }
        self.calls.lock().unwrap().push(format!("{} {text}", operation.name()));
        self.inner.call(operation, body)
    }
}

fn create(store: &dyn Store, sort: &str) {
    let body = json!({
        "TableName": "Tab", "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [{ "AttributeName": "pk", "AttributeType": "S" }, { "AttributeName": "sk", "AttributeType": sort }],
        "KeySchema": [{ "AttributeName": "pk", "KeyType": "HASH" }, { "AttributeName": "sk", "KeyType": "RANGE" }],
    });
    block_on(store.call(Operation::CreateTable, Bytes::from(body.to_string()))).unwrap();
}

fn rules(fields: &str) -> Rules {
    Rules::read("rules", &format!("[[rule]]\ntable = \"Tab\"\n{fields}")).unwrap()
}

fn gateway(store: &Arc<Watched>, rules: Rules) -> Gateway {
    let store: Arc<dyn Store> = Arc::clone(store) as _;
    block_on(Gateway::builder(store).rules(rules).start()).unwrap()
}

fn call(service: &Gateway, operation: Operation, body: Json) -> Result<Json, Error> {
    let answer = block_on(service.call(operation, Bytes::from(body.to_string())))?;
    Ok(serde_json::from_slice(&answer).unwrap())
}

fn put(service: &Gateway, pk: &str, sk: Json, v: &str) {
    let item = json!({ "pk": { "S": pk }, "sk": sk, "v": { "S": v } });
    call(service, Operation::PutItem, json!({ "TableName": "Tab", "Item": item })).unwrap();
}

fn query(pk: &str, more: Json) -> Json {
    let mut body = json!({
        "TableName": "Tab", "KeyConditionExpression": "pk = :k", "ExpressionAttributeValues": { ":k": { "S": pk } },
    });
    for (name, value) in more.as_object().unwrap() {
        body[name] = value.clone();
    }
    body
}

fn sorts(answer: &Json) -> Vec<String> {
    let items = answer["Items"].as_array().unwrap().iter();
    items.map(|item| item["sk"]["S"].as_str().or(item["sk"]["N"].as_str()).unwrap().to_owned()).collect()
}

fn adopt(store: &Arc<Watched>, rules: &Rules, direction: Direction) -> Result<AdoptionReport, WorkerError> {
    let store: Arc<dyn Store> = Arc::clone(store) as _;
    block_on(async {
        let adoption = Adoption::prepare(store, Arc::new(RealEnv), rules, "Tab", direction).await?;
        adoption.run(AdoptionOptions { concurrency: 2, exclusive: true }, &Unwatched).await
    })
}

fn raw_put(store: &Watched, pk: &str, sk: &str) {
    let body = json!({ "TableName": "Tab", "Item": { "pk": { "S": pk }, "sk": { "S": sk }, "v": { "S": "by hand" } } });
    block_on(store.inner.call(Operation::PutItem, Bytes::from(body.to_string()))).unwrap();
}

fn raw_get(store: &Watched, pk: &str, sk: &str) -> Json {
    let body = json!({ "TableName": "Tab", "Key": { "pk": { "S": pk }, "sk": { "S": sk } } });
    let answer = block_on(store.inner.call(Operation::GetItem, Bytes::from(body.to_string()))).unwrap();
    serde_json::from_slice(&answer).unwrap()
}

/// Before which operation the item goes from where to where.
type Move = (Operation, &'static str, &'static str);

fn create_through(service: &Gateway) {
    let body = json!({
        "TableName": "Tab", "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [{ "AttributeName": "pk", "AttributeType": "S" }, { "AttributeName": "sk", "AttributeType": "S" }],
        "KeySchema": [{ "AttributeName": "pk", "KeyType": "HASH" }, { "AttributeName": "sk", "KeyType": "RANGE" }],
    });
    call(service, Operation::CreateTable, body).unwrap();
}
