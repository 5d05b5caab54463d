//! Handshakes: slow ones, many of them, clients that speak no TLS, and certificates that are
//! replaced meanwhile.

use std::sync::Arc;
use std::time::{Duration, Instant};

use heatsink_control::Rules;
use heatsink_gateway::{Limits, http};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::carrier::{self, CA};
use crate::client::{Client, post};
use crate::server::{alive, limits, server, service};
use crate::store::Double;

/// How a handshake begins, and does not go on.
const BEGUN: &[u8] = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_thousand_slow_handshakes_hold_no_client_up() {
    let server = server(Limits { handshake: Duration::from_secs(30), ..limits() }).await;
    alive(&server).await;
    let mut slow = Vec::new();
    let mut longest = Duration::ZERO;
    for nth in 0..2_000 {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        // Some say nothing, some begin.
        if nth % 2 == 0 {
            stream.write_all(BEGUN).await.unwrap();
        }
        slow.push(stream);
        if nth % 50 == 0 {
            let begun = Instant::now();
            alive(&server).await;
            longest = longest.max(begun.elapsed());
        }
    }
    // All of them waited for the same two processors as the machine's other work.
    assert!(longest < Duration::from_secs(2), "a client waited {longest:?}");
    // Those beyond the budget are gone, those within it wait.
    let mut open = 0;
    for stream in &mut slow {
        let mut byte = [0];
        let read = tokio::time::timeout(Duration::from_millis(1), stream.read(&mut byte)).await;
        open += usize::from(read.is_err());
    }
    assert!((1..=Limits::default().handshakes).contains(&open), "{open} are open");
}

#[tokio::test]
async fn a_handshake_that_takes_too_long_ends() {
    let server = server(Limits { handshake: Duration::from_millis(300), ..limits() }).await;
    for begin in [BEGUN, b""] {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        stream.write_all(begin).await.unwrap();
        let mut rest = Vec::new();
        let ended = tokio::time::timeout(Duration::from_secs(5), stream.read_to_end(&mut rest)).await;
        assert!(ended.is_ok(), "it is open still");
    }
    alive(&server).await;
}

#[tokio::test]
async fn what_is_no_tls_is_closed_and_nothing_of_it_is_served() {
    let server = server(limits()).await;
    for bytes in [post("PutItem", br#"{"TableName":"abc"}"#), vec![0; 100], vec![0xff; 20_000]] {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        // It may be closed meanwhile.
        let _ = stream.write_all(&bytes).await;
        let mut answer = Vec::new();
        let ended = tokio::time::timeout(Duration::from_secs(5), stream.read_to_end(&mut answer)).await;
        assert!(ended.is_ok() && !answer.starts_with(b"HTTP"), "{}", String::from_utf8_lossy(&answer));
    }
    assert_eq!(server.store.calls("PutItem"), 0);
    alive(&server).await;
}

#[tokio::test]
async fn another_certificate_is_shown_to_new_connections_and_old_ones_go_on() {
    let store = Arc::new(Double::default());
    let (service, env) = service(store, Rules::default(), limits()).await;
    let with = |name: &str| {
        let tls = CA.sign(&[name]).tls(None).unwrap();
        http::Settings { tls: Some(tls), ..http::Settings::plain(http::Hosts::loopback(), &limits()) }
    };
    let live = http::Live::new(with("localhost"));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let served =
        http::serve(listener, Arc::new(service), limits(), live.clone(), env, std::future::pending());
    tokio::spawn(served);
    let get = post("GetItem", br#"{"TableName":"abc"}"#);
    let connector = carrier::connector(None);
    let by_name = async |name: &'static str| {
        let socket = TcpStream::connect(address).await.unwrap();
        connector.connect(name.try_into().unwrap(), socket).await.is_ok()
    };
    let mut old = Client::to(address).await;
    assert_eq!(old.send(&get).await.status, 200);
    assert!(by_name("localhost").await && !by_name("other.localhost").await);
    live.replace(with("other.localhost"));
    assert!(!by_name("localhost").await && by_name("other.localhost").await);
    assert_eq!(old.send(&get).await.status, 200);
}
