//! Clients that hang up: reads that nobody waits for end, everything else goes on to its end.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use heatsink_control::Rules;
use heatsink_dynamo::{Error, Operation};
use heatsink_gateway::{Limits, http};
use heatsink_store::Store;
use heatsink_store::embedded::Embedded;

use crate::client::{Client, post};
use crate::server::{limits, server, start, until};

/// Counts the Query calls of the client's table under way before another store, which they never
/// reach. Those of the registry do.
struct Holding {
    store: Embedded,
    begun: AtomicUsize,
    ended: AtomicUsize,
}

/// How a request names the client's table.
const TABLE: &[u8] = br#""abc""#;

struct Ended<'a>(&'a AtomicUsize);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Store for Holding {
    fn call(&self, operation: Operation, body: Bytes) -> BoxFuture<'_, Result<Bytes, Error>> {
        if operation != Operation::Query || !body.windows(TABLE.len()).any(|at| at == TABLE) {
            return self.store.call(operation, body);
        }
        self.begun.fetch_add(1, Ordering::SeqCst);
        async move {
            let _ended = Ended(&self.ended);
            std::future::pending().await
        }
        .boxed()
    }
}

#[tokio::test]
async fn every_shard_of_a_query_that_nobody_waits_for_is_let_go() {
    let (begun, ended) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let store = Arc::new(Holding { store: Embedded::memory().unwrap(), begun, ended });
    let rules = "[[rule]]\ntable = \"*\"\nstrategy = \"calculated\"\nshards = 8\n";
    let rules = Rules::read("rules", rules).unwrap();
    let limits = Limits { body: 1 << 16, request: Duration::from_secs(30), ..limits() };
    let (address, _stop, _done) = start(store.clone(), rules, limits, http::Hosts::loopback()).await;
    let create = br#"{"TableName":"abc","BillingMode":"PAY_PER_REQUEST",
        "KeySchema":[{"AttributeName":"pk","KeyType":"HASH"},{"AttributeName":"sk","KeyType":"RANGE"}],
        "AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"S"},{"AttributeName":"sk","AttributeType":"S"}]}"#;
    assert_eq!(Client::to(address).await.send(&post("CreateTable", create)).await.status, 200);
    let query = br#"{"TableName":"abc","KeyConditionExpression":"pk = :p","ExpressionAttributeValues":{":p":{"S":"a"}}}"#;
    let (begun, ended) = (|| store.begun.load(Ordering::SeqCst), || store.ended.load(Ordering::SeqCst));
    for (round, resets) in [(1, true), (2, false)] {
        let mut client = Client::to(address).await;
        client.write(&post("Query", query)).await;
        until("all shards asked", || begun() == 8 * round).await;
        assert_eq!(ended(), 8 * (round - 1));
        if resets {
            client.reset()
        } else {
            drop(client)
        }
        until("all shards let go", || ended() == 8 * round).await;
    }
}

#[tokio::test]
async fn a_read_behind_which_further_requests_are_pipelined_is_let_go_too() {
    let server = server(Limits { request: Duration::from_secs(30), ..limits() }).await;
    server.store.hold(Duration::from_secs(4));
    let mut client = Client::to(server.address).await;
    let get = post("GetItem", br#"{"TableName":"abc"}"#);
    client.write(&get.repeat(3)).await;
    until("the first one begun", || server.store.calls("GetItem") == 1).await;
    drop(client);
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!((server.store.calls("GetItem"), server.store.finished("GetItem")), (1, 0));
}

#[tokio::test]
async fn what_may_write_goes_on_to_its_end_and_draining_waits_for_it() {
    let server = server(limits()).await;
    server.store.hold(Duration::from_millis(1500));
    let insert = br#"{"Statement":"INSERT INTO abc VALUE {'pk':'a'}"}"#;
    for (operation, body) in
        [("PutItem", &br#"{"TableName":"abc"}"#[..]), ("ExecuteStatement", insert), ("DeleteTable", b"{}")]
    {
        for resets in [true, false] {
            let before = server.store.calls(operation);
            let mut client = Client::to(server.address).await;
            client.write(&post(operation, body)).await;
            until(operation, || server.store.calls(operation) > before).await;
            if resets { client.reset() } else { drop(client) }
        }
    }
    let select = br#"{"Statement":" select * from abc"}"#;
    let mut client = Client::to(server.address).await;
    client.write(&post("ExecuteStatement", select)).await;
    until("the select", || server.store.calls("ExecuteStatement") == 3).await;
    drop(client);
    server.stop.send(()).unwrap();
    assert!(server.done.await.unwrap(), "everything in flight was finished");
    for operation in ["PutItem", "ExecuteStatement", "DeleteTable"] {
        assert_eq!(server.store.finished(operation), 2, "{operation}");
    }
}

#[tokio::test]
async fn a_write_that_takes_too_long_for_its_client_goes_on_too() {
    let server = server(Limits { request: Duration::from_millis(100), ..limits() }).await;
    server.store.hold(Duration::from_millis(600));
    for operation in ["PutItem", "GetItem"] {
        let answer = Client::to(server.address).await.send(&post(operation, br#"{"TableName":"abc"}"#)).await;
        assert_eq!((answer.status, answer.error().as_str()), (503, "ServiceUnavailable"));
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!((server.store.finished("PutItem"), server.store.finished("GetItem")), (1, 0));
}
