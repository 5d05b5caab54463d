//! What lies in the store behind the gateway: every item once, under the physical key of its home
//! shard.
//!
//! Decodes with the layouts' own codec and hashes; that these are right is their own tests' affair
//! (`layout`).

use std::collections::BTreeSet;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use heatsink_dynamo::Number;
use heatsink_layout::{InForce, LayoutSource, PrimaryKey, SortKey};
use heatsink_store::Store;
use serde_json::{Value as Json, json};

use crate::compare::Answer;
use crate::generate::Step;
use crate::judge::Judge;
use crate::schema::Table;
use crate::shrink::Case;
use crate::world::World;
use crate::{compare, counters, lacking, moving, recorded};

/// The first item that is not where it must be, or is not the unsharded store's.
pub fn misplaced(case: &Case, plain: &dyn Store, sharded: &World) -> Option<String> {
    case.tables.iter().find_map(|table| misplaced_in(case, table, plain, sharded))
}

/// The distinct partition keys of a table.
pub fn partition_keys(table: &Table, store: &dyn Store) -> BTreeSet<String> {
    items(table, store).iter().map(|item| item[table.partition.0].to_string()).collect()
}

fn misplaced_in(case: &Case, table: &Table, plain: &dyn Store, sharded: &World) -> Option<String> {
    let schema = sharded.control.table(table.name);
    let mut rows = counters::Rows::default();
    let stored = items(table, &*sharded.raw);
    for mut item in stored.clone() {
        if let Some(schema) = &schema {
            let (name, kind) = table.partition;
            let physical = bytes(&item[name], kind);
            let logical = schema.logical(&physical);
            if schema.is_part(&physical) {
                item[name] = value(logical, kind);
                rows.take(table, item, true);
                continue;
            }
            item = moving::unmarked(item);
            let in_force = sharded.control.in_force(schema, logical);
            let mut layout = Arc::clone(in_force.settled());
            if let (Some((logical, slots)), InForce::Moving(moving)) =
                (moving::slots(table, sharded, &item), &in_force)
            {
                let new = schema.physical(&logical, &moving.to, slots.to).unwrap();
                let there = |other: &Json| {
                    bytes(&other[name], kind) == new
                        && table.sort.is_none_or(|(sort, _)| other[sort] == item[sort])
                };
                if physical == new || slots.from == slots.to {
                    layout = Arc::clone(&moving.to);
                } else if let Some(moved) = stored.iter().find(|other| there(other)) {
                    // The copy in the new slot is the item, and must not expire before this one.
                    if recorded::expires(table).is_some_and(|expires| moved.get(expires).is_some()) {
                        return Some(format!("an item of {} expires and leaves {item}: {moved}", table.name));
                    }
                    continue;
                }
            }
            let sort = table.sort.map(|(name, kind)| (bytes(&item[name], kind), kind));
            let of_sort = sort.as_ref().map(|(bytes, kind)| sort_key(bytes, kind));
            let home = match schema.assigned_slot(&physical) {
                Some(slot) if layout.slots_of(of_sort).is_ok_and(|slots| slots.contains(&slot)) => Ok(slot),
                _ => layout.slot_of(of_sort),
            };
            let home = home.and_then(|home| schema.physical(logical, &layout, home));
            if home.as_ref() != Ok(&physical) {
                return Some(format!("an item of {} is not at its home {home:?}: {item}", table.name));
            }
            let (logical, partition) = (value(logical, kind), logical.to_vec());
            for key in schema.index_keys() {
                let (name, kind) = (&key.attribute().name, key.attribute().key_type.name());
                if item[name][kind].is_null() {
                    continue;
                }
                let stored = bytes(&item[name], kind);
                let said = key.logical(&stored);
                let primary = PrimaryKey {
                    partition: sort_key(&partition, table.partition.1),
                    sort: sort.as_ref().map(|(bytes, kind)| sort_key(bytes, kind)),
                };
                let suffixes = key.suffixes(said, primary);
                if !suffixes.iter().any(|suffix| suffix.as_bytes() == &stored[said.len()..]) {
                    return Some(format!(
                        "{name} of an item of {} is not stored as it must be: {item}",
                        table.name
                    ));
                }
                item[name] = value(said, kind);
            }
            item[name] = logical;
        }
        rows.take(table, item, false);
    }
    let texts = |items: Vec<Json>| -> Vec<String> {
        let mut all = Answer { pages: items, ..Answer::default() };
        if case.judge == Judge::DynamoDbLocal {
            lacking::canonical_sums(&case.rules, &mut all);
        }
        all.pages.iter().map(Json::to_string).collect()
    };
    let (mut logical, mut expected) = (texts(rows.items()), texts(items(table, plain)));
    logical.sort_unstable();
    expected.sort_unstable();
    (logical != expected).then(|| {
        format!(
            "{} stores differ:\n  unsharded {}\n  sharded   {}",
            table.name,
            expected.join(" "),
            logical.join(" ")
        )
    })
}

pub fn items(table: &Table, store: &dyn Store) -> Vec<Json> {
    let step = Step { operation: "Scan".to_owned(), body: json!({"TableName": table.name}) };
    let scanned = compare::run(store, &step);
    assert_eq!(scanned.error, None, "a scan fails");
    scanned.pages.iter().filter_map(|page| page["Items"].as_array()).flatten().cloned().collect()
}

pub fn bytes(value: &Json, kind: &str) -> Vec<u8> {
    let text = value[kind].as_str().expect("a key has its type");
    match kind {
        "B" => STANDARD.decode(text).expect("base64"),
        "N" => Number::parse(text).expect("a number").canonical_bytes(),
        _ => text.as_bytes().to_vec(),
    }
}

pub fn value(bytes: &[u8], kind: &str) -> Json {
    let text =
        if kind == "B" { STANDARD.encode(bytes) } else { String::from_utf8(bytes.to_vec()).expect("UTF-8") };
    json!({ kind: text })
}

pub fn sort_key<'a>(bytes: &'a [u8], kind: &str) -> SortKey<'a> {
    let text = || std::str::from_utf8(bytes).expect("UTF-8");
    match kind {
        "S" => SortKey::S(text()),
        "N" => SortKey::N(text()),
        _ => SortKey::B(bytes),
    }
}
