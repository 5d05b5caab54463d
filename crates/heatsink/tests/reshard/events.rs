//! What a gateway does by itself is told as it happens: decisions, their ends, and keys that are
//! left alone.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use futures::FutureExt;
use heatsink_env::{Env, RealEnv};
use heatsink_workers::{Acts, Sent, carry, events};
use serde_json::{Value as Json, json};

use crate::automatic::{Told, hot, rules};
use crate::town::Town;

#[test]
fn a_decision_its_end_and_a_key_that_is_left_alone_are_told_once() {
    let town = Town::new(&rules("keys = \"game_*\"\nmode = \"auto\""));
    town.fill("game_x", 20);
    let env: Arc<dyn Env> = Arc::new(RealEnv);
    let (taking, queue) = events(Arc::clone(&env));
    let seen = Arc::new(Told::of(vec![hot("game_x", 5_000.0, 5_000.0), hot("user_x", 5_000.0, 5_000.0)]));
    let acts = Arc::new(Acts::telling(taking));
    let (store, control) = (town.raw.clone(), town.controls[0].clone());
    town.runtime.spawn(carry(store, env, control, seen, acts, Duration::ZERO, futures::future::pending()));
    let (sender, told) = channel();
    town.runtime.spawn(async move {
        let send = |event: bytes::Bytes| {
            let _ = sender.send(serde_json::from_slice::<Json>(&event).unwrap());
            std::future::ready(Sent::Taken).boxed()
        };
        queue.deliver("g1", send, futures::future::pending().boxed()).await;
    });
    let mut all: Vec<Json> = Vec::new();
    while !all.iter().any(|one| one["event"] == "ended") {
        all.push(told.recv_timeout(Duration::from_secs(60)).unwrap());
    }
    let of = |event: &str, key: &str| -> Vec<&Json> {
        all.iter().filter(|one| one["event"] == event && one["key"] == key).collect()
    };
    let (decisions, ends) = (of("decision", "game_x"), of("ended", "game_x"));
    assert_eq!((decisions.len(), ends.len(), of("left_alone", "user_x").len()), (1, 1, 1), "{all:?}");
    assert_eq!((&decisions[0]["outcome"], &ends[0]["outcome"]), (&json!("asked"), &json!("moved")));
    assert_eq!((&decisions[0]["what"], &ends[0]["gateway"]), (&json!("shards"), &json!("g1")));
    assert!(ends[0]["asked_by"].as_str().unwrap().starts_with("automatic"), "{}", ends[0]);
    assert_eq!(of("left_alone", "user_x")[0]["reason"], "no-section");
    assert!(
        all.iter().all(|one| one["id"].is_string() && one["at_ms"].is_u64() && one["sentence"].is_string())
    );
}
