//! Worlds in which the buckets of keys get another number of shards from one on while clients go
//! on: one gateway after the other knows the change more, and at any time two take calls that are
//! one phase apart. Writes into the buckets to come wait until the change is made: as a client
//! gives up, they are left out.

use std::sync::Arc;

use bytes::Bytes;
use futures::executor::block_on;
use heatsink_control::{Control, KeyRecord, Move};
use heatsink_dynamo::{KeyType, Operation, Origin};
use heatsink_layout::{Bucket, Layout, Phase, SortKey};
use heatsink_route::Router;
use heatsink_store::Store;

use crate::recorded::on_record;
use crate::schema::Table;

/// What gateways know, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    Nothing,
    In(Phase),
    Rests,
}

pub const VIEWS: [View; 4] = [View::Nothing, View::In(Phase::Reserve), View::In(Phase::Prepare), View::Rests];

/// A key, the numbers of shards that older buckets of it have, the number of the newest, and the
/// one that buckets to come get. Where no older bucket has another number it is the rule's, by
/// which gateways go that know no record.
type Key = (&'static str, &'static [u16], u16, u16);

const KEYS: &[Key] = &[
    ("a", &[], 0, 3),
    ("b", &[2], 3, 1),
    ("game", &[1, 4], 2, 5),
    ("game#1", &[], 0, 4),
    ("game#~1", &[3], 1, 4),
    ("a#~0", &[1, 2, 1], 3, 2),
];

/// Sort keys of the first bucket to come: among those that clients use the last day, or hour.
const TIMES: &str = "2026-07-01T00#p0";
const NUMBERS: &str = "1782093600";

/// Whether buckets get other shards under these rules.
pub fn has(rules: &str) -> bool {
    rules.trim_end().ends_with("# buckets step")
}

/// The layout that a key has by rules, with older buckets that had other numbers; and the first
/// bucket to come. `None` for one without buckets.
fn before(table: &Table, of_rule: &Layout, older: &[u16], shards: u16) -> Option<(Layout, Bucket)> {
    let sort = match table.sort?.1 {
        "S" => SortKey::S(TIMES),
        "N" => SortKey::N(NUMBERS),
        _ => return None,
    };
    let first = of_rule.time()?.bucket_of(sort)?;
    let newest = if older.is_empty() { of_rule.shards } else { shards };
    let numbers: Vec<u16> = older.iter().copied().chain([newest]).collect();
    let oldest = Layout { shards: numbers[0], ..of_rule.clone() };
    let known = numbers.iter().enumerate().skip(1).fold(oldest, |layout, (at, shards)| {
        layout.stepped(first.back(numbers.len() - at), *shards).unwrap()
    });
    Some((known, first))
}

/// Writes what the next gateway is to know of a table.
pub fn write(raw: &Arc<dyn Store>, table: &Table, view: View) {
    if table.partition.1 != "S" || table.sort.is_none() {
        return;
    }
    for (key, older, shards, new) in KEYS {
        let (_, record) = on_record(raw, table);
        let Some(of_rule) = record.layouts.of(key.as_bytes()) else { continue };
        let Some((layout, first)) = before(table, of_rule, older, *shards) else { continue };
        let to = layout.stepped(first, if *new == layout.shards { *new + 1 } else { *new }).unwrap();
        let reserve = |to: &Layout| (to.clone(), Phase::Reserve);
        match view {
            View::Nothing if older.is_empty() => {}
            View::Nothing => {
                // A first record says that a change begins.
                let oldest = Layout { shards: layout.steps()[0].shards, ..Layout::clone(of_rule) };
                put(raw, table, key, &oldest, Some(reserve(&layout)));
                put(raw, table, key, &layout, None);
            }
            View::In(phase) => put(raw, table, key, &layout, Some((to, phase))),
            View::Rests => put(raw, table, key, &to, None),
        }
    }
}

/// Writes the record of a key.
fn put(raw: &Arc<dyn Store>, table: &Table, key: &str, layout: &Layout, moves: Option<(Layout, Phase)>) {
    let (registry, record) = on_record(raw, table);
    let reserved_before = layout.most_shards();
    let reserved = moves.as_ref().map_or(0, |(to, _)| to.most_shards()).max(reserved_before);
    let settled = moves.is_none();
    let moves = moves.map(|(to, phase)| Move {
        to,
        phase,
        reserved_before,
        closing: false,
        expires: None,
        marks: false,
        high_water: None,
    });
    let found = block_on(registry.key_record(&record.id, key.as_bytes(), KeyType::S)).unwrap();
    let version = found.as_ref().map_or(1, |found| found.version + 1);
    let (key, key_type, layout, changed, since) = (key.as_bytes().to_vec(), KeyType::S, layout.clone(), 0, 0);
    let to = KeyRecord { key, key_type, layout, moves, settled, reserved, version, changed, since };
    let written = block_on(registry.replace_key(&record, found.as_ref(), &to)).unwrap();
    let (_, written) = written.expect("nobody else writes");
    assert_eq!(written.since, 0, "no item lies elsewhere");
}

/// The error of a request that waits at a gateway with that view, or that no client sends before
/// the change begins: what it would be told in the end.
pub fn waits(control: &Control, operation: Operation, body: &Bytes) -> Option<heatsink_dynamo::Error> {
    let planned = Router::new().plan(operation, body, control);
    planned.err().filter(|error| error.origin == Origin::Held)
}

#[test]
fn the_buckets_of_keys_have_had_several_numbers() {
    let table = crate::schema::tables().into_iter().find(|table| table.name == "Times").unwrap();
    let rules = "rule = [{ table = \"Times\", strategy = \"bucket\", bucket = \"day\", shards = 7 }]";
    let world = crate::world::World::new(crate::judge::Judge::Engine, std::slice::from_ref(&table), rules);
    let (_, record) = on_record(&world.raw, &table);
    let of_rule = record.layouts.of(b"game").unwrap();
    let (layout, first) = before(&table, of_rule, &[1, 4], 2).unwrap();
    let numbers = [2, 1, 0].map(|back| layout.shards_in(first.back(back)));
    assert_eq!((numbers, first.to_string().as_str()), ([4, 2, 2], "2026-07-01"));
    assert_eq!(layout.shards_in(first.back(3)), 1);
}
