//! Keys of one table that move together: how long until all of them have been cut over, beside one
//! alone, and what becomes of each when some are killed, cancelled or cannot move.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::executor::block_on;
use heatsink_control::KeyRecord;
use heatsink_control::reshard_intent::{EndedAs, Request};
use heatsink_dynamo::Operation;
use heatsink_env::{Env, RealEnv};
use heatsink_layout::Phase;
use heatsink_workers::{Pace, TableContext};
use serde_json::json;

use super::town::{RULES, Town};

/// Items of each key.
const ITEMS: usize = 30;

fn names(prefix: &str, keys: usize) -> Vec<String> {
    (0..keys).map(|key| format!("{prefix}{key:03}")).collect()
}

/// Asks for four shards of each key.
fn ask(town: &Town, keys: &[String], rate: u32) {
    let rules = &town.rules;
    let context =
        block_on(TableContext::read(town.raw.clone(), Arc::new(RealEnv), rules, "Scores", false)).unwrap();
    for (nth, key) in (0..).zip(keys) {
        let request = Request {
            layout: context.in_full(key.as_bytes(), &4.into()),
            rate,
            streams_confirmed: false,
            by: "test".to_owned(),
            // In the order of the list, also where a clock stands still.
            asked: RealEnv.unix_millis() + nth,
        };
        let subject = (key.as_bytes(), context.key_type()).into();
        let intent = block_on(context.registry().ask((context.id(), "Scores"), subject, request)).unwrap();
        assert!(intent.is_some(), "{key}");
    }
}

/// Whether the key's new slots take its writes.
fn is_at_move(record: &KeyRecord) -> bool {
    match &record.moves {
        Some(moves) => moves.phase == Phase::Move,
        None => record.layout.shards == 4,
    }
}

fn is_relieved(town: &Town, key: &str) -> bool {
    town.record(key).as_ref().is_some_and(is_at_move)
}

/// How long it takes until all keys are relieved, from when they are asked for.
fn relief(town: &Town, keys: &[String]) -> Duration {
    for key in keys {
        town.fill(key, ITEMS);
    }
    let begun = RealEnv.now();
    ask(town, keys, 1_000);
    town.until("relief", || keys.iter().all(|key| is_relieved(town, key)).then_some(()));
    let took = RealEnv.now().since(begun);
    for key in keys {
        assert_eq!(town.ended(key).0, EndedAs::Moved, "{key}");
        assert_eq!(town.lies(key).values().sum::<usize>(), ITEMS, "{key}");
    }
    took
}

#[test]
fn ten_keys_take_hardly_more_steps_than_one() {
    let town = Town::new(RULES);
    let _carries = town.carry();
    let steps = |keys: &[String]| {
        let before = town.epoch();
        let took = relief(&town, keys);
        (town.epoch() - before, took.as_millis())
    };
    let (one, alone) = steps(&names("one", 1));
    let (ten, together) = steps(&names("ten", 10));
    println!("one key: {one} steps, relief after {alone} ms; ten: {ten} steps, {together} ms");
    // By themselves they take ten times as many. How many are put together depends on how busy the
    // machine is.
    assert!(ten < one * 8, "{one} {ten}");
}

#[test]
#[ignore = "a figure for the journal: one, ten and a hundred keys at the pace of production"]
fn how_long_a_hundred_keys_take() {
    for keys in [1, 10, 100] {
        let town = Town::new(RULES);
        let _carries: Vec<_> =
            (0..3).map(|gateway| town.carries_at(Pace::DEFAULT, gateway, town.raw.clone())).collect();
        let names = names("k", keys);
        names.iter().for_each(|key| town.fill(key, ITEMS));
        let begun = RealEnv.now();
        ask(&town, &names, 1_000);
        let registry = town.registry();
        let id = town.table_id();
        let relieved = || {
            town.pause(Duration::from_millis(90));
            let records = block_on(registry.key_records(&id)).unwrap();
            (records.into_iter().filter(is_at_move).count() == keys).then_some(())
        };
        town.until("relief", relieved);
        println!("relief of {keys} keys: {} ms", RealEnv.now().since(begun).as_millis());
    }
}

#[test]
fn keys_that_are_asked_for_later_do_not_wait_for_the_items_of_the_former_ones() {
    let town = Town::new(RULES);
    let _carries = town.carry();
    let slow = names("slow", 2);
    for key in &slow {
        town.fill(key, 400);
    }
    ask(&town, &slow, 40);
    town.until("the first", || slow.iter().all(|key| is_relieved(&town, key)).then_some(()));
    let later = names("later", 2);
    relief(&town, &later);
    for key in &slow {
        let moves = town.record(key).unwrap().moves;
        assert!(moves.is_some(), "{key} has 400 items left to move at 10 a second");
    }
}

#[test]
fn one_of_them_is_cancelled_or_in_the_way_and_the_others_go_on() {
    let town = Town::new(RULES);
    let keys = names("k", 6);
    for key in &keys {
        town.fill(key, ITEMS);
    }
    // An item of a client under the name of a shard.
    let taken = json!({ "TableName": "Scores", "Item": { "pk": { "S": "k003#~2" }, "sk": { "S": "a" } } });
    block_on(town.raw.call(Operation::PutItem, Bytes::from(taken.to_string()))).unwrap();
    ask(&town, &keys, 1_000);
    assert!(town.change("k001", |intent| intent.cancelled = true));
    let _carries = town.carry();
    for key in &keys {
        let (how, text) = town.ended(key);
        let (expected, shards) = match &**key {
            "k001" => (EndedAs::Cancelled, 1),
            "k003" => (EndedAs::Stopped, 1),
            _ => (EndedAs::Moved, 4),
        };
        assert_eq!((how, town.shards(key)), (expected, shards), "{key}: {text}");
    }
    assert!(town.ended("k003").1.contains("k003#~2"));
}

#[test]
fn a_key_and_one_under_the_name_of_its_shard_never_both_move() {
    let town = Town::new(RULES);
    let pair = ["game".to_owned(), "game#~1".to_owned()];
    ask(&town, &pair, 1_000);
    let _carries = town.carry();
    let ended: Vec<_> = pair.iter().map(|key| town.ended(key)).collect();
    assert!(ended.iter().any(|(how, _)| *how == EndedAs::Stopped), "{ended:?}");
    let spread = pair.iter().filter(|key| town.shards(key) == 4).count();
    assert!(spread <= 1, "{ended:?}");
}
