//! Time to live: items whose time has come are deleted, with a stream record that names DynamoDB as
//! who did it.
//!
//! A page of one table is looked at right before a request is executed, on the engine's thread:
//! whoever looks for expired items sends requests. A page takes about a millisecond, so that no
//! request waits long, and pages take a hundredth of the thread's time. So expired items of a large
//! table stay for a while, as they do in DynamoDB. A deletion uses no capacity.

use std::collections::VecDeque;
use std::time::Duration;

use dynoxide::actions::delete_item::{self, DeleteItemRequest};
use dynoxide::storage::{ScanParams, TableMetadata};
use dynoxide::{DynoxideError, Result};
use heatsink_dynamo::{Value, json};
use serde_json::{Value as Json, json};

use super::engine::{Engine, drive};
use super::one_transaction::in_one;

/// How many items are looked at together.
const PAGE: usize = 200;
/// The time from one page to the next.
const BETWEEN_PAGES: Duration = Duration::from_millis(100);
/// The time from the last page of the last table to the first page of the first one.
const BETWEEN_ROUNDS: Duration = Duration::from_secs(1);
/// Who deletes, as the engine writes it into a stream record.
const SERVICE: &str = r#"{"type":"Service","principalId":"dynamodb.amazonaws.com"}"#;

/// How far the deletion of expired items has come.
#[derive(Default)]
pub(super) struct Expiry {
    /// When the next page is due, in milliseconds since 1970.
    next: u64,
    /// The tables that are left of this round, the current one first.
    tables: VecDeque<String>,
    /// The last item of the current table that was looked at: its key as the engine has it.
    after: Option<(String, String)>,
}

impl Expiry {
    /// Deletes what has expired of the next page, if one is due.
    pub(super) fn carry_on(&mut self, engine: &Engine) {
        let now = engine.env.unix_millis();
        // A clock that was put back holds nothing up.
        if now < self.next && self.next - now <= millis(BETWEEN_ROUNDS) {
            return;
        }
        // Before the page: one that panics is not begun again by every request.
        self.next = now + millis(BETWEEN_ROUNDS);
        if let Err(why) = self.page(engine, now / 1000) {
            tracing::warn!(%why, "expired items of the embedded store could not be deleted");
            *self = Expiry::default();
        }
        if !self.tables.is_empty() {
            self.next = now + millis(BETWEEN_PAGES);
        }
    }

    /// `now` is in seconds since 1970.
    fn page(&mut self, engine: &Engine, now: u64) -> Result<()> {
        if self.tables.is_empty() {
            let tables = engine.storage.list_ttl_enabled_tables()?;
            self.tables = tables.into_iter().map(|table| table.table_name).collect();
        }
        let Some(name) = self.tables.front() else { return Ok(()) };
        let table = engine.storage.get_table_metadata(name)?;
        let expires = table.and_then(|table| {
            let attribute = table.ttl_attribute.clone().filter(|_| table.ttl_enabled)?;
            Some((table, attribute))
        });
        let (mut rows, mut last) = (0, None);
        if let Some((table, attribute)) = expires {
            let after = self.after.as_ref();
            let page = ScanParams {
                limit: Some(PAGE),
                exclusive_start_pk: after.map(|(pk, _)| pk.as_str()),
                exclusive_start_sk: after.map(|(_, sk)| sk.as_str()),
                ..ScanParams::default()
            };
            for (pk, sk, item) in engine.storage.scan_items(name, &page)? {
                if has_expired(&item, &attribute, now) {
                    delete(engine, &table, &item)?;
                }
                rows += 1;
                last = Some((pk, sk));
            }
        }
        self.after = last.filter(|_| rows == PAGE);
        if self.after.is_none() {
            self.tables.pop_front();
        }
        Ok(())
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Whether the time has come that an item names: a number of seconds since 1970. One of more than
/// five years ago is taken for a mistake, as in DynamoDB.
fn has_expired(item: &str, attribute: &str, now: u64) -> bool {
    const OLDEST: u64 = 5 * 365 * 24 * 3600;
    let value = json::member(item.as_bytes(), attribute).ok().flatten();
    let Some(Ok(Value::N(number))) = value.map(Value::read) else { return false };
    number.parse::<f64>().is_ok_and(|at| at < now as f64 && at >= now.saturating_sub(OLDEST) as f64)
}

/// Deletes an item of a table, and says in its stream who did it.
fn delete(engine: &Engine, table: &TableMetadata, item: &str) -> Result<()> {
    let unread = |why: serde_json::Error| DynoxideError::InternalServerError(why.to_string());
    let item: Json = serde_json::from_str(item).map_err(unread)?;
    let names = engine.key_names(&table.table_name).into_iter().flatten().flatten();
    let key: serde_json::Map<String, Json> = names.map(|name| (name.clone(), item[&name].clone())).collect();
    let request: DeleteItemRequest =
        serde_json::from_value(json!({ "TableName": table.table_name, "Key": key })).map_err(unread)?;
    let connection = engine.storage.conn();
    in_one(connection, || {
        let written = "SELECT coalesce(max(CAST(sequence_number AS INTEGER)), 0) FROM _stream_records WHERE table_name = ?1";
        let before: i64 =
            connection.prepare_cached(written)?.query_row([&table.table_name], |row| row.get(0))?;
        drive(delete_item::execute(&engine.storage, request))?;
        let by = "UPDATE _stream_records SET user_identity = ?1 WHERE table_name = ?2 AND CAST(sequence_number AS INTEGER) > ?3";
        connection.prepare_cached(by)?.execute((SERVICE, &table.table_name, before))?;
        Ok(())
    })
}
