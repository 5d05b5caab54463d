//! Where clients are known: who has not signed a request is not served.

use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use heatsink_access::Clients;
use heatsink_control::Rules;
use heatsink_env::{Env, RealEnv};
use heatsink_gateway::{Limits, http};
use heatsink_signature::SigningKey;
use tokio::net::TcpListener;

use crate::client::{Client, post};
use crate::server::{limits, little_room, service};
use crate::store::Double;

const REGION: &str = "eu-west-1";
const BODY: &[u8] = br#"{"TableName":"abc"}"#;

/// Clients `orders` and `reports` with these secrets.
fn clients(secrets: [&str; 2]) -> Clients {
    clients_with(secrets, "")
}

/// The same, with these lines in each section.
pub fn clients_with(secrets: [&str; 2], more: &str) -> Clients {
    let both = ["orders", "reports"].into_iter().zip(secrets);
    clients_of(&both.map(|(id, secret)| (id.to_owned(), secret)).collect::<Vec<_>>(), more)
}

/// Clients of these ids with these secrets.
pub fn clients_of(all: &[(String, &str)], more: &str) -> Clients {
    let folder = tempfile::tempdir().unwrap();
    let mut text = String::new();
    for (id, secret) in all {
        let file = folder.path().join(id);
        std::fs::write(&file, secret).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        text += &format!("[[client]]\nid = \"{id}\"\nsecret_file = \"{}\"\n{more}\n", file.display());
    }
    Clients::load(Rules::read("rules", &text).unwrap().clients(), REGION).unwrap()
}

async fn serve(clients: &Arc<ArcSwap<Clients>>) -> (SocketAddr, Double) {
    serve_within(limits(), clients).await
}

pub async fn serve_within(limits: Limits, clients: &Arc<ArcSwap<Clients>>) -> (SocketAddr, Double) {
    let store = Double::default();
    let (service, env) = service(Arc::new(store.clone()), Rules::default(), limits).await;
    let service = Arc::new(service.with_clients(Arc::clone(clients)));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let live = http::Live::new(http::Settings::plain(http::Hosts::loopback(), &limits));
    tokio::spawn(http::serve(listener, service, limits, live, env, futures::future::pending()));
    (address, store)
}

fn known() -> Arc<ArcSwap<Clients>> {
    Arc::new(ArcSwap::from_pointee(clients(["secret", "other"])))
}

/// A request that is signed, with more lines in its head.
pub fn signed(target: &str, key: (&str, &str), body: &[u8], more: &str) -> Vec<u8> {
    let now = RealEnv.unix_millis();
    let target = format!("DynamoDB_20120810.{target}");
    let signed = SigningKey::derive(key.0, key.1, None, REGION, now).sign("localhost", &target, body, now);
    let head = format!(
        "POST / HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/x-amz-json-1.0\r\nx-amz-target: {target}\r\n\
         x-amz-date: {}\r\nauthorization: {}\r\ncontent-length: {}\r\n{more}\r\n",
        signed.date,
        signed.authorization,
        body.len()
    );
    [head.as_bytes(), body].concat()
}

fn replaced(request: &[u8], from: &str, to: &str) -> Vec<u8> {
    let text = String::from_utf8(request.to_vec()).unwrap();
    assert!(text.contains(from));
    text.replacen(from, to, 1).into_bytes()
}

