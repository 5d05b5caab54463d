//! What HTTP says of requests that are malformed, too large or too slow: 400, 431, 408.

use std::time::Duration;

use heatsink_gateway::Limits;

use crate::client::{Client, head, post};
use crate::server::{alive, limits, server};

#[tokio::test]
async fn a_body_that_does_not_come_in_time_is_408() {
    let server = server(limits()).await;
    let whole = post("PutItem", br#"{"TableName":"abc"}"#);
    for cut in [whole.len() - 19, whole.len() - 3] {
        let mut client = Client::to(server.address).await;
        let answer = client.send(&whole[..cut]).await;
        assert_eq!(
            (answer.status, answer.error().as_str()),
            (408, "RequestTimeoutException"),
            "cut at {cut}"
        );
        assert_eq!(answer.header("connection"), Some("close"));
        assert!(client.is_closed().await);
    }
    // So is a body that is thrown away, because it is too large.
    let answer = Client::to(server.address).await.send(&head("PutItem", "content-length: 5000")).await;
    assert_eq!(answer.status, 408);
    assert_eq!(server.store.calls("PutItem"), 0);
    alive(&server).await;
}

#[tokio::test]
async fn a_head_that_does_not_come_in_time_is_408_and_an_idle_connection_just_ends() {
    let server = server(limits()).await;
    for cut in [1, 10, 200] {
        let mut client = Client::to(server.address).await;
        let answer = client.send(&post("PutItem", b"{}")[..cut]).await;
        assert_eq!((answer.status, answer.header("connection")), (408, Some("close")), "cut at {cut}");
        assert!(client.is_closed().await);
    }
    // The second head of a connection, too.
    let mut client = Client::to(server.address).await;
    let get = post("GetItem", br#"{"TableName":"abc"}"#);
    client.write(&[&get[..], &get[..10]].concat()).await;
    assert_eq!([client.read().await.status, client.read().await.status], [200, 408]);
    // A client that happens to send its next request just now must not read it as the answer.
    let mut client = Client::to(server.address).await;
    assert_eq!(client.send(&get).await.status, 200);
    assert_eq!(client.rest().await, "");
    assert_eq!(Client::to(server.address).await.rest().await, "");
}

#[tokio::test]
async fn what_ends_too_early_or_is_malformed_is_400() {
    let server = server(Limits { head_read: Duration::from_secs(5), ..limits() }).await;
    let whole = post("PutItem", br#"{"TableName":"abc"}"#);
    for cut in [10, whole.len() - 30, whole.len() - 3] {
        let mut client = Client::to(server.address).await;
        client.write(&whole[..cut]).await;
        client.end().await;
        let answer = client.rest().await;
        assert!(answer.starts_with("HTTP/1.1 400 "), "cut at {cut}: {answer:?}");
    }
    let bad_chunk = [&head("PutItem", "transfer-encoding: chunked")[..], b"zz\r\n{}\r\n0\r\n\r\n"].concat();
    let malformed: [&[u8]; 4] =
        [b"GET\r\n\r\n", b"POST / HTTP/1.1\r\ncontent-length: -1\r\n\r\n", b"\0\0\0\0\r\n\r\n", &bad_chunk];
    for bytes in malformed {
        let mut client = Client::to(server.address).await;
        let answer = client.send(bytes).await;
        assert_eq!(answer.status, 400, "{:?}", String::from_utf8_lossy(bytes));
        assert!(client.is_closed().await);
    }
    assert_eq!(server.store.calls("PutItem"), 0);
    alive(&server).await;
}

#[tokio::test]
async fn a_head_that_is_too_large_is_431_even_while_more_of_it_is_sent() {
    let server = server(limits()).await;
    for (name, size) in [("x: ", 9000), ("x: ", 1 << 20)] {
        let head = format!("POST / HTTP/1.1\r\nhost: localhost\r\n{name}{}\r\n\r\n", "y".repeat(size));
        let mut client = Client::to(server.address).await;
        assert_eq!(client.send(head.as_bytes()).await.status, 431, "{size} bytes");
        assert!(client.is_closed().await);
    }
    let many = format!("POST / HTTP/1.1\r\nhost: localhost\r\n{}\r\n", "x: y\r\n".repeat(200));
    assert_eq!(Client::to(server.address).await.send(many.as_bytes()).await.status, 431);
    alive(&server).await;
}

#[tokio::test]
async fn a_head_just_beyond_the_limit_is_431() {
    // A buffer that grows takes more at once than it has to.
    let server = server(Limits { head: 64 * 1024, ..limits() }).await;
    for (size, status) in [(60_000, 404), (66_000, 431), (70_000, 431), (100_000, 431)] {
        let head = format!(
            "POST /x HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\nx: {}\r\n\r\n",
            "y".repeat(size)
        );
        assert_eq!(
            Client::to(server.address).await.send(head.as_bytes()).await.status,
            status,
            "{size} bytes"
        );
    }
}
