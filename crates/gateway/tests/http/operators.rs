//! What operators are told: whom, on which address, and who cannot keep it from them.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use heatsink_control::Rules;
use heatsink_gateway::http::{Access, Hosts, Token};
use heatsink_gateway::{Limits, http};
use tokio::net::TcpListener;

use crate::client::{Answer, Client, post};
use crate::server::{limits, service};
use crate::store::Double;

const TOKEN: &str = "0123456789abcdef";

/// A server that shows its store, and its admin address, with a token or without.
async fn both(token: bool) -> [SocketAddr; 2] {
    let (service, env) = service(Arc::new(Double::default()), Rules::default(), limits()).await;
    let service = Arc::new(service.showing_store());
    let listeners =
        [TcpListener::bind("127.0.0.1:0").await.unwrap(), TcpListener::bind("127.0.0.1:0").await.unwrap()];
    let addresses = [0, 1].map(|at: usize| listeners[at].local_addr().unwrap());
    let [clients, admin] = listeners;
    let access =
        if token { Access::Token(Token::new(TOKEN).unwrap()) } else { Access::Hosts(Hosts::loopback()) };
    let forever = std::future::pending::<()>;
    tokio::spawn(http::serve_admin(admin, Arc::clone(&service), access, Arc::clone(&env), forever()));
    tokio::spawn(http::serve(
        clients,
        service,
        Limits::default(),
        Hosts::and(&["proxy.example"]).unwrap(),
        env,
        forever(),
    ));
    addresses
}

async fn get(address: SocketAddr, path: &str, headers: &str) -> Answer {
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n{headers}\r\n");
    Client::to(address).await.send(request.as_bytes()).await
}

const TOLD: [&str; 5] = [
    "/_heatsink/heat",
    "/_heatsink/heat/map?span=28d",
    "/_heatsink/reshards",
    "/_heatsink/gateways",
    "/_heatsink/metrics",
];

#[tokio::test(flavor = "multi_thread")]
async fn no_page_of_another_site_is_told_anything() {
    let addresses = both(false).await;
    for address in addresses {
        for path in TOLD {
            let status = async |headers: &str| get(address, path, headers).await.status;
            let open = status("").await;
            assert!(matches!(open, 200 | 404 | 503), "{path}: {open}");
            for near in ["none", "same-origin"] {
                assert_eq!(status(&format!("sec-fetch-site: {near}\r\n")).await, open, "{path} {near}");
            }
            for far in ["cross-site", "same-site"] {
                assert_eq!(status(&format!("sec-fetch-site: {far}\r\n")).await, 403, "{path} {far}");
            }
            assert_eq!(status("origin: http://evil.example\r\n").await, 403, "{path}");
        }
    }
    // Who follows a link gets the page, which asks for itself.
    assert_eq!(get(addresses[1], "/", "sec-fetch-site: cross-site\r\n").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_behind_a_proxy_counts_as_on_this_machine() {
    let [clients, admin] = both(false).await;
    let sent = post("GetItem", br#"{"TableName":"abc"}"#);
    let physical = |header: &str| {
        let text = String::from_utf8(sent.clone()).unwrap();
        text.replacen("POST / ", "POST /_heatsink/physical ", 1).replacen(
            "\r\nhost",
            &format!("\r\n{header}host"),
            1,
        )
    };
    assert_eq!(Client::to(clients).await.send(physical("").as_bytes()).await.status, 200);
    for header in [
        "Forwarded: for=192.0.2.1",
        "X-Forwarded-For: 192.0.2.1",
        "X-Forwarded-Proto: https",
        "Via: 1.1 box",
        "X-Real-IP: 192.0.2.1",
    ] {
        let refused = Client::to(clients).await.send(physical(&format!("{header}\r\n")).as_bytes()).await;
        assert_eq!((refused.status, refused.error().as_str()), (400, "AccessDeniedException"), "{header}");
        for path in TOLD {
            for address in [clients, admin] {
                assert_eq!(get(address, path, &format!("{header}\r\n")).await.status, 403, "{path} {header}");
            }
        }
        assert_eq!(get(admin, "/healthz", &format!("{header}\r\n")).await.status, 200, "{header}");
        // DynamoDB's own protocol may be passed on.
        let passed = String::from_utf8(sent.clone()).unwrap().replacen(
            "\r\nhost",
            &format!("\r\n{header}\r\nhost"),
            1,
        );
        assert_eq!(Client::to(clients).await.send(passed.as_bytes()).await.status, 200, "{header}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_has_no_token_keeps_neither_a_connection_nor_the_others_out() {
    let [_, admin] = both(true).await;
    let health = b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n";
    // Each asks and stays.
    let mut held = Vec::new();
    for _ in 0..64 {
        let mut client = Client::to(admin).await;
        let answer = client.send(health).await;
        assert_eq!((answer.status, answer.header("connection")), (200, Some("close")));
        held.push(client);
    }
    let shown = format!("authorization: Bearer {TOKEN}\r\n");
    for _ in 0..3 {
        assert_eq!(get(admin, "/healthz", "").await.status, 200);
        assert_eq!(get(admin, "/_heatsink/gateways", &shown).await.status, 200);
    }
    assert_eq!(get(admin, "/_heatsink/gateways", "").await.header("connection"), Some("close"));
    // Each says nothing at all.
    let mut silent = Vec::new();
    for _ in 0..64 {
        silent.push(Client::to(admin).await);
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
    for _ in 0..3 {
        assert_eq!(get(admin, "/healthz", "").await.status, 200);
        assert_eq!(get(admin, "/readyz", "").await.status, 200);
        assert_eq!(get(admin, "/_heatsink/gateways", &shown).await.status, 200);
    }
    // They are not waited for long.
    for client in &mut silent {
        assert!(client.is_closed().await || client.is_closed().await);
    }
    // Who has the token keeps its connection.
    let mut scraper = Client::to(admin).await;
    let ask = format!("GET /_heatsink/gateways HTTP/1.1\r\nhost: x\r\n{shown}\r\n");
    for _ in 0..3 {
        assert_eq!(scraper.send(ask.as_bytes()).await.status, 200);
    }
}
