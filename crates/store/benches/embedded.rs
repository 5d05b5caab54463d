//! The embedded store without HTTP: one request at a time, and sixteen at once.

#![allow(clippy::expect_used, reason = "a benchmark that cannot start has nothing to measure")]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use futures::future::join_all;
use heatsink_dynamo::{Operation, wire};
use heatsink_store::Store;
use heatsink_store::embedded::Embedded;
use serde_json::{Value as Json, json};

const AT_ONCE: u64 = 16;

fn item(n: u32) -> Json {
    json!({"pk": {"S": "game_1"}, "sk": {"S": format!("{n:06}")}, "player": {"S": "somebody"}, "score": {"N": "123456"}, "note": {"S": "x".repeat(300)}})
}

fn embedded(c: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().expect("a runtime");
    let store = Embedded::memory().expect("an engine");
    let call = |operation, body: Json| {
        runtime.block_on(store.call(operation, body.to_string().into())).expect("an answer")
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
    let requests = [
        (
            "get",
            Operation::GetItem,
            json!({"TableName": "game", "Key": {"pk": {"S": "game_1"}, "sk": {"S": "005000"}}}),
        ),
        ("put", Operation::PutItem, json!({"TableName": "game", "Item": item(5_000)})),
        (
            "query of 19",
            Operation::Query,
            json!({"TableName": "game", "KeyConditionExpression": "pk = :p", "ExpressionAttributeValues": {":p": {"S": "game_1"}}, "Limit": 19, "ScanIndexForward": false}),
        ),
    ];
    for (name, operation, body) in requests {
        let body = bytes::Bytes::from(body.to_string());
        let mut group = c.benchmark_group(name);
        group.bench_function("wire check", |b| b.iter(|| wire::check(operation, &body)));
        group.bench_function("one at a time", |b| {
            b.iter(|| runtime.block_on(store.call(operation, body.clone())))
        });
        group.throughput(Throughput::Elements(AT_ONCE));
        group.bench_function("16 at once", |b| {
            b.iter(|| runtime.block_on(join_all((0..AT_ONCE).map(|_| store.call(operation, body.clone())))));
        });
        group.finish();
    }
}

criterion_group!(benches, embedded);
criterion_main!(benches);
