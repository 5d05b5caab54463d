//! More connections, and more requests at once, than the server takes.

use std::time::Duration;

use heatsink_gateway::Limits;

use crate::client::{Client, post};
use crate::server::{alive, limits, server, until};

#[tokio::test]
async fn a_connection_too_many_is_told_to_come_again() {
    let server = server(Limits { connections: 3, head_read: Duration::from_secs(30), ..limits() }).await;
    let get = post("GetItem", br#"{"TableName":"abc"}"#);
    let mut open = Vec::new();
    for _ in 0..3 {
        let mut client = Client::to(server.address).await;
        assert_eq!(client.send(&get).await.status, 200);
        open.push(client);
    }
    for body in [20, 3000] {
        let mut surplus = Client::to(server.address).await;
        let refused = surplus.send(&post("GetItem", &vec![b' '; body])).await;
        assert_eq!((refused.status, refused.error().as_str()), (503, "ServiceUnavailable"));
        assert_eq!(refused.header("connection"), Some("close"));
        assert!(surplus.is_closed().await);
    }
    assert_eq!(server.store.calls("GetItem"), 3);
    for client in &mut open {
        assert_eq!(client.send(&get).await.status, 200, "the others go on");
    }
    // One that says nothing does not hold its place for long, and many at once are closed without a
    // word.
    let mut silent = Vec::new();
    for _ in 0..200 {
        silent.push(Client::to(server.address).await);
    }
    for mut client in silent {
        assert!(client.is_closed().await);
    }
    drop(open);
    tokio::time::sleep(Duration::from_millis(200)).await;
    alive(&server).await;
}

#[tokio::test]
async fn a_request_too_many_is_throttled() {
    let server = server(Limits { requests: 2, head_read: Duration::from_secs(5), ..limits() }).await;
    server.store.hold(Duration::from_millis(800));
    let (mut one, mut two) = (Client::to(server.address).await, Client::to(server.address).await);
    for client in [&mut one, &mut two] {
        client.write(&post("PutItem", br#"{"TableName":"abc"}"#)).await;
    }
    until("two puts", || server.store.calls("PutItem") == 2).await;
    let mut third = Client::to(server.address).await;
    let refused = third.send(&post("PutItem", br#"{"TableName":"abc"}"#)).await;
    assert_eq!((refused.status, refused.error().as_str()), (400, "ThrottlingException"));
    for client in [&mut one, &mut two] {
        assert_eq!(client.read().await.status, 200);
    }
    assert_eq!(third.send(&post("PutItem", br#"{"TableName":"abc"}"#)).await.status, 200);
    assert_eq!(server.store.calls("PutItem"), 3);
}

#[tokio::test]
async fn requests_that_are_half_sent_are_not_worked_on() {
    let server = server(Limits { requests: 1, body_read: Duration::from_secs(5), ..limits() }).await;
    let mut half = Client::to(server.address).await;
    let put = post("PutItem", br#"{"TableName":"abc"}"#);
    half.write(&put[..put.len() - 2]).await;
    alive(&server).await;
    half.write(&put[put.len() - 2..]).await;
    assert_eq!(half.read().await.status, 200);
}
