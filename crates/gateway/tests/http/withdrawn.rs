//! Clients that change while a body comes: who may do what is decided once it is whole.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use heatsink_access::Clients;
use heatsink_gateway::Limits;

use crate::client::Client;
use crate::server::limits;
use crate::signed::{clients_of, serve_within, signed};
use crate::store::Double;

const BODY: &[u8] = br#"{"TableName":"abc","Item":{"pk":{"S":"a"}}}"#;

/// The client `orders` beside another one, with more in their sections.
fn orders(secret: &str, more: &str) -> Clients {
    clients_of(&[("orders".to_owned(), secret), ("reports".to_owned(), "other")], more)
}

async fn serve(clients: Clients) -> (SocketAddr, Double, Arc<ArcSwap<Clients>>) {
    let clients = Arc::new(ArcSwap::from_pointee(clients));
    let limits = Limits { body_read: Duration::from_secs(10), ..limits() };
    let (address, store) = serve_within(limits, &clients).await;
    (address, store, clients)
}

/// A client that has sent all of that request but its last byte.
async fn begun(address: SocketAddr, request: &[u8]) -> Client {
    let mut client = Client::to(address).await;
    client.write(&request[..request.len() - 1]).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    client
}

#[tokio::test]
async fn what_is_taken_away_while_a_body_comes_is_refused() {
    let put = signed("PutItem", ("orders", "withdrawn"), BODY, "");
    let gone = clients_of(&[("reports".to_owned(), "gone")], "");
    for (after, error) in [
        (gone, "UnrecognizedClientException"),
        (orders("rotated-away", ""), "InvalidSignatureException"),
        (orders("withdrawn", "actions = \"GetItem\""), "AccessDeniedException"),
        (orders("withdrawn", "tables = \"other\""), "AccessDeniedException"),
        (orders("withdrawn", "expires = \"2026-01-01T00:00:00Z\""), "ExpiredTokenException"),
    ] {
        let (address, store, clients) = serve(orders("withdrawn", "")).await;
        let mut client = begun(address, &put).await;
        clients.store(Arc::new(after));
        let answer = client.send(&put[put.len() - 1..]).await;
        assert_eq!((answer.status, answer.error().as_str()), (400, error));
        assert_eq!(store.calls("PutItem"), 0, "{error}");
    }
}

#[tokio::test]
async fn what_holds_still_is_served_and_what_was_not_kept_is_not() {
    let (address, store, clients) = serve(orders("holds-still", "")).await;
    let put = signed("PutItem", ("orders", "holds-still"), BODY, "");
    let mut client = begun(address, &put).await;
    clients.store(Arc::new(orders("holds-still", "")));
    assert_eq!(client.send(&put[put.len() - 1..]).await.status, 200);
    assert_eq!(store.calls("PutItem"), 1);
    // Who becomes known while its body comes is so from its next request on.
    let late = signed("PutItem", ("late", "holds-late"), BODY, "");
    let mut client = begun(address, &late).await;
    clients.store(Arc::new(clients_of(&[("late".to_owned(), "holds-late")], "")));
    let answer = client.send(&late[late.len() - 1..]).await;
    assert_eq!((answer.status, answer.error().as_str()), (400, "UnrecognizedClientException"));
    assert_eq!(client.send(&late).await.status, 200);
    assert_eq!(store.calls("PutItem"), 2);
}

#[tokio::test]
async fn where_clients_become_known_who_has_not_signed_is_refused() {
    let (address, store, clients) = serve(Clients::default()).await;
    for (secret, status) in [("becomes-known", 200), ("guess", 400)] {
        clients.store(Arc::default());
        let put = signed("PutItem", ("orders", secret), BODY, "");
        let mut client = begun(address, &put).await;
        clients.store(Arc::new(orders("becomes-known", "")));
        assert_eq!(client.send(&put[put.len() - 1..]).await.status, status, "{secret}");
    }
    assert_eq!(store.calls("PutItem"), 1);
}
