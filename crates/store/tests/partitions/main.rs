//! The partition layer before the embedded engine, on a clock that the tests own.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking, its helper functions included"
)]

mod batches;
mod capacity;
mod full;
mod indexes;
mod partiql;
mod quotas;
mod single;
mod sizes;
mod tables;
mod trace;
mod transactions;
mod warm;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::executor::block_on;
use heatsink_dynamo::{Error, Operation};
use heatsink_env::ManualEnv;
use heatsink_physics::{Quotas, ResourceSnapshot};
use heatsink_store::Store;
use heatsink_store::embedded::Embedded;
use heatsink_store::partitioned::Partitioned;
use serde_json::{Value as Json, json};

const TABLE_ON_DEMAND: &str = "Throughput exceeds the current capacity of your table or index. DynamoDB is automatically scaling your table or index so please try again shortly. If exceptions persist, check if you have a hot key: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/bp-partition-key-design.html";
const TABLE_PROVISIONED: &str = "The level of configured provisioned throughput for the table was exceeded. Consider increasing your provisioning level with the UpdateTable API.";

/// Enough for the large tables of these tests.
const RAISED: Quotas = Quotas { table: 100_000, account: 200_000, decreases: 4, switches: 4, tables: 2_500 };

struct Bench {
    env: ManualEnv,
    store: Partitioned<Arc<Embedded>>,
    inner: Arc<Embedded>,
}

impl Bench {
    /// Under quotas that do not get in the way.
    fn new() -> Self {
        Bench::under(RAISED)
    }

    fn under(quotas: Quotas) -> Self {
        let env = ManualEnv::seeded(1);
        let inner = Arc::new(Embedded::memory().unwrap());
        let store = block_on(Partitioned::start(Arc::clone(&inner), Arc::new(env.clone()), quotas)).unwrap();
        Bench { env, store, inner }
    }

    /// With one table `games`: keys `pk` and `sk`, and what `more` adds to `CreateTable`.
    fn with_table(more: Json) -> Self {
        let bench = Bench::new();
        bench.create("games", more);
        bench
    }

    fn on_demand() -> Self {
        Bench::with_table(json!({ "BillingMode": "PAY_PER_REQUEST" }))
    }

    fn provisioned(read: u64, write: u64) -> Self {
        Bench::with_table(json!({ "ProvisionedThroughput": throughput(read, write) }))
    }

    fn create(&self, name: &str, more: Json) {
        let mut request = json!({
            "TableName": name,
            "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
            "AttributeDefinitions": [
                {"AttributeName": "pk", "AttributeType": "S"}, {"AttributeName": "sk", "AttributeType": "S"}
            ],
        });
        for (name, value) in more.as_object().unwrap() {
            request[name] = value.clone();
        }
        self.call(Operation::CreateTable, request).unwrap();
    }

    fn call(&self, operation: Operation, request: Json) -> Result<Json, Error> {
        let answer = block_on(self.store.call(operation, Bytes::from(request.to_string())))?;
        Ok(serde_json::from_slice(&answer).unwrap())
    }

    fn put(&self, pk: &str, sk: &str) -> Result<Json, Error> {
        self.call(Operation::PutItem, json!({ "TableName": "games", "Item": item(pk, sk) }))
    }

    /// Puts until the key's partition refuses; how often it did not.
    fn exhaust(&self, pk: &str) -> u64 {
        (0..10_000).take_while(|nth| self.put(pk, &nth.to_string()).is_ok()).count() as u64
    }

    fn advance(&self, milliseconds: u64) {
        self.env.advance(Duration::from_millis(milliseconds));
    }

    fn resources(&self) -> Vec<ResourceSnapshot> {
        self.store.snapshot("games").unwrap()
    }

    /// Read and write units charged to all partitions of the table (0) or of its nth index.
    fn charged(&self, resource: usize) -> (f64, f64) {
        let partitions = &self.resources()[resource].partitions;
        (partitions.iter().map(|one| one.reads).sum(), partitions.iter().map(|one| one.writes).sum())
    }
}

fn item(pk: &str, sk: &str) -> Json {
    json!({ "pk": {"S": pk}, "sk": {"S": sk} })
}

fn throughput(read: u64, write: u64) -> Json {
    json!({ "ReadCapacityUnits": read, "WriteCapacityUnits": write })
}

fn body(error: &Error) -> Json {
    serde_json::from_slice(&error.body()).unwrap()
}

fn arn() -> &'static str {
    "arn:aws:dynamodb:us-east-1:000000000000:table/games"
}
