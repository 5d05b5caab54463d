//! Worlds in which all keys of a table get other layouts: gateways enter keys that have no record,
//! or the table has turned and some keys lie as before.
//!
//! Not here: what positions mean across the turn (`across`), writes that wait for it (`reshard
//! table_online`).

use std::sync::Arc;

use futures::executor::block_on;
use heatsink_control::{KeyLayout, KeyRecord, Record, State, TableChange, TableLayouts};
use heatsink_dynamo::KeyType;
use heatsink_layout::{Glob, TablePhase};
use heatsink_store::Store;

use crate::recorded::{layout, on_record};
use crate::schema::Table;

/// The phase in which tables are under these rules.
pub fn phase(rules: &str) -> Option<TablePhase> {
    let rules = rules.trim_end();
    match () {
        () if rules.ends_with("# tables enter keys") => Some(TablePhase::Enter),
        () if rules.ends_with("# tables have turned") => Some(TablePhase::Rest),
        () => None,
    }
}

/// Puts the change on record. With rules before and after it, so that no key is written otherwise.
pub fn write(raw: &Arc<dyn Store>, table: &Table, phase: TablePhase) {
    let (registry, record) = on_record(raw, table);
    if table.sort.is_none() || record.layouts.own().is_empty() {
        return;
    }
    block_on(registry.make_directory_anyway()).unwrap();
    let other = TableLayouts::new(vec![KeyLayout::new(Glob::new("*"), layout(2))]);
    let state = State::ChangingKeys(TableChange { phase, run: 7, other });
    let next = Record { state, version: record.version + 1, ..record.clone() };
    assert!(block_on(registry.replace(&record, &next)).unwrap());
    if phase == TablePhase::Enter {
        return;
    }
    let (key_type, keys): (_, &[&[u8]]) = match table.partition.1 {
        "S" => (KeyType::S, &[b"game", b"game#1", b"a"]),
        "B" => (KeyType::B, &[b"a", b"\x00\xff"]),
        _ => (KeyType::N, &[b"10", b"2.5"]),
    };
    let mut record = next;
    for key in keys {
        let (settled, version, changed, since) = (true, 1, 0, 0);
        let (key, layout, reserved) = (key.to_vec(), layout(2), 2);
        let to = KeyRecord { key, key_type, layout, moves: None, settled, reserved, version, changed, since };
        (record, _) =
            block_on(registry.replace_key(&record, None, &to)).unwrap().expect("nobody else writes");
    }
}
