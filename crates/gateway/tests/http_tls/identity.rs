//! Clients that show a certificate of their own.

use std::net::SocketAddr;
use std::sync::Arc;

use heatsink_control::Rules;
use heatsink_gateway::http;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::carrier::{self, CA};
use crate::certificates::{Ca, Pair};
use crate::client::post;
use crate::server::{limits, service};
use crate::store::Double;

/// A server that asks clients for certificates of a CA.
async fn asking(clients: &Ca) -> (SocketAddr, Double) {
    let store = Double::default();
    let (service, env) = service(Arc::new(store.clone()), Rules::default(), limits()).await;
    let tls = CA.sign(&["localhost"]).tls(Some(&clients.pem())).unwrap();
    let live = http::Settings { tls: Some(tls), ..http::Settings::plain(http::Hosts::loopback(), &limits()) };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let live = http::Live::new(live);
    tokio::spawn(http::serve(listener, Arc::new(service), limits(), live, env, std::future::pending()));
    (address, store)
}

/// What a client with that certificate, or without, reads as its answer.
async fn answer(address: SocketAddr, pair: Option<&Pair>) -> String {
    let socket = TcpStream::connect(address).await.unwrap();
    let connector = carrier::connector(pair);
    let Ok(mut stream) = connector.connect("localhost".try_into().unwrap(), socket).await else {
        return String::new();
    };
    let request = String::from_utf8(post("GetItem", br#"{"TableName":"abc"}"#)).unwrap();
    let request = request.replacen("host: localhost\r\n", "host: localhost\r\nconnection: close\r\n", 1);
    let mut answer = Vec::new();
    // A client learns that its certificate is refused when it reads.
    if stream.write_all(request.as_bytes()).await.is_ok() {
        let _ = stream.read_to_end(&mut answer).await;
    }
    String::from_utf8(answer).unwrap()
}

#[tokio::test]
async fn only_certificates_of_the_clients_ca_that_name_somebody_are_served() {
    let clients = Ca::new();
    let (address, store) = asking(&clients).await;
    for names in [&["spiffe://a/b"][..], &["team1.example"], &["spiffe://a/b", "team1.example"]] {
        let told = answer(address, Some(&clients.sign(names))).await;
        assert!(told.starts_with("HTTP/1.1 200"), "{names:?}: {told:?}");
    }
    let served = store.calls("GetItem");
    assert_eq!(served, 3);
    let expired = clients.sign_with(&["a.example"], |params| {
        params.not_after = rcgen::date_time_ymd(2020, 1, 1);
    });
    let foreign = Ca::new().sign(&["a.example"]);
    for wrong in [None, Some(&foreign), Some(&expired), Some(&clients.sign(&[]))] {
        assert_eq!(answer(address, wrong).await, "");
    }
    assert_eq!(store.calls("GetItem"), served);
}
