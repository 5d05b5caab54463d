//! Pipelined requests, and clients that end their side of the connection before they read.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::AsyncWriteExt;

use crate::carrier::{self, Stream};
use crate::client::{Client, head, post};
use crate::server::{alive, limits, server};

/// Sends `count` requests, reads none of their answers, and waits until the server is done with
/// those that it takes. What it has read never ends with a whole request, or hardly ever: heads are
/// long.
pub async fn flood(address: SocketAddr, count: usize) -> Stream {
    let mut stream = carrier::connect(address).await;
    let body = br#"{"TableName":"abc"}"#;
    let filler = format!("x-filler: {}\r\ncontent-length: {}", "x".repeat(2500), body.len());
    let mut request = [&head("Query", &filler)[..], body].concat();
    stream.write_all(&request[..7]).await.unwrap();
    request.rotate_left(7);
    for _ in 0..count {
        if tokio::time::timeout(Duration::from_secs(3), stream.write_all(&request)).await.is_err() {
            break;
        }
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    stream
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_reads_no_answer_is_not_read_on() {
    let server = server(limits()).await;
    server.store.answer_with(100 * 1024);
    let _stream = flood(server.address, 1000).await;
    // Sockets hold some megabytes; the server itself keeps one answer.
    let answers = server.store.calls("Query");
    assert!((1..200).contains(&answers), "{answers} answers of 100 KB each lie somewhere");
    alive(&server).await;
}

#[tokio::test]
async fn a_client_that_ends_its_side_gets_all_its_answers() {
    let server = server(limits()).await;
    server.store.hold(Duration::from_millis(100));
    let mut client = Client::to(server.address).await;
    let get = post("GetItem", br#"{"TableName":"abc"}"#);
    client
        .write(&[&get[..], &post("Nope", b"{}"), &post("Scan", br#"{"TableName":"abc"}"#), &get].concat())
        .await;
    client.end().await;
    let mut statuses = Vec::new();
    for _ in 0..4 {
        statuses.push(client.read().await.status);
    }
    assert_eq!(statuses, [200, 400, 200, 200]);
    assert!(client.is_closed().await);
    assert_eq!(server.store.finished("GetItem"), 2);
}

#[tokio::test]
async fn a_client_that_ends_its_side_waits_longer_than_it_is_asked_whether_it_is_there() {
    let server = server(limits()).await;
    server.store.hold(Duration::from_millis(1300));
    for operation in ["GetItem", "PutItem"] {
        let mut client = Client::to(server.address).await;
        client.write(&post(operation, br#"{"TableName":"abc"}"#)).await;
        client.end().await;
        assert_eq!(client.read().await.text(), r#"{"Item":{}}"#);
        assert!(client.is_closed().await);
        assert_eq!(server.store.finished(operation), 1);
    }
    // HTTP/1.0 has no `100 Continue`: this client gets its answer and nothing else.
    let old = String::from_utf8(post("GetItem", br#"{"TableName":"abc"}"#)).unwrap();
    let mut client = Client::to(server.address).await;
    client.write(old.replacen("HTTP/1.1", "HTTP/1.0", 1).as_bytes()).await;
    client.end().await;
    let answer = client.rest().await;
    assert!(answer.starts_with("HTTP/1.0 200"), "{answer}");
}

#[tokio::test]
async fn a_hundred_pipelined_requests_are_answered_in_their_order() {
    let server = server(limits()).await;
    let mut client = Client::to(server.address).await;
    // Wrong targets among right ones, so that answers differ.
    let wrong = |n: usize| n.is_multiple_of(3) || n % 7 == 5;
    for n in 0..100 {
        let operation = if wrong(n) { "Nope" } else { "GetItem" };
        client.write(&post(operation, br#"{"TableName":"abc"}"#)).await;
    }
    for n in 0..100 {
        assert_eq!(client.read().await.status, if wrong(n) { 400 } else { 200 }, "{n}");
    }
}
