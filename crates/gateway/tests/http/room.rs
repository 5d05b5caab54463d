//! Room for bodies that come in the name of clients whose ids somebody knows.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use heatsink_gateway::Limits;

use crate::client::Client;
use crate::server::little_room;
use crate::signed::{clients_of, serve_within, signed};

#[tokio::test]
async fn bodies_in_many_names_leave_room_to_each_other_client() {
    let wide = Limits { body: 1 << 20, memory: 8 << 20, ..little_room() };
    let ids: Vec<(String, &str)> = (0..7).map(|n| (format!("k{n}"), "many-names")).collect();
    let (address, _) = serve_within(wide, &Arc::new(ArcSwap::from_pointee(clients_of(&ids, "")))).await;
    let body = |bytes: usize| [&br#"{"TableName":"abc"}"#[..], &vec![b' '; bytes]].concat();
    // Who knows six ids, and no secret: several large bodies in each name.
    let mut guessing = Vec::new();
    for n in 0..24 {
        let id = format!("k{}", n % 6);
        let wrong = signed("GetItem", (&id, "guess"), &body(900 << 10), "");
        let mut one = Client::to(address).await;
        one.write(&wrong[..wrong.len() - 10]).await;
        guessing.push(one);
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    for _ in 0..2 {
        let right = signed("GetItem", ("k6", "many-names"), &body(200 << 10), "");
        let answer = Client::to(address).await.send(&right).await;
        assert_eq!((answer.status, answer.text()), (200, r#"{"Item":{}}"#));
    }
    drop(guessing);
}
