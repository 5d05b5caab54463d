//! Web pages of origins that the operator names may ask, and no others. What browsers send is written
//! down here as Chromium sends it for the AWS SDK for JavaScript 3.

use std::net::SocketAddr;
use std::sync::Arc;

use heatsink_control::Rules;
use heatsink_gateway::http::{self, Hosts, Origins, Settings};
use tokio::net::TcpListener;

use crate::carrier;
use crate::client::{Answer, Client, post};
use crate::server::{limits, service};
use crate::store::Double;

const PAGE: &str = "http://localhost:3000";
/// What the SDK sends beside the headers that need no question.
const HEADERS: &str = "amz-sdk-invocation-id,amz-sdk-request,authorization,content-type,x-amz-content-sha256,x-amz-date,x-amz-security-token,x-amz-target,x-amz-user-agent";

async fn serving(origins: &[&str]) -> (SocketAddr, Double) {
    let store = Double::default();
    let (service, env) = service(Arc::new(store.clone()), Rules::default(), limits()).await;
    let settings = carrier::settings(Hosts::loopback(), &limits());
    let live = http::Live::new(Settings { origins: Origins::of(origins).unwrap(), ..settings });
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(http::serve(listener, Arc::new(service), limits(), live, env, std::future::pending()));
    (address, store)
}

async fn preflight(address: SocketAddr, headers: &str) -> Answer {
    let request = format!(
        "OPTIONS / HTTP/1.1\r\nhost: 127.0.0.1:8000\r\naccept: */*\r\naccess-control-request-method: POST\r\n\
         access-control-request-headers: {HEADERS}\r\n{headers}sec-fetch-mode: cors\r\nsec-fetch-dest: empty\r\n\r\n"
    );
    Client::to(address).await.send(request.as_bytes()).await
}

async fn get(address: SocketAddr, headers: &str, body: &[u8]) -> Answer {
    let text = String::from_utf8(post("GetItem", body)).unwrap();
    let text = text.replacen("host: localhost\r\n", &format!("host: localhost\r\n{headers}"), 1);
    Client::to(address).await.send(text.as_bytes()).await
}

fn of(origin: &str) -> String {
    format!("origin: {origin}\r\nsec-fetch-site: cross-site\r\n")
}

fn allowed(answer: &Answer) -> Option<&str> {
    answer.header("access-control-allow-origin")
}

#[tokio::test]
async fn a_page_of_a_named_origin_asks_and_reads_what_sdks_read() {
    let (address, store) = serving(&["https://tool.example", PAGE]).await;
    let permission = preflight(address, &of(PAGE)).await;
    assert_eq!((permission.status, allowed(&permission)), (204, Some(PAGE)));
    for (name, value) in [
        ("access-control-allow-methods", "POST"),
        ("access-control-allow-headers", HEADERS),
        ("access-control-max-age", "600"),
        ("vary", "origin"),
    ] {
        assert_eq!(permission.header(name), Some(value), "{name}");
    }
    assert_eq!(permission.header("access-control-allow-credentials"), None);
    assert_eq!(store.calls("GetItem"), 0);
    let served = get(address, &of(PAGE), br#"{"TableName":"abc"}"#).await;
    assert_eq!((served.status, allowed(&served)), (200, Some(PAGE)));
    let exposed = served.header("access-control-expose-headers").unwrap();
    assert!(["x-amzn-requestid", "x-amz-crc32"].iter().all(|name| exposed.contains(name)), "{exposed}");
    assert_eq!(served.header("vary"), Some("origin"));
    // Errors are read, too.
    let refused = get(address, &of(PAGE), b"{").await;
    assert_eq!((refused.status, allowed(&refused)), (400, Some(PAGE)));
    // What no page asks is answered as ever.
    let plain = get(address, "", br#"{"TableName":"abc"}"#).await;
    assert_eq!((plain.status, allowed(&plain), plain.header("vary")), (200, None, None));
}

#[tokio::test]
async fn pages_of_other_origins_stay_refused() {
    let (address, store) = serving(&[PAGE]).await;
    for headers in [
        of("http://evil.example"),
        of("http://localhost:3001"),
        of("https://localhost:3000"),
        of("null"),
        of(&format!("{PAGE}/")),
        format!("origin: {PAGE}\r\norigin: http://evil.example\r\n"),
        "sec-fetch-site: cross-site\r\n".to_owned(),
    ] {
        let permission = preflight(address, &headers).await;
        assert_eq!((permission.status, allowed(&permission)), (404, None), "{headers}");
        let refused = get(address, &headers, br#"{"TableName":"abc"}"#).await;
        assert_eq!(
            (refused.error().as_str(), allowed(&refused)),
            ("AccessDeniedException", None),
            "{headers}"
        );
    }
    // A name that resolves to this machine is of no use to a page whose origin is named.
    let rebound = format!(
        "OPTIONS / HTTP/1.1\r\nhost: evil.example\r\norigin: {PAGE}\r\naccess-control-request-method: POST\r\n\r\n"
    );
    let refused = Client::to(address).await.send(rebound.as_bytes()).await;
    assert_eq!(refused.error(), "AccessDeniedException");
    // Other paths are not there for pages either.
    let elsewhere = format!("OPTIONS / HTTP/1.1\r\nhost: localhost\r\norigin: {PAGE}\r\n\r\n");
    assert_eq!(Client::to(address).await.send(elsewhere.as_bytes()).await.status, 404, "no question");
    assert_eq!(store.calls("GetItem"), 0);
}

#[tokio::test]
async fn every_page_asks_where_all_origins_are_named() {
    let (address, _) = serving(&["*"]).await;
    for origin in ["http://any.example", "null"] {
        assert_eq!(allowed(&preflight(address, &of(origin)).await), Some(origin));
        assert_eq!(get(address, &of(origin), br#"{"TableName":"abc"}"#).await.status, 200);
    }
}
