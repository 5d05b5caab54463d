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
use futures::future::BoxFuture;
use heatsink_dynamo::{Error, Operation};
use heatsink_layout::{DIRECTORY, Table, Unplaced, entered_place};
use heatsink_reshard::{FirstWrite, Rules, first_write};
use serde_json::json;

use crate::directory::not_done;
use crate::plan::{CallExplanation, Explanation, Plan, Planned};
use crate::{Answer, Calls, PhysicalCall};

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
    if rows.is_empty() {
        return plan;
    }
    plan.wrapped(|then| EnterFirst { rows, known: Arc::clone(known), then })
}

/// A write, after the rows of its keys.
struct EnterFirst {
    rows: Vec<Row>,
    known: Arc<KnownRows>,
    then: Box<dyn Planned>,
}

fn put(row: &Row) -> Bytes {
    let key = STANDARD.encode(&row.key);
    let item = json!({ "pk": { "S": row.pk }, "sk": { "S": row.sk }, "key": { "B": key } });
    Bytes::from(json!({ "TableName": DIRECTORY, "Item": item }).to_string())
}

impl Planned for EnterFirst {
    fn run<'a>(self: Box<Self>, calls: &'a mut dyn Calls) -> BoxFuture<'a, Result<Answer, Error>> {
        let EnterFirst { rows, known, then } = *self;
        Box::pin(async move {
            let entry = |(id, row): (usize, &Row)| PhysicalCall {
                id,
                retry_throttled: true,
                ..PhysicalCall::only(Operation::PutItem, put(row))
            };
            let entries: Vec<PhysicalCall> = rows.iter().enumerate().map(entry).collect();
            calls.round(entries.into(), &mut |_, answer| answer.map(drop).map_err(not_done)).await?;
            rows.into_iter().for_each(|row| known.learn(row));
            then.run(calls).await
        })
    }

    fn explain(&self) -> Explanation {
        let mut explanation = self.then.explain();
        explanation.why = format!(
            "all keys of the table get other shards, and the first write of a key through this process is entered before it is sent: {}",
            explanation.why
        );
        let entries = self.rows.iter().map(|row| CallExplanation::new(Operation::PutItem, &put(row)));
        explanation.calls.splice(0..0, entries);
        explanation
    }
}
