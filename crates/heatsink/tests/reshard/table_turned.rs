//! A table that is turned round while its keys are on their way: what the run before asked for does
//! not go on once all is said to be done.
//!
//! Not here: tables that turn under clients (`table_online`).

use std::sync::Arc;

use bytes::Bytes;
use futures::executor::block_on;
use heatsink_control::reshard_intent::{Request, ReshardIntent};
use heatsink_dynamo::Operation;
use heatsink_env::RealEnv;
use heatsink_workers::{Direction, LiveAdoption, LiveNext, PreparedLive, Unwatched, WorkerError};
use serde_json::json;

use crate::table_online::{rules, run};
use crate::town::{RULES, Town};

const KEYS: usize = 20;
const ITEMS: usize = 6;

fn filled() -> Arc<Town> {
    let town = Town::new(RULES);
    for key in 0..KEYS {
        for sort in 0..ITEMS {
            let item = json!({ "pk": { "S": format!("game{key}") }, "sk": { "S": sort.to_string() } });
            let body = Bytes::from(json!({ "TableName": "Scores", "Item": item }).to_string());
            block_on(town.raw.call(Operation::PutItem, body)).unwrap();
        }
    }
    town
}

/// A command that asks gateways to move the keys, and is killed then.
async fn asks_and_dies(town: Arc<Town>, shards: u16) {
    let (store, env) = (town.raw.clone(), Arc::new(RealEnv));
    let rules = rules(shards);
    let direction = if shards == 1 { Direction::Back } else { Direction::Adopt };
    let prepared = LiveAdoption::prepare(store, env, &rules, ("Scores", direction), 100, false).await;
    let Ok(PreparedLive::Live(mut live)) = prepared else { panic!("not live") };
    let LiveNext::Move(wishes) = live.next(&Unwatched).await.unwrap() else { panic!("nothing moves") };
    assert_eq!(wishes.len(), KEYS);
    let registry = town.registry();
    let id = registry.describe("Scores").await.unwrap().unwrap().schema.id;
    for wish in wishes {
        let by = "test".to_owned();
        let request = Request { layout: wish.layout, rate: u32::MAX, streams_confirmed: true, by, asked: 0 };
        let subject = (&*wish.key, live.key_type()).into();
        registry.ask((&id, "Scores"), subject, request).await.unwrap().unwrap();
    }
}

/// Turns the table until it has these layouts. Says how often it was told to run again.
fn turned(town: &Arc<Town>, shards: u16) -> usize {
    for again in 0..20 {
        let ended = block_on(town.runtime.spawn(run(town.raw.clone(), shards, 100, Arc::new(Unwatched))));
        match ended.unwrap() {
            Ok(true) => return again,
            Ok(false) | Err(WorkerError::Busy(_) | WorkerError::Cancelled(_)) => {}
            Err(error) => panic!("{error}"),
        }
    }
    panic!("it does not come to its end")
}

#[test]
fn what_was_asked_for_before_does_not_go_on_afterwards() {
    for carried in [false, true] {
        for (first, then) in [(3, 4), (1, 4)] {
            let town = filled();
            turned(&town, 4);
            block_on(town.runtime.spawn(asks_and_dies(Arc::clone(&town), first))).unwrap();
            // Some are on their way by now, some have arrived, and some wait.
            let carrying = if carried { town.carry() } else { Vec::new() };
            town.pause(std::time::Duration::from_millis(if carried { 700 } else { 0 }));
            turned(&town, then);
            let open = || {
                let intents = block_on(town.registry().intents(true)).unwrap().known;
                intents.iter().filter(|one| one.is_open()).map(ReshardIntent::key_text).collect::<Vec<_>>()
            };
            assert_eq!(open(), Vec::<String>::new(), "carried: {carried}, {first} and {then}");
            // Gateways have time for what they might go on with.
            let carrying = if carried { carrying } else { town.carry() };
            town.pause(std::time::Duration::from_secs(1));
            let record = block_on(town.registry().named("Scores")).unwrap().remove(0);
            assert_eq!((record.keys, open().len()), (0, 0), "carried: {carried}, {first} and {then}");
            drop(carrying);
            for key in 0..KEYS {
                let lies = town.lies(&format!("game{key}"));
                assert_eq!(lies.values().sum::<usize>(), ITEMS, "{lies:?}");
                assert!(lies.len() <= 4, "{lies:?}");
            }
            // And whole is whole.
            turned(&town, 1);
            let physical =
                town.scanned().iter().filter(|item| item["pk"]["S"].as_str().unwrap().contains("#~")).count();
            assert_eq!(physical, 0, "carried: {carried}");
        }
    }
}
