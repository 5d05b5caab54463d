//! A table that is turned round while its keys are on their way: what the run before asked for does
//! not go on once all is said to be done.
//!
//! Not here: tables that turn under clients (`table_online`).

use std::pin::pin;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures::channel::oneshot;
use futures::executor::block_on;
use futures::future::select;
use heatsink_control::reshard_intent::{Request, ReshardIntent};
use heatsink_dynamo::Operation;
use heatsink_env::RealEnv;
use heatsink_layout::TablePhase;
use heatsink_workers::{Direction, LiveAdoption, LiveNext, PreparedLive, Progress, Unwatched, WorkerError};
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

async fn prepared(town: &Town, shards: u16) -> Box<LiveAdoption> {
    let (store, env) = (town.raw.clone(), Arc::new(RealEnv));
    let rules = rules(shards);
    let direction = if shards == 1 { Direction::Back } else { Direction::Adopt };
    match LiveAdoption::prepare(store, env, &rules, ("Scores", direction), 100, false).await {
        Ok(PreparedLive::Live(live)) => live,
        _ => panic!("not live"),
    }
}

/// Tells once a phase is on record.
struct At(TablePhase, Mutex<Option<oneshot::Sender<()>>>);

impl Progress for At {
    fn table(&self, phase: TablePhase) {
        if let Some(tell) = self.1.lock().unwrap().take_if(|_| phase == self.0) {
            tell.send(()).unwrap();
        }
    }
}

/// A command that is killed once that phase is on record.
async fn comes_to(town: Arc<Town>, shards: u16, phase: TablePhase) {
    let mut live = prepared(&town, shards).await;
    let (tell, told) = oneshot::channel();
    let at = At(phase, Mutex::new(Some(tell)));
    drop(select(pin!(live.next(&at)), told).await);
    assert!(at.1.lock().unwrap().is_none(), "it does not come to {phase:?}");
}

/// A command that asks gateways to move the keys, and is killed then.
async fn asks_and_dies(town: Arc<Town>, shards: u16) {
    let mut live = prepared(&town, shards).await;
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

#[test]
fn who_turns_round_twice_leaves_no_key_where_it_was() {
    for phase in [TablePhase::Enter, TablePhase::Prepare, TablePhase::Hold] {
        let town = filled();
        turned(&town, 4);
        // Every key still has its shards, and is about to come back.
        block_on(town.runtime.spawn(asks_and_dies(Arc::clone(&town), 1))).unwrap();
        block_on(town.runtime.spawn(comes_to(Arc::clone(&town), 4, phase))).unwrap();
        turned(&town, 1);
        let physical =
            town.scanned().iter().filter(|item| item["pk"]["S"].as_str().unwrap().contains("#~")).count();
        assert_eq!(physical, 0, "{phase:?}");
        assert!(block_on(town.registry().named("Scores")).unwrap().is_empty(), "{phase:?}");
    }
}

/// Killed once all is back, and before its record is taken off: clients go on while that is done.
#[test]
fn a_record_that_says_nothing_is_taken_off_by_who_brings_the_table_back() {
    let town = filled();
    let registry = town.registry();
    block_on(async {
        let described = registry.describe("Scores").await.unwrap().unwrap();
        let empty = registry.first_record(&described, Default::default(), true);
        assert!(empty.is_empty());
        assert_eq!(registry.create_unless_frozen(None, &empty).await.unwrap(), empty);
    });
    turned(&town, 1);
    assert_eq!(block_on(registry.named("Scores")).unwrap(), []);
}
