//! The embedded store without HTTP: one request at a time, and sixteen at once.

#![allow(clippy::expect_used, reason = "a benchmark that cannot start has nothing to measure")]

use bytes::Bytes;
use divan::Bencher;
use divan::counter::ItemsCount;
use futures::future::join_all;
use heatsink_dynamo::{Operation, wire};
use heatsink_store::Store;
use heatsink_store::embedded::Embedded;
use serde_json::{Value as Json, json};
use tokio::runtime::Runtime;

const AT_ONCE: usize = 16;

fn item(n: u32) -> Json {
    json!({"pk": {"S": "game_1"}, "sk": {"S": format!("{n:06}")}, "player": {"S": "somebody"}, "score": {"N": "123456"}, "note": {"S": "x".repeat(300)}})
}

/// One kind of request.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Get,
    Put,
    QueryOf19,
}

const KINDS: [Kind; 3] = [Kind::Get, Kind::Put, Kind::QueryOf19];

impl Kind {
    fn request(self) -> (Operation, Bytes) {
        let (operation, body) = match self {
            Kind::Get => (
                Operation::GetItem,
                json!({"TableName": "game", "Key": {"pk": {"S": "game_1"}, "sk": {"S": "005000"}}}),
            ),
            Kind::Put => (Operation::PutItem, json!({"TableName": "game", "Item": item(5_000)})),
            Kind::QueryOf19 => (
                Operation::Query,
                json!({"TableName": "game", "KeyConditionExpression": "pk = :p", "ExpressionAttributeValues": {":p": {"S": "game_1"}}, "Limit": 19, "ScanIndexForward": false}),
            ),
        };
        (operation, Bytes::from(body.to_string()))
    }
}

/// A store whose table holds 10,000 items.
struct Filled {
    runtime: Runtime,
    store: Embedded,
}

impl Filled {
    fn new() -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().expect("a runtime");
        let filled = Filled { runtime, store: Embedded::memory().expect("an engine") };
        let call = |operation, body: Json| {
            filled.runtime.block_on(filled.store.call(operation, body.to_string().into())).expect("an answer")
        };
        call(
            Operation::CreateTable,
            json!({
                "TableName": "game", "BillingMode": "PAY_PER_REQUEST",
                "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}, {"AttributeName": "sk", "AttributeType": "S"}],
                "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
            }),
        );
        for n in 0..10_000 {
            call(Operation::PutItem, json!({"TableName": "game", "Item": item(n)}));
        }
        filled
    }
}

#[divan::bench(args = KINDS)]
fn wire_check(bencher: Bencher<'_, '_>, kind: Kind) {
    let (operation, body) = kind.request();
    bencher.bench_local(|| wire::check(operation, &body));
}

#[divan::bench(args = KINDS)]
fn one_at_a_time(bencher: Bencher<'_, '_>, kind: Kind) {
    let (filled, (operation, body)) = (Filled::new(), kind.request());
    bencher.bench_local(|| filled.runtime.block_on(filled.store.call(operation, body.clone())));
}

#[divan::bench(args = KINDS)]
fn sixteen_at_once(bencher: Bencher<'_, '_>, kind: Kind) {
    let (filled, (operation, body)) = (Filled::new(), kind.request());
    bencher.counter(ItemsCount::new(AT_ONCE)).bench_local(|| {
        filled.runtime.block_on(join_all((0..AT_ONCE).map(|_| filled.store.call(operation, body.clone()))))
    });
}

fn main() {
    divan::main();
}
