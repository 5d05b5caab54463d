//! Memory that clients make the server hold: answers that they do not read, bodies that they send
//! by half.

use std::time::Duration;

use heatsink_gateway::Limits;
use tokio::time::timeout;

use crate::client::{Client, head, post};
use crate::server::{alive, limits, server};

const MB: usize = 1 << 20;

#[tokio::test]
async fn a_client_that_takes_nothing_of_its_answer_is_cut_off() {
    let server = server(Limits { answer_read: Duration::from_millis(600), ..limits() }).await;
    server.store.answer_with(32 * MB);
    let mut client = Client::to(server.address).await;
    client.write(&post("Query", br#"{"TableName":"abc"}"#)).await;
    tokio::time::sleep(Duration::from_millis(2500)).await;
    let taken = client.drain().await;
    assert!(taken < 32 * MB, "{taken} bytes");
    // One that reads slowly, but reads, gets all of it: in steps of a quarter of a second, over
    // several times the limit.
    let mut client = Client::to(server.address).await;
    client.write(&post("Query", br#"{"TableName":"abc"}"#)).await;
    for _ in 0..8 {
        tokio::time::sleep(Duration::from_millis(250)).await;
        client.take(3 * MB).await;
    }
    assert_eq!(client.read().await.status, 200);
    alive(&server).await;
}

#[tokio::test]
async fn answers_that_are_not_read_are_bounded_together() {
    let limits = Limits { memory: 64 * MB, head_read: Duration::from_secs(10), ..limits() };
    let server = server(Limits { memory_wait: Duration::from_millis(100), ..limits }).await;
    server.store.answer_with(30 * MB);
    let query = post("Query", br#"{"TableName":"abc"}"#);
    let (mut one, mut two) = (Client::to(server.address).await, Client::to(server.address).await);
    for client in [&mut one, &mut two] {
        client.write(&query).await;
    }
    while server.store.calls("Query") < 2 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    // There is no room for a third, until the two are found to read nothing.
    let mut third = Client::to(server.address).await;
    let refused = third.send(&query).await;
    assert_eq!((refused.status, refused.error().as_str()), (400, "ThrottlingException"));
    // Small answers go on, and so does the answer of a write: it was carried out.
    alive(&server).await;
    let update = post("UpdateItem", br#"{"TableName":"abc"}"#);
    assert_eq!(Client::to(server.address).await.send(&update).await.status, 200);
    tokio::time::sleep(Duration::from_millis(2500)).await;
    assert_eq!(third.send(&query).await.status, 200, "the connection goes on");
    // Each was due after a second, for others needed the room. Once one is cut off there is room,
    // and the other may go on.
    let taken = [one.drain().await, two.drain().await];
    assert!(taken.iter().any(|taken| *taken < 30 * MB), "{taken:?}");
}

#[tokio::test]
async fn an_answer_waits_until_those_who_take_none_are_cut_off() {
    let limits = Limits { memory: 64 * MB, request: Duration::from_secs(20), ..limits() };
    let server = server(limits).await;
    server.store.answer_with(30 * MB);
    let query = post("Query", br#"{"TableName":"abc"}"#);
    let (mut one, mut two) = (Client::to(server.address).await, Client::to(server.address).await);
    for client in [&mut one, &mut two] {
        client.write(&query).await;
    }
    while server.store.calls("Query") < 2 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(Client::to(server.address).await.send(&query).await.status, 200);
}

#[tokio::test]
async fn half_sent_bodies_are_bounded_together() {
    let server =
        server(Limits { body: 16 * MB, body_read: Duration::from_secs(5), memory: 8 * MB, ..limits() }).await;
    let request = head("PutItem", &format!("content-length: {}", 2 * MB));
    let mut half = Vec::new();
    for _ in 0..2 {
        let mut client = Client::to(server.address).await;
        client.write(&[&request[..], &vec![b' '; MB + MB / 2]].concat()).await;
        half.push(client);
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    let put = [&request[..], &padded(2 * MB)].concat();
    let refused = Client::to(server.address).await.send(&put).await;
    assert_eq!((refused.status, refused.error().as_str()), (400, "ThrottlingException"));
    assert_eq!(server.store.calls("PutItem"), 0);
    // Ordinary bodies are not counted.
    alive(&server).await;
    let ordinary = post("PutItem", &padded(60 * 1024));
    assert_eq!(Client::to(server.address).await.send(&ordinary).await.status, 200);
    // A client that hangs up gives back what it held.
    drop(half);
    let again = async {
        while Client::to(server.address).await.send(&put).await.status != 200 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(Duration::from_secs(4), again).await.unwrap();
}

fn padded(length: usize) -> Vec<u8> {
    let mut body = br#"{"TableName":"abc"}"#.to_vec();
    body.resize(length, b' ');
    body
}