#[tokio::test]
async fn who_has_signed_is_served() {
    let (address, store) = serve(&known()).await;
    let mut client = Client::to(address).await;
    for key in [("orders", "secret"), ("reports", "other"), ("orders", "secret")] {
        let answer = client.send(&signed("GetItem", key, BODY, "")).await;
        assert_eq!((answer.status, answer.text()), (200, r#"{"Item":{}}"#));
    }
    assert_eq!(store.calls("GetItem"), 3);
    // In pieces, and in chunks of which no length was said.
    let whole = signed("GetItem", ("orders", "secret"), BODY, "");
    let (begin, end) = whole.split_at(whole.len() - 5);
    client.write(begin).await;
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert_eq!(client.send(end).await.status, 200);
    let chunked = replaced(&whole, &format!("content-length: {}", BODY.len()), "transfer-encoding: chunked");
    let head = &chunked[..chunked.len() - BODY.len()];
    let (one, two) = BODY.split_at(7);
    let body = [b"7\r\n".as_slice(), one, b"\r\nc\r\n", two, b"\r\n0\r\n\r\n"].concat();
    assert_eq!(client.send(&[head, &body].concat()).await.status, 200);
}

#[tokio::test]
async fn who_has_not_is_not_and_nothing_is_done() {
    let (address, store) = serve(&known()).await;
    let good = signed("GetItem", ("orders", "secret"), BODY, "");
    for (request, error) in [
        (replaced(&good, "abc", "abd"), "InvalidSignatureException"),
        (replaced(&good, "GetItem", "PutItem"), "InvalidSignatureException"),
        (replaced(&good, "eu-west-1/", "us-east-1/"), "InvalidSignatureException"),
        (replaced(&good, "/dynamodb/", "/sqs/"), "InvalidSignatureException"),
        (replaced(&good, "x-amz-date", "date"), "IncompleteSignatureException"),
        (replaced(&good, "Credential=orders", "Credential=reports"), "InvalidSignatureException"),
        (replaced(&good, "Credential=orders", "Credential=nobody"), "UnrecognizedClientException"),
        (replaced(&good, "POST / ", "POST /? "), "IncompleteSignatureException"),
        (replaced(&good, "host: localhost", "host: LOCALHOST"), "InvalidSignatureException"),
        (signed("GetItem", ("orders", "guess"), BODY, ""), "InvalidSignatureException"),
        (
            signed("GetItem", ("orders", "secret"), BODY, "x-amz-security-token: t\r\n"),
            "UnrecognizedClientException",
        ),
        (
            signed("GetItem", ("orders", "secret"), BODY, "content-encoding: gzip\r\n"),
            "IncompleteSignatureException",
        ),
        (
            signed("GetItem", ("orders", "secret"), BODY, "x-amz-target: DynamoDB_20120810.PutItem\r\n"),
            "IncompleteSignatureException",
        ),
        // What is served where no clients are known.
        (post("GetItem", BODY), "IncompleteSignatureException"),
    ] {
        let answer = Client::to(address).await.send(&request).await;
        assert_eq!(
            (answer.status, answer.error().as_str()),
            (400, error),
            "{}",
            String::from_utf8_lossy(&request)
        );
    }
    let unsigned = replaced(&good, "authorization", "x-authorization");
    assert_eq!(
        Client::to(address).await.send(&unsigned).await.error(),
        "MissingAuthenticationTokenException"
    );
    assert_eq!((store.calls("GetItem"), store.calls("PutItem")), (0, 0));
}

#[tokio::test]
async fn a_wrong_signature_leaves_the_connection_and_a_wrong_head_ends_it() {
    let (address, store) = serve(&known()).await;
    let mut client = Client::to(address).await;
    let good = signed("GetItem", ("orders", "secret"), BODY, "");
    assert_eq!(client.send(&replaced(&good, "abc", "abd")).await.error(), "InvalidSignatureException");
    assert_eq!(client.send(&good).await.status, 200);
    // What follows such a head is dropped as it comes, however large it is.
    let large = signed("PutItem", ("orders", "secret"), &[b' '; 5000], "");
    let answer = client.send(&replaced(&large, "eu-west-1/", "us-east-1/")).await;
    assert_eq!(
        (answer.error().as_str(), answer.header("connection")),
        ("InvalidSignatureException", Some("close"))
    );
    assert!(client.is_closed().await);
    for request in [replaced(&good, "POST / ", "POST /x "), replaced(&good, "POST / ", "PUT / ")] {
        let mut client = Client::to(address).await;
        assert_eq!(client.send(&request).await.status, 404);
        assert!(client.is_closed().await);
    }
    let health = Client::to(address).await.send(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
    assert_eq!(health.status, 200, "health is nobody's secret");
    assert_eq!(store.calls("PutItem"), 0);
}

#[tokio::test]
async fn what_is_signed_is_still_checked() {
    let (address, store) = serve(&known()).await;
    let key = ("orders", "secret");
    for (request, error) in [
        (signed("Nope", key, BODY, ""), "UnknownOperationException"),
        (signed("GetItem", key, b"", ""), "SerializationException"),
        (signed("GetItem", key, b"{", ""), "SerializationException"),
        (signed("GetItem", key, BODY, "origin: http://localhost\r\n"), "AccessDeniedException"),
    ] {
        assert_eq!(Client::to(address).await.send(&request).await.error(), error);
    }
    assert_eq!(store.calls("GetItem"), 0);
}

#[tokio::test]
async fn other_clients_hold_from_the_next_request_on() {
    let known = known();
    let (address, _) = serve(&known).await;
    let mut client = Client::to(address).await;
    let request = |secret| signed("GetItem", ("orders", secret), BODY, "");
    assert_eq!(client.send(&request("secret")).await.status, 200);
    known.store(Arc::new(clients(["rotated", "other"])));
    assert_eq!(client.send(&request("secret")).await.error(), "InvalidSignatureException");
    assert_eq!(client.send(&request("rotated")).await.status, 200);
}

#[tokio::test]
async fn a_list_shows_what_a_client_may_see_whatever_limit_it_gives() {
    let known = clients_with(["restricted", "other"], "tables = \"abc\"");
    let (address, _) = serve(&Arc::new(ArcSwap::from_pointee(known))).await;
    let mut client = Client::to(address).await;
    for limit in ["null", "1", "1.5", "1e0", "99.9", "100.5", "0", "-1", "101", "1e300"] {
        let body = format!(r#"{{"Limit":{limit}}}"#);
        let answer = client.send(&signed("ListTables", ("orders", "restricted"), body.as_bytes(), "")).await;
        assert_eq!((answer.status, answer.text()), (200, r#"{"TableNames":["abc"]}"#), "{limit}");
    }
}

#[tokio::test]
async fn bodies_of_those_who_are_not_known_take_no_room() {
    let one_megabyte = Limits { memory: 1 << 20, ..little_room() };
    let (address, _) = serve_within(one_megabyte, &known()).await;
    let body = [BODY, &vec![b' '; 300 << 10]].concat();
    let strange = signed("GetItem", ("nobody", "guess"), &body, "");
    let (most, rest) = strange.split_at(strange.len() - 10);
    let mut strangers = Vec::new();
    for _ in 0..8 {
        let mut stranger = Client::to(address).await;
        stranger.write(most).await;
        strangers.push(stranger);
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    let answer = Client::to(address).await.send(&signed("GetItem", ("orders", "secret"), &body, "")).await;
    assert_eq!((answer.status, answer.text()), (200, r#"{"Item":{}}"#));
    for mut stranger in strangers {
        assert_eq!(stranger.send(rest).await.error(), "UnrecognizedClientException");
    }
    let large = signed("GetItem", ("nobody", "guess"), &[b' '; 401 << 10], "");
    assert_eq!(Client::to(address).await.send(&large).await.error(), "RequestEntityTooLarge");
}

#[tokio::test]
async fn bodies_in_the_name_of_one_client_leave_room_to_another() {
    let (address, _) = serve_within(little_room(), &known()).await;
    let body = [BODY, &vec![b' '; 300 << 10]].concat();
    // Who knows an id, and no secret.
    let wrong = signed("GetItem", ("orders", "guess"), &body, "");
    let most = &wrong[..wrong.len() - 10];
    let mut guessing = Vec::new();
    for _ in 0..12 {
        let mut one = Client::to(address).await;
        one.write(most).await;
        guessing.push(one);
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    for _ in 0..2 {
        let answer =
            Client::to(address).await.send(&signed("GetItem", ("reports", "other"), &body, "")).await;
        assert_eq!((answer.status, answer.text()), (200, r#"{"Item":{}}"#));
    }
    drop(guessing);
}
