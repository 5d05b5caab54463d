//! Room for bodies of those who are known by a certificate, and of those whose certificate
//! contradicts what they send.

use std::time::Duration;

use crate::certificates::{Ca, Pair};
use crate::client::Client;
use crate::identity::{Asking, CLIENTS, known, refused, signed};
use crate::server::little_room;

fn body() -> Vec<u8> {
    [&br#"{"TableName":"abc","Key":{"pk":{"S":"a"}}}"#[..], &vec![b' '; 300 << 10]].concat()
}

async fn serve(ca: &Ca) -> Asking {
    Asking::within(little_room(), &ca.pem(), known(CLIENTS)).await
}

/// Twelve bodies that do not come to their end.
async fn hold(server: &Asking, pair: &Pair, request: &[u8]) -> Vec<Client> {
    let mut holding = Vec::new();
    for _ in 0..12 {
        let mut one = server.connect(pair).await;
        one.write(&request[..request.len() - 10]).await;
        holding.push(one);
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    holding
}

#[tokio::test]
async fn who_is_known_by_a_certificate_has_a_share_of_its_own() {
    let ca = Ca::new();
    let server = serve(&ca).await;
    let (jobs, nobody) = (ca.sign(&["spiffe://a/jobs"]), ca.sign(&["spiffe://a/nobody"]));
    let get = |key| signed("GetItem", &body(), key);
    // The one client takes all that it can get, and the other is served.
    let holding = hold(&server, &jobs, &get(("any", "any"))).await;
    assert_eq!(server.ask(&nobody, &get(("keys", "secret"))).await.status, 200);
    drop(holding);
    tokio::time::sleep(Duration::from_millis(300)).await;
    let holding = hold(&server, &nobody, &get(("keys", "guess"))).await;
    assert_eq!(server.ask(&jobs, &get(("any", "any"))).await.status, 200);
    drop(holding);
}

#[tokio::test]
async fn what_a_certificate_contradicts_is_not_kept() {
    let ca = Ca::new();
    let server = serve(&ca).await;
    let nobody = ca.sign(&["spiffe://a/nobody"]);
    let get = |key| signed("GetItem", &body(), key);
    for (names, key, said) in [
        ("both.example", "keys", Some("the request names the access key of keys")),
        ("spiffe://a/jobs", "keys", Some("the request names the access key of keys")),
        // Whether such a client is there is told only to who has its secret, but nothing is kept.
        ("spiffe://a/nobody", "both", None),
    ] {
        let pair = ca.sign(&[names]);
        let wrong = get((key, "guess"));
        let mut holding = hold(&server, &pair, &wrong).await;
        for (whose, own) in [(&nobody, ("keys", "secret")), (&ca.sign(&["both.example"]), ("both", "secret"))]
        {
            for _ in 0..2 {
                assert_eq!(server.ask(whose, &get(own)).await.status, 200, "{names} {key}");
            }
        }
        let answer = holding[0].send(&wrong[wrong.len() - 10..]).await;
        refused(&answer, said.unwrap_or("The request signature we calculated does not match"));
        assert_eq!(answer.header("connection"), said.map(|_| "close"), "{names}: its head was enough");
    }
}
