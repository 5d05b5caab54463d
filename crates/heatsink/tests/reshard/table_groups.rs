//! Many keys of a table that move in groups, with one step of the fence for a whole group: one of
//! them cannot move, the command is killed in the middle of a group, two commands do it at once.
//!
//! Not here: clients that write meanwhile (`table_online`).

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use futures::executor::block_on;
use heatsink_dynamo::Operation;
use heatsink_layout::{By, Hash, Layout, SortKey, Strategy};
use heatsink_workers::{Unwatched, WorkerError};
use serde_json::json;

use crate::table_online::{run, run_or_die};
use crate::town::{RULES, Town};

/// More than a group has.
const KEYS: usize = 120;
const ITEMS: usize = 5;

fn put(town: &Town, key: &str, sort: usize, filling: usize) -> bool {
    let item =
        json!({ "pk": { "S": key }, "sk": { "S": format!("{sort:03}") }, "f": { "S": "*".repeat(filling) } });
    let body = Bytes::from(json!({ "TableName": "Scores", "Item": item }).to_string());
    block_on(town.raw.call(Operation::PutItem, body)).is_ok()
}

/// A town whose table has many keys of a few items.
fn crowded() -> Arc<Town> {
    let town = Town::new(RULES);
    for key in 0..KEYS {
        assert!((0..ITEMS).all(|sort| put(&town, &format!("game{key:03}"), sort, 10)));
    }
    town
}

/// How many items each key has, and how many of all do not lie under its own name.
fn lies(town: &Town) -> (BTreeMap<String, usize>, usize) {
    let (mut items, mut elsewhere) = (BTreeMap::new(), 0);
    for item in town.scanned() {
        let physical = item["pk"]["S"].as_str().unwrap();
        let logical = physical.split("#~").next().unwrap();
        *items.entry(logical.to_owned()).or_default() += 1;
        elsewhere += usize::from(physical != logical);
    }
    (items, elsewhere)
}

fn all_are_there(town: &Town) {
    let (items, elsewhere) = lies(town);
    assert_eq!(items.len(), KEYS);
    assert!(items.values().all(|items| *items == ITEMS), "{items:?}");
    assert!(elsewhere > KEYS * ITEMS / 2, "{elsewhere} items in other shards than the first");
    let shown = town.call(0, Operation::Scan, &json!({ "TableName": "Scores", "Select": "COUNT" })).unwrap();
    assert_eq!(shown["Count"], KEYS * ITEMS);
}

#[test]
fn a_key_that_cannot_move_holds_up_no_other_and_is_named() {
    let town = crowded();
    let (strategy, hash) = (Strategy::calculated(By::SortKey), Hash::JumpXxh3);
    let layout = Layout { strategy, shards: 4, hash, version: 1 };
    let moves = |sort: &usize| layout.shard_of(Some(SortKey::S(&format!("{sort:03}")))) > 0;
    let sort = (900..1_000).find(moves).unwrap();
    // As long as an item may be: its name as a shard's would be longer.
    assert!((409_500..409_600).rev().any(|filling| put(&town, "game007", sort, filling)));
    let go = || block_on(town.runtime.spawn(run(town.raw.clone(), 4, 100, Arc::new(Unwatched)))).unwrap();
    let ended = go();
    let Err(WorkerError::Stopped(why)) = &ended else { panic!("{ended:?}") };
    assert!(why.contains("\"game007\"") && why.contains("too large"), "{why}");
    let registry = town.registry();
    let records = block_on(registry.key_records(&town.table_id())).unwrap();
    let left: Vec<_> = records.iter().filter(|one| one.moves.is_some()).map(|one| one.key.clone()).collect();
    assert_eq!(left, [b"game007".to_vec()], "the others have moved");
    let (sort, key) = (sort.to_string(), "game007");
    let small = json!({ "TableName": "Scores", "Item": { "pk": { "S": key }, "sk": { "S": sort } } });
    town.call(0, Operation::PutItem, &small).unwrap();
    assert!(go().unwrap());
    let key = json!({ "TableName": "Scores", "Key": { "pk": { "S": key }, "sk": { "S": sort } } });
    town.call(0, Operation::DeleteItem, &key).unwrap();
    all_are_there(&town);
}

#[test]
fn a_command_that_is_killed_in_the_middle_of_a_group_is_gone_on_with() {
    let town = crowded();
    let mut killed = 0;
    for left in [700, 1_500, 2_600, i64::MAX, i64::MAX, i64::MAX] {
        match run_or_die(&town, 4, left, left % 2 == 0) {
            None => {
                killed += 1;
                continue;
            }
            Some(Ok(done)) => assert!(done),
            // Who was killed is not known to be dead yet.
            Some(Err(WorkerError::Busy(_) | WorkerError::Store(_))) => continue,
            Some(Err(error)) => panic!("{error}"),
        }
        assert!(killed > 0, "it was never killed");
        return all_are_there(&town);
    }
    panic!("it does not come to its end");
}

#[test]
fn two_commands_at_once_move_every_key_once() {
    let town = crowded();
    let go = || town.runtime.spawn(run(town.raw.clone(), 4, 100, Arc::new(Unwatched)));
    for _ in 0..20 {
        let ended = [go(), go()].map(|task| block_on(task).unwrap());
        for error in ended.iter().filter_map(|ended| ended.as_ref().err()) {
            assert!(matches!(error, WorkerError::Busy(_) | WorkerError::Store(_)), "{error}");
        }
        if ended.iter().all(Result::is_ok) {
            return all_are_there(&town);
        }
    }
    panic!("they hinder each other for ever");
}
