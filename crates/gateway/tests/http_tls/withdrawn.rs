//! Certificates whose clients, rights or CA are taken away while a body comes, and chains that end.

use std::sync::Arc;
use std::time::Duration;

use heatsink_env::{Env, RealEnv};
use heatsink_gateway::Limits;

use crate::certificates::{Ca, Pair};
use crate::client::{Client, post};
use crate::identity::{Asking, CLIENTS, known, refused, settings, signed};
use crate::server::limits;

const BODY: &[u8] = br#"{"TableName":"abc","Key":{"pk":{"S":"a"}}}"#;

async fn serve(ca: &Ca) -> Asking {
    Asking::within(Limits { body_read: Duration::from_secs(10), ..limits() }, &ca.pem(), known(CLIENTS)).await
}

/// A client that has sent all of that request but its last byte.
async fn begun(server: &Asking, pair: &Pair, request: &[u8]) -> Client {
    let mut client = server.connect(pair).await;
    client.write(&request[..request.len() - 1]).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    client
}

#[tokio::test]
async fn what_is_taken_away_while_a_body_comes_is_refused() {
    let (ca, get) = (Ca::new(), signed("GetItem", BODY, ("any", "any")));
    let jobs = ca.sign(&["spiffe://a/jobs"]);
    let end = &get[get.len() - 1..];
    for (from, to, said) in [
        ("spiffe://a/jobs", "spiffe://a/gone", "Nor is the certificate spiffe://a/jobs of a client"),
        ("actions = \"GetItem\"", "actions = \"PutItem\"", "User: jobs is not authorized"),
        (
            "actions = \"GetItem\"",
            "SECRET",
            "The certificate is of the client jobs, and the request names the access key of any",
        ),
        ("id = \"keys\"", "id = \"any\"", "the request names the access key of any"),
        (
            "certificate = \"spiffe://a/jobs\"",
            "certificate = \"spiffe://a/jobs\"\nexpires = \"2026-01-01T00:00:00Z\"",
            "The time of the client jobs is over",
        ),
    ] {
        let server = serve(&ca).await;
        let mut client = begun(&server, &jobs, &get).await;
        assert!(CLIENTS.contains(from));
        server.clients.store(Arc::new(known(&CLIENTS.replacen(from, to, 1))));
        refused(&client.send(end).await, said);
        assert_eq!(server.store.calls("GetItem"), 0, "{said}");
    }
    let server = serve(&ca).await;
    let mut client = begun(&server, &jobs, &get).await;
    server.live.replace(settings(&Ca::named("new").pem()));
    refused(&client.send(end).await, "is of no CA that is trusted by now");
    // One that holds still is served, by whatever configuration.
    server.live.replace(settings(&(Ca::named("new").pem() + &ca.pem())));
    let mut client = begun(&server, &jobs, &get).await;
    server.live.replace(settings(&ca.pem()));
    server.clients.store(Arc::new(known(CLIENTS)));
    assert_eq!(client.send(end).await.status, 200);
    assert_eq!(server.store.calls("GetItem"), 1);
}

#[tokio::test]
async fn a_certificate_that_ends_while_a_body_comes_is_refused() {
    let ca = Ca::new();
    let server = serve(&ca).await;
    let now = Duration::from_millis(RealEnv.unix_millis());
    let pair = ca.sign_with(&["spiffe://a/jobs"], |params| {
        params.not_after = rcgen::date_time_ymd(1970, 1, 1) + now + Duration::from_secs(2);
    });
    let get = post("GetItem", BODY);
    let mut client = begun(&server, &pair, &get).await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    refused(&client.send(&get[get.len() - 1..]).await, "has expired");
    assert_eq!(server.store.calls("GetItem"), 0);
}

#[tokio::test]
async fn a_connection_ends_before_any_certificate_of_its_chain() {
    let ca = Ca::new();
    let server = serve(&ca).await;
    let now = Duration::from_millis(RealEnv.unix_millis());
    let ending = |seconds| {
        ca.intermediate(|params| {
            params.not_after = rcgen::date_time_ymd(1970, 1, 1) + now + Duration::from_secs(seconds);
        })
    };
    for (seconds, connection) in [(15, Some("close")), (3_600, None)] {
        let pair = ending(seconds).sign(&["spiffe://a/jobs"]);
        let told = server.ask(&pair, &post("GetItem", BODY)).await;
        assert_eq!((told.status, told.header("connection")), (200, connection));
    }
    let mut client = server.connect(&ending(2).sign(&["spiffe://a/jobs"])).await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    refused(&client.send(&post("GetItem", BODY)).await, "has expired");
    assert_eq!(server.store.calls("GetItem"), 2);
}
