//! What operators are told: whom, on which address, and who cannot keep it from them.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::future::{BoxFuture, join_all};
use heatsink_control::Rules;
use heatsink_dynamo::{Error, Operation};
use heatsink_gateway::http::{Access, Hosts, Live, Settings, Token};
use heatsink_gateway::{Gateway, Limits, Status, http};
use heatsink_store::Store;
use heatsink_store::embedded::Embedded;
use tokio::net::TcpListener;

use crate::client::{Answer, Client, post};
use crate::server::{limits, service};
use crate::store::Double;

const TOKEN: &str = "0123456789abcdef";

/// The addresses of a server: of its clients, and of its operators, with a token or without.
async fn both(token: bool) -> [SocketAddr; 2] {
    let (service, env) = service(Arc::new(Double::default()), Rules::default(), limits()).await;
    let status = Arc::new(Status::of(&service));
    let listeners =
        [TcpListener::bind("127.0.0.1:0").await.unwrap(), TcpListener::bind("127.0.0.1:0").await.unwrap()];
    let addresses = [0, 1].map(|at: usize| listeners[at].local_addr().unwrap());
    let [clients, admin] = listeners;
    let access =
        if token { Access::Token(Token::new(TOKEN).unwrap()) } else { Access::Hosts(Hosts::loopback()) };
    let forever = std::future::pending::<()>;
    tokio::spawn(http::serve_admin(admin, status, access, Arc::clone(&env), forever()));
    tokio::spawn(http::serve(
        clients,
        Arc::new(service),
        Limits::default(),
        Live::new(Settings::plain(Hosts::and(&["proxy.example"]).unwrap(), &Limits::default())),
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

/// A signed request to the store itself, with one more header.
fn physical(header: &str) -> Vec<u8> {
    let text = String::from_utf8(post("GetItem", br#"{"TableName":"abc"}"#)).unwrap();
    let text = text.replacen("POST / ", "POST /_heatsink/physical ", 1);
    text.replacen("\r\nhost", &format!("\r\n{header}host"), 1).into_bytes()
}

#[tokio::test(flavor = "multi_thread")]
async fn at_the_clients_address_nothing_is_told_and_the_store_is_not_shown() {
    let [clients, admin] = both(false).await;
    let signed = "content-type: application/x-amz-json-1.0\r\n";
    // As at any path that DynamoDB does not know.
    let unknown = get(clients, "/nothing", signed).await;
    assert_eq!((unknown.status, unknown.text()), (404, "<UnknownOperationException/>\n"));
    let others = ["/_heatsink/partitions?table=abc", "/_heatsink/", "/_heatsink", "/healthz", "/readyz"];
    for path in TOLD.into_iter().chain(others) {
        for headers in ["", signed, "sec-fetch-site: same-origin\r\n", "origin: null\r\n"] {
            let answer = get(clients, path, headers).await;
            assert_eq!((answer.status, answer.text()), (unknown.status, unknown.text()), "{path} {headers}");
        }
    }
    for header in ["", "X-Forwarded-For: 192.0.2.1\r\n"] {
        let answer = Client::to(clients).await.send(&physical(header)).await;
        assert_eq!((answer.status, answer.text()), (unknown.status, unknown.text()), "{header}");
    }
    // Nor at the admin address, which takes GET only.
    assert_eq!(Client::to(admin).await.send(&physical("")).await.status, 405);
    assert_eq!(get(admin, "/_heatsink/physical", "").await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_page_of_another_site_is_told_anything() {
    let [_, address] = both(false).await;
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
    // Who follows a link gets the page, which asks for itself.
    assert_eq!(get(address, "/", "sec-fetch-site: cross-site\r\n").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_behind_a_proxy_counts_as_on_this_machine() {
    let [clients, admin] = both(false).await;
    let sent = post("GetItem", br#"{"TableName":"abc"}"#);
    for header in [
        "Forwarded: for=192.0.2.1",
        "X-Forwarded-For: 192.0.2.1",
        "X-Forwarded-Proto: https",
        "Via: 1.1 box",
        "X-Real-IP: 192.0.2.1",
    ] {
        for path in TOLD {
            assert_eq!(get(admin, path, &format!("{header}\r\n")).await.status, 403, "{path} {header}");
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
    let begun = Instant::now();
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
        assert!(client.is_closed().await);
    }
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    // Nor those that drip the first head.
    let mut dripping = Client::to(admin).await;
    dripping.write(b"GET /healthz HTTP/1.1\r\n").await;
    let begun = Instant::now();
    assert!(dripping.is_closed().await && begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    // Who has the token keeps its connection.
    let mut scraper = Client::to(admin).await;
    let ask = format!("GET /_heatsink/gateways HTTP/1.1\r\nhost: x\r\n{shown}\r\n");
    for _ in 0..3 {
        assert_eq!(scraper.send(ask.as_bytes()).await.status, 200);
        // Longer than a new connection may be silent.
        tokio::time::sleep(Duration::from_millis(1_300)).await;
    }
}

/// The store of the registry is asked for no more than once a second, however many look.
#[tokio::test(flavor = "multi_thread")]
async fn who_looks_at_reshards_and_gateways_shares_a_read_of_the_registry() {
    let (store, registry) = (Arc::new(Embedded::memory().unwrap()), Arc::new(AtomicUsize::new(0)));
    let counted = Arc::new(Counted { store, reads: Arc::clone(&registry) });
    let gateway = Gateway::builder(counted).start().await.unwrap();
    gateway.control().changer().make_registry().await.unwrap();
    let admin = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = admin.local_addr().unwrap();
    let access = Access::Hosts(Hosts::loopback());
    tokio::spawn(gateway.serve_admin(admin, access, std::future::pending()));
    for path in ["/_heatsink/reshards", "/_heatsink/gateways"] {
        let one = {
            let before = registry.load(Ordering::Relaxed);
            assert_eq!(get(address, path, "").await.status, 200);
            registry.load(Ordering::Relaxed) - before
        };
        assert!(one > 0, "{path} reads the registry");
        tokio::time::sleep(Duration::from_millis(1_100)).await;
        let (before, begun) = (registry.load(Ordering::Relaxed), Instant::now());
        for _ in 0..5 {
            let path = |nth| format!("{path}?of={nth}");
            let all = (0..10).map(|nth| async move { get(address, &path(nth), "").await });
            assert!(join_all(all).await.iter().all(|answer| answer.status == 200));
        }
        let seconds = usize::try_from(begun.elapsed().as_secs()).unwrap() + 1;
        let reads = registry.load(Ordering::Relaxed) - before;
        let shared = one..=one * seconds;
        assert!(shared.contains(&reads), "{path}: {reads} reads in {seconds} s for 50 who ask");
    }
}

/// A store that counts the requests to it.
struct Counted {
    store: Arc<Embedded>,
    reads: Arc<AtomicUsize>,
}

impl Store for Counted {
    fn call(&self, operation: Operation, body: Bytes) -> BoxFuture<'_, Result<Bytes, Error>> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.store.call(operation, body)
    }
}
