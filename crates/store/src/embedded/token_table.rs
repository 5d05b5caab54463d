//! The table of transactions' tokens, in the same database as the items.
//!
//! DynamoDB forgets a token ten minutes after the request that first used it, and so does this.
//! Time is the wall clock, because the monotonic clock does not continue across a restart.

use std::collections::HashMap;

use dynoxide::{DynoxideError, Result};
use rusqlite::{Connection, OptionalExtension, params};

/// How long a token is remembered, in milliseconds.
const REMEMBERED: u64 = 10 * 60 * 1000;
/// The most old tokens that one request clears away. It is more than a request adds, so they never
/// pile up.
const CLEARED: u32 = 100;

/// DynamoDB allows no colon in a table's name, so no table of a client can have this one.
const SCHEMA: &str = "CREATE TABLE IF NOT EXISTS \"heatsink:tokens\" (
        operation INTEGER NOT NULL,
        token TEXT NOT NULL,
        request BLOB NOT NULL,
        made INTEGER NOT NULL,
        units TEXT NOT NULL,
        PRIMARY KEY (operation, token)
    );
    CREATE INDEX IF NOT EXISTS \"heatsink:tokens:made\" ON \"heatsink:tokens\" (made);";

/// Tokens of the two operations are apart, as they are in DynamoDB.
#[derive(Clone, Copy)]
pub(super) enum Operation {
    TransactWriteItems = 0,
    ExecuteTransaction = 1,
}

/// The read units that a replay costs, by table.
pub(super) type Units = HashMap<String, f64>;

/// Makes room for tokens in a database that has none yet.
pub(super) fn prepare(connection: &Connection) -> Result<()> {
    Ok(connection.execute_batch(SCHEMA)?)
}

/// The digest of the request that used the token within the ten minutes before `now`, and what a
/// replay of it costs. `now` is in milliseconds since 1970.
pub(super) fn find(
    connection: &Connection,
    operation: Operation,
    token: &str,
    now: u64,
) -> Result<Option<(Vec<u8>, Units)>> {
    let found = connection
        .prepare_cached(
            "SELECT request, units FROM \"heatsink:tokens\" WHERE operation = ?1 AND token = ?2 AND made > ?3",
        )?
        .query_row(params![operation as i64, token, oldest(now)], |row| {
            Ok((row.get::<_, Vec<u8>>(0)?, row.get::<_, String>(1)?))
        })
        .optional()?;
    Ok(found.map(|(request, units)| (request, serde_json::from_str(&units).unwrap_or_default())))
}

/// Records a token, and clears some of those that are too old.
pub(super) fn record(
    connection: &Connection,
    operation: Operation,
    token: &str,
    request: &[u8],
    now: u64,
    units: &Units,
) -> Result<()> {
    let units =
        serde_json::to_string(units).map_err(|why| DynoxideError::InternalServerError(why.to_string()))?;
    connection
        .prepare_cached(
            "DELETE FROM \"heatsink:tokens\" WHERE rowid IN
             (SELECT rowid FROM \"heatsink:tokens\" WHERE made <= ?1 ORDER BY made LIMIT ?2)",
        )?
        .execute(params![oldest(now), CLEARED])?;
    connection
        .prepare_cached(
            "INSERT OR REPLACE INTO \"heatsink:tokens\" (operation, token, request, made, units)
             VALUES (?1, ?2, ?3, ?4, ?5)",
        )?
        .execute(params![operation as i64, token, request, millis(now), units])?;
    Ok(())
}

/// Tokens as old as this are forgotten.
fn oldest(now: u64) -> i64 {
    millis(now.saturating_sub(REMEMBERED))
}

fn millis(time: u64) -> i64 {
    i64::try_from(time).unwrap_or(i64::MAX)
}
