//! Writes of keys that have no record, while all keys of their table get other layouts: they wait, or
//! are sent once the key was entered ([`heatsink_reshard::first_write`]).
//!
//! Not here: where an entered key stands (`heatsink_layout::entered_place`), keys on record
//! (`moving`).

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use heatsink_layout::{DIRECTORY, Table, Unplaced, entered_place};
use heatsink_reshard::{FirstWrite, Rules, first_write};
use serde_json::json;

use crate::directory;
use crate::plan::Plan;

/// Keys that are remembered. Beyond that all are forgotten, and entered again.
const REMEMBERED: usize = 100_000;

/// A row of the directory.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Row {
    pk: String,
    sk: String,
    key: Vec<u8>,
}

/// The rows that this process has written. They are removed when nobody asks for them any more.
#[derive(Debug, Default)]
pub(crate) struct KnownRows(Mutex<HashSet<(String, String)>>);

impl KnownRows {
    fn has(&self, row: &Row) -> bool {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.contains(&(row.pk.clone(), row.sk.clone()))
    }

    fn learn(&self, row: Row) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= REMEMBERED {
            known.clear();
        }
        known.insert((row.pk, row.sk));
    }
}

/// What comes before a write of a key.
pub(crate) enum Before {
    Nothing,
    Row(Row),
    Wait,
}

/// What comes before a write of that logical key.
///
/// # Errors
/// [`Unplaced::Changing`] for a key that would have another physical key afterwards.
pub(crate) fn before(table: &Table, key: &[u8]) -> Result<Before, Unplaced> {
    let Some(change) = table.change_of(key) else { return Ok(Before::Nothing) };
    let act = first_write(change.phase, false, Rules::ALL);
    if act != FirstWrite::Send && change.rewrites(key) {
        return Err(Unplaced::Changing(String::from_utf8_lossy(key).into_owned()));
    }
    Ok(match act {
        FirstWrite::Send => Before::Nothing,
        FirstWrite::Wait => Before::Wait,
        FirstWrite::EnterFirst => {
            let (pk, sk) = entered_place(&table.id, change.run, key);
            Before::Row(Row { pk, sk, key: key.to_vec() })
        }
    })
}

/// The plan, after those of the rows that are not known to be there.
pub(crate) fn enter_first(plan: Plan, mut rows: Vec<Row>, known: &Arc<KnownRows>) -> Plan {
    rows.retain(|row| !known.has(row));
    rows.sort();
    rows.dedup();
    let puts = rows.iter().map(put).collect();
    let why = "all keys of the table get other shards, and the first write of a key through this process is entered before it is sent";
    let known = Arc::clone(known);
    directory::after(plan, puts, why.to_owned(), move || rows.into_iter().for_each(|row| known.learn(row)))
}

fn put(row: &Row) -> Bytes {
    let key = STANDARD.encode(&row.key);
    let item = json!({ "pk": { "S": row.pk }, "sk": { "S": row.sk }, "key": { "B": key } });
    Bytes::from(json!({ "TableName": DIRECTORY, "Item": item }).to_string())
}
