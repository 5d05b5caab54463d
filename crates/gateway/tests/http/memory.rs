//! Memory that the work on requests takes: large Queries of sharded keys together, beside ordinary
//! requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use heatsink_control::Rules;
use heatsink_dynamo::{Error, Operation};
use heatsink_gateway::{Cost, Limits, http};
use heatsink_store::Store;
use heatsink_store::embedded::Embedded;
use tokio::sync::Semaphore;

use crate::client::{Client, post};
use crate::server::{limits, start};

const MB: usize = 1 << 20;
const LARGE: usize = 64 * 1024;
/// How long the filter's value is.
const VALUE: usize = 256 * 1024;
/// How many shards the first round of a Query asks while nothing is known of the items' size.
const ROUND: usize = 32;

/// Holds large Queries back before another store, and counts their bytes.
struct Gate {
    store: Embedded,
    open: Semaphore,
    held: AtomicUsize,
    most: AtomicUsize,
    calls: AtomicUsize,
}

impl Store for Gate {
    fn call(&self, operation: Operation, body: Bytes) -> BoxFuture<'_, Result<Bytes, Error>> {
        if operation != Operation::Query || body.len() < LARGE {
            return self.store.call(operation, body);
        }
        async move {
            self.calls.fetch_add(1, Ordering::SeqCst);
            let held = self.held.fetch_add(body.len(), Ordering::SeqCst) + body.len();
            self.most.fetch_max(held, Ordering::SeqCst);
            let _open = self.open.acquire().await.unwrap();
            self.held.fetch_sub(body.len(), Ordering::SeqCst);
            Ok(Bytes::from_static(br#"{"Items":[],"Count":0,"ScannedCount":0}"#))
        }
        .boxed()
    }
}

/// A server whose keys have 64 shards, and its store.
async fn gate(limits: Limits) -> (std::net::SocketAddr, Arc<Gate>) {
    let store = Arc::new(Gate {
        store: Embedded::memory().unwrap(),
        open: Semaphore::new(0),
        held: AtomicUsize::new(0),
        most: AtomicUsize::new(0),
        calls: AtomicUsize::new(0),
    });
    let rules = "[[rule]]\ntable = \"*\"\nstrategy = \"calculated\"\nshards = 64\n";
    let rules = Rules::read("rules", rules).unwrap();
    let (address, stop, _done) = start(store.clone(), rules, limits, http::Hosts::loopback()).await;
    // It serves until the test ends.
    std::mem::forget(stop);
    let create = br#"{"TableName":"abc","BillingMode":"PAY_PER_REQUEST",
        "KeySchema":[{"AttributeName":"pk","KeyType":"HASH"},{"AttributeName":"sk","KeyType":"RANGE"}],
        "AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"S"},{"AttributeName":"sk","AttributeType":"S"}]}"#;
    assert_eq!(Client::to(address).await.send(&post("CreateTable", create)).await.status, 200);
    (address, store)
}

fn patient() -> Limits {
    let long = Duration::from_secs(60);
    Limits { body: 4 * MB, body_read: long, head_read: long, request: long, ..limits() }
}

/// A Query whose filter has a long value, which goes to every shard.
fn query() -> Vec<u8> {
    let body = format!(
        r#"{{"TableName":"abc","KeyConditionExpression":"pk = :p","FilterExpression":"v < :v",
            "ExpressionAttributeValues":{{":p":{{"S":"a"}},":v":{{"S":"{}"}}}}}}"#,
        "x".repeat(VALUE)
    );
    post("Query", body.as_bytes())
}

/// Waits until a round of a Query has reached the store.
async fn round(store: &Gate) {
    for _ in 0..6000 {
        if store.calls.load(Ordering::SeqCst) >= ROUND {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("no round of calls within a minute");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_work_on_all_requests_holds_is_bounded() {
    let limits = Limits { memory: 32 * MB, memory_wait: Duration::from_secs(60), ..patient() };
    let (address, store) = gate(limits).await;
    let query = query();
    let mut clients = Vec::new();
    for _ in 0..8 {
        let mut client = Client::to(address).await;
        client.write(&query).await;
        clients.push(client);
    }
    round(&store).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    // The store is busy with all that there is room for; ordinary requests go on.
    let get = post("GetItem", br#"{"TableName":"abc","Key":{"pk":{"S":"a"},"sk":{"S":"b"}}}"#);
    assert_eq!(Client::to(address).await.send(&get).await.status, 200);
    assert!(store.held.load(Ordering::SeqCst) > 0, "large ones are under way meanwhile");
    store.open.add_permits(1000);
    for mut client in clients {
        assert_eq!(client.read().await.status, 200);
    }
    assert_eq!(store.calls.load(Ordering::SeqCst), 8 * 64);
    let most = store.most.load(Ordering::SeqCst);
    assert!(most <= 24 * MB, "{} MB of calls at once, of 8 requests with 8 MB a round", most / MB);
}

#[tokio::test(flavor = "multi_thread")]
async fn work_that_finds_no_room_in_time_is_throttled() {
    let limits = Limits { memory: 32 * MB, memory_wait: Duration::from_millis(300), ..patient() };
    let (address, store) = gate(limits).await;
    let mut first = Client::to(address).await;
    first.write(&query()).await;
    round(&store).await;
    let refused = Client::to(address).await.send(&query()).await;
    assert_eq!((refused.status, refused.error().as_str()), (400, "ThrottlingException"));
    store.open.add_permits(1000);
    assert_eq!(first.read().await.status, 200);
    assert_eq!(Client::to(address).await.send(&query()).await.status, 200, "what was held is given back");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_whose_calls_would_hold_too_much_is_refused_before_the_first() {
    let cost = Cost { bytes: 15 * MB, ..Cost::default() };
    let (address, store) = gate(Limits { cost, ..patient() }).await;
    let refused = Client::to(address).await.send(&query()).await;
    assert_eq!((refused.status, refused.error().as_str()), (400, "ValidationException"));
    assert!(refused.text().contains("more than 15 MB"), "{}", refused.text());
    assert_eq!(store.calls.load(Ordering::SeqCst), 0);
}
