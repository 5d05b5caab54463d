//! The HTTP front over real sockets, before a store that a test controls.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(clippy::disallowed_methods, reason = "processes and sockets keep real time")]

mod by_client;
mod carrier;
mod client;
mod cors;
mod crowd;
mod figures;
mod hangup;
mod held;
mod host;
mod memory;
mod operator_socket;
mod operators;
mod pipelines;
mod room;
mod server;
mod signed;
mod slow;
mod stop;
mod store;
mod unread;
mod withdrawn;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use client::{Client, post};
use futures::future::BoxFuture;
use heatsink_control::Rules;
use heatsink_dynamo::{Error, Operation};
use heatsink_gateway::{Limits, http};
use heatsink_store::Store;
use server::{alive, limits, server, start};
use store::Double;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

#[tokio::test]
async fn every_answer_carries_dynamodbs_headers() {
    let server = server(limits()).await;
    let mut client = Client::to(server.address).await;
    let first = client.send(&post("GetItem", br#"{"TableName":"abc"}"#)).await;
    let second = client.send(&post("GetItem", br#"{"TableName":"abc"}"#)).await;
    for answer in [&first, &second] {
        assert_eq!(answer.status, 200);
        assert_eq!(answer.header("x-amz-crc32"), Some(crc32fast::hash(&answer.body).to_string().as_str()));
        assert_eq!(answer.header("content-type"), Some("application/x-amz-json-1.0"));
        let id = answer.header("x-amzn-requestid").unwrap();
        assert!(id.len() == 52 && id.bytes().all(|c| c.is_ascii_digit() || c.is_ascii_uppercase()), "{id}");
        assert_eq!(answer.header("access-control-allow-origin"), None);
    }
    assert_ne!(first.header("x-amzn-requestid"), second.header("x-amzn-requestid"));
    let health = client.send(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
    assert_eq!((health.status, health.text()), (200, "healthy: dynamodb.eu-west-1.amazonaws.com "));
}

#[tokio::test]
async fn bodies_in_gzip_are_read_and_sent() {
    let pack = |body: &[u8]| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut encoder, body).unwrap();
        encoder.finish().unwrap()
    };
    let server = server(limits()).await;
    let mut client = Client::to(server.address).await;
    let send = |operation, body: Vec<u8>| {
        let extra =
            format!("content-encoding: gzip\r\naccept-encoding: gzip\r\ncontent-length: {}", body.len());
        [client::head(operation, &extra), body].concat()
    };
    let small = client.send(&send("GetItem", pack(br#"{"TableName":"abc"}"#))).await;
    assert_eq!((small.status, small.header("content-encoding"), small.text()), (200, None, r#"{"Item":{}}"#));
    let large = client.send(&send("Scan", pack(br#"{"TableName":"abc"}"#))).await;
    assert_eq!((large.status, large.header("content-encoding")), (200, Some("gzip")));
    assert_eq!(large.header("x-amz-crc32"), Some(crc32fast::hash(&large.body).to_string().as_str()));
    let mut text = String::new();
    std::io::Read::read_to_string(&mut flate2::read::GzDecoder::new(&*large.body), &mut text).unwrap();
    assert_eq!(text, store::LARGE.replace('~', &"x".repeat(2000)));
    assert_eq!(client.send(&send("GetItem", b"no gzip".to_vec())).await.error(), "SerializationException");
    let bomb = client.send(&send("GetItem", pack(&padded(5000)))).await;
    assert_eq!((bomb.status, bomb.error().as_str()), (413, "RequestEntityTooLarge"));
}

#[tokio::test]
async fn a_web_page_is_not_served() {
    let server = server(limits()).await;
    let mut client = Client::to(server.address).await;
    let options = b"OPTIONS / HTTP/1.1\r\nhost: localhost\r\norigin: http://evil.example\r\naccess-control-request-method: POST\r\n\r\n";
    let preflight = client.send(options).await;
    assert_eq!((preflight.status, preflight.header("access-control-allow-origin")), (404, None));
    let text = String::from_utf8(post("GetItem", b"{}")).unwrap().replacen(
        "host: localhost\r\n",
        "host: localhost\r\norigin: http://localhost\r\n",
        1,
    );
    let answer = client.send(text.as_bytes()).await;
    assert_eq!(answer.error(), "AccessDeniedException");
    assert_eq!(server.store.calls("GetItem"), 0);
}

#[tokio::test]
async fn a_body_over_the_limit_is_413_and_not_kept() {
    let server = server(limits()).await;
    // Announced, in chunks without a length, and far over what is worth waiting for.
    let announced = Client::to(server.address).await.send(&post("PutItem", &vec![b' '; 5000])).await;
    assert_eq!((announced.status, announced.error().as_str()), (413, "RequestEntityTooLarge"));
    let mut chunked = client::head("PutItem", "transfer-encoding: chunked");
    for _ in 0..10 {
        chunked.extend_from_slice(b"400\r\n");
        chunked.extend_from_slice(&[b' '; 0x400]);
        chunked.extend_from_slice(b"\r\n");
    }
    chunked.extend_from_slice(b"0\r\n\r\n");
    assert_eq!(Client::to(server.address).await.send(&chunked).await.status, 413);
    let exact = Client::to(server.address).await.send(&post("GetItem", &padded(4096))).await;
    assert_eq!(exact.status, 200);
    assert_eq!(server.store.calls("PutItem"), 0);
    alive(&server).await;
}

fn padded(length: usize) -> Vec<u8> {
    let mut body = br#"{"TableName":"abc"}"#.to_vec();
    body.resize(length, b' ');
    body
}

#[tokio::test]
async fn slow_and_half_sent_requests_end_their_connection_only() {
    let server = server(limits()).await;
    let whole = post("PutItem", br#"{"TableName":"abc"}"#);
    // Cut in the head, after the head, and within the body; then nothing more.
    for cut in [10, whole.len() - 19, whole.len() - 3] {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        stream.write_all(&whole[..cut]).await.unwrap();
        let mut rest = Vec::new();
        let read = tokio::time::timeout(Duration::from_secs(5), stream.read_to_end(&mut rest)).await;
        assert!(read.is_ok(), "the connection outlived its limits, cut at {cut}");
        assert!(!rest.starts_with(b"HTTP/1.1 200"), "cut at {cut}");
    }
    // A client that hangs up half way.
    for cut in [10, whole.len() - 3] {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        stream.write_all(&whole[..cut]).await.unwrap();
        drop(stream);
    }
    // One byte at a time, for ever.
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let dripping = async {
        for byte in whole.iter().cycle() {
            if stream.write_all(&[*byte]).await.is_err() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    assert!(
        tokio::time::timeout(Duration::from_secs(10), dripping).await.is_ok(),
        "a dripping client is never cut off"
    );
    assert_eq!(server.store.calls("PutItem"), 0);
    alive(&server).await;
}

#[tokio::test]
async fn what_is_no_http_is_turned_away() {
    let server = server(limits()).await;
    let huge_head = format!("POST / HTTP/1.1\r\nhost: localhost\r\nx: {}\r\n\r\n", "y".repeat(20_000));
    let many_headers = format!("POST / HTTP/1.1\r\nhost: localhost\r\n{}\r\n", "x: y\r\n".repeat(500));
    let garbage: [&[u8]; 6] = [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"\0\0\0\0\r\n\r\n",
        b"GET\r\n\r\n",
        b"POST / HTTP/1.1\r\ncontent-length: -1\r\n\r\n",
        huge_head.as_bytes(),
        many_headers.as_bytes(),
    ];
    for bytes in garbage {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        let mut answer = Vec::new();
        let closed = tokio::time::timeout(Duration::from_secs(5), stream.read_to_end(&mut answer)).await;
        assert!(closed.is_ok(), "{:?} keeps its connection", String::from_utf8_lossy(bytes));
        assert!(
            answer.is_empty() || answer.starts_with(b"HTTP/1.1 4"),
            "{:?}",
            String::from_utf8_lossy(&answer)
        );
    }
    alive(&server).await;
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_order_and_http_1_0_once() {
    let server = server(limits()).await;
    let mut client = Client::to(server.address).await;
    let mut both = post("GetItem", br#"{"TableName":"abc"}"#);
    both.extend(post("Nope", b"{}"));
    both.extend(post("GetItem", br#"{"TableName":"abc"}"#));
    client.write(&both).await;
    let statuses = [client.read().await.status, client.read().await.status, client.read().await.status];
    assert_eq!(statuses, [200, 400, 200]);

    let old = String::from_utf8(post("GetItem", br#"{"TableName":"abc"}"#))
        .unwrap()
        .replacen("HTTP/1.1", "HTTP/1.0", 1);
    let mut client = Client::to(server.address).await;
    assert_eq!(client.send(old.as_bytes()).await.status, 200);
    assert!(client.is_closed().await);
}

#[tokio::test]
async fn a_request_that_takes_too_long_is_an_unknown_outcome() {
    let server = server(Limits { request: Duration::from_millis(100), ..limits() }).await;
    server.store.hold(Duration::from_secs(3));
    let mut client = Client::to(server.address).await;
    let answer = client.send(&post("PutItem", br#"{"TableName":"abc"}"#)).await;
    assert_eq!((answer.status, answer.error().as_str()), (503, "ServiceUnavailable"));
    assert!(answer.text().contains("may have been carried out"));
}

/// A store that takes a second to describe a table.
#[derive(Clone)]
struct Slow(Double);

impl Store for Slow {
    fn call(&self, operation: Operation, body: Bytes) -> BoxFuture<'_, Result<Bytes, Error>> {
        Box::pin(async move {
            if operation == Operation::DescribeTable {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            self.0.call(operation, body).await
        })
    }
}

#[tokio::test]
async fn a_request_of_which_nothing_was_sent_was_not_done() {
    let store = Slow(Double::default());
    let rules = "[[rule]]\ntable = \"abc\"\nstrategy = \"calculated\"\nshards = 4\n";
    let limits = Limits { request: Duration::from_millis(100), ..limits() };
    let rules = Rules::read("rules", rules).unwrap();
    let (address, _stop, _done) =
        start(Arc::new(store.clone()), rules, limits, http::Hosts::loopback()).await;
    // It looks the table up, and never comes to send it.
    let answer = Client::to(address).await.send(&post("PutItem", br#"{"TableName":"abc"}"#)).await;
    assert_eq!((answer.status, answer.error().as_str()), (503, "ServiceUnavailable"));
    assert!(answer.text().contains("nothing was done"), "{}", answer.text());
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    assert_eq!((store.0.calls("DescribeTable") > 0, store.0.calls("PutItem")), (true, 0));
}

#[tokio::test]
async fn draining_finishes_what_is_in_flight_and_takes_nothing_new() {
    let server = server(limits()).await;
    alive(&server).await;
    server.store.hold(Duration::from_millis(500));
    let mut busy = Client::to(server.address).await;
    let mut idle = Client::to(server.address).await;
    idle.send(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
    busy.write(&post("PutItem", br#"{"TableName":"abc"}"#)).await;
    while server.store.calls("PutItem") == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    server.stop.send(()).unwrap();
    assert_eq!(busy.read().await.status, 200);
    assert!(idle.is_closed().await);
    assert!(server.done.await.unwrap());
    assert!(TcpStream::connect(server.address).await.is_err());
}

#[tokio::test]
async fn draining_does_not_wait_for_ever() {
    let server = server(Limits { drain: Duration::from_millis(100), ..limits() }).await;
    server.store.hold(Duration::from_secs(60));
    let mut busy = Client::to(server.address).await;
    busy.write(&post("PutItem", br#"{"TableName":"abc"}"#)).await;
    while server.store.calls("PutItem") == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    server.stop.send(()).unwrap();
    assert!(!server.done.await.unwrap());
}
