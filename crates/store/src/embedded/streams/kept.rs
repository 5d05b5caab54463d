//! Which streams there are, and which of the engine's records are whose, in the same database as
//! the items.
//!
//! The engine numbers the records of a table by the time in microseconds, always upwards, and gives
//! a stream that is turned on a label that is that time as well: so a stream's records are those
//! from its label's time on. What the engine did is noted after it did it; what a kill left
//! unnoted, when streams are next asked for.

use dynoxide::Result;
use dynoxide::storage::TableMetadata;
use dynoxide::streams::stream_arn;
use rusqlite::{OptionalExtension, Row, params};
use sha2::{Digest, Sha256};

use super::super::engine::Engine;

const COLUMNS: &str = "table_name, label, first, last, view, key_schema, made";

/// How long a stream can be read after its end, in milliseconds.
const KEPT: u64 = 24 * 60 * 60 * 1000;

/// One stream.
#[derive(Clone, Debug)]
pub(super) struct Stream {
    pub(super) table: String,
    pub(super) label: String,
    /// The number from which on the table's records are its own.
    pub(super) first: i64,
    /// The number of its last record; `None` while it is on.
    pub(super) last: Option<i64>,
    pub(super) view: String,
    /// The table's `KeySchema`, as JSON.
    pub(super) key_schema: String,
    /// When it was turned on, in milliseconds since 1970.
    pub(super) made: i64,
}

impl Stream {
    fn read(row: &Row<'_>) -> rusqlite::Result<Stream> {
        Ok(Stream {
            table: row.get(0)?,
            label: row.get(1)?,
            first: row.get(2)?,
            last: row.get(3)?,
            view: row.get(4)?,
            key_schema: row.get(5)?,
            made: row.get(6)?,
        })
    }

    pub(super) fn arn(&self) -> String {
        stream_arn(&self.table, &self.label)
    }

    /// The id of its shard.
    pub(super) fn shard(&self) -> String {
        let digest = Sha256::digest(self.arn());
        let tail: String = digest.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
        format!("shardId-{:020}-{tail}", self.made)
    }
}

/// The stream with an ARN.
pub(super) fn find(engine: &Engine, arn: &str) -> Result<Option<Stream>> {
    let Some((table, label)) = arn.split_once(":table/").and_then(|(_, path)| path.split_once("/stream/"))
    else {
        return Ok(None);
    };
    let sql = format!("SELECT {COLUMNS} FROM \"heatsink:streams\" WHERE table_name = ?1 AND label = ?2");
    let mut statement = engine.storage.conn().prepare_cached(&sql)?;
    Ok(statement.query_row([table, label], Stream::read).optional()?)
}

/// The streams behind one, by table and label.
pub(super) fn after(
    engine: &Engine,
    start: Option<&Stream>,
    of: Option<&str>,
    most: usize,
) -> Result<Vec<Stream>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM \"heatsink:streams\"
         WHERE (table_name, label) > (?1, ?2) AND (?3 IS NULL OR table_name = ?3) ORDER BY table_name, label LIMIT ?4"
    );
    let (table, label) = start.map_or(("", ""), |start| (&start.table, &start.label));
    let mut statement = engine.storage.conn().prepare_cached(&sql)?;
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let found = statement.query_map(params![table, label, of, most], Stream::read)?;
    Ok(found.collect::<rusqlite::Result<_>>()?)
}

/// The number of a stream's newest record, or the one before its first.
pub(super) fn newest(engine: &Engine, stream: &Stream) -> Result<i64> {
    if let Some(last) = stream.last {
        return Ok(last);
    }
    let newest: Option<i64> = engine
        .storage
        .conn()
        .prepare_cached(
            "SELECT MAX(CAST(sequence_number AS INTEGER)) FROM _stream_records WHERE table_name = ?1",
        )?
        .query_row([&stream.table], |row| row.get(0))?;
    Ok(newest.map_or(stream.first - 1, |newest| newest.max(stream.first - 1)))
}

/// Notes what became of every stream, and forgets those that ended a day ago.
pub(super) fn settle_all(engine: &Engine) -> Result<()> {
    let connection = engine.storage.conn();
    let mut open =
        connection.prepare_cached("SELECT table_name FROM \"heatsink:streams\" WHERE last IS NULL")?;
    let open: Vec<String> = open.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    let on = engine.storage.list_stream_enabled_tables()?;
    for table in on.iter().map(|table| &table.table_name).chain(&open) {
        settle(engine, table)?;
    }
    let oldest = millis(engine.env.unix_millis().saturating_sub(KEPT));
    connection
        .prepare_cached(
            "DELETE FROM _stream_records WHERE id IN (SELECT record.id FROM \"heatsink:streams\" stream JOIN _stream_records record
             ON record.table_name = stream.table_name AND CAST(record.sequence_number AS INTEGER) BETWEEN stream.first AND stream.last
             WHERE stream.ended < ?1)",
        )?
        .execute([oldest])?;
    connection.prepare_cached("DELETE FROM \"heatsink:streams\" WHERE ended < ?1")?.execute([oldest])?;
    Ok(())
}

/// Notes what became of a table's stream: gives the one that is on.
pub(in super::super) fn settle(engine: &Engine, table: &str) -> Result<Option<Settled>> {
    let now = engine.storage.get_table_metadata(table)?.filter(|table| table.stream_enabled);
    let sql = format!("SELECT {COLUMNS} FROM \"heatsink:streams\" WHERE table_name = ?1 AND last IS NULL");
    let open = engine.storage.conn().prepare_cached(&sql)?.query_row([table], Stream::read).optional()?;
    match (open, now) {
        (Some(open), Some(now)) if now.stream_label.as_ref() == Some(&open.label) => {
            Ok(Some(Settled { arn: open.arn(), label: open.label }))
        }
        (open, now) => {
            let begins = now.as_ref().map(|now| begin_of(now.stream_label.as_deref().unwrap_or_default()));
            if let Some(open) = open {
                end(engine, &open, begins)?;
            }
            match (now, begins) {
                (Some(now), Some(begins)) => begin(engine, &now, begins).map(Some),
                _ => Ok(None),
            }
        }
    }
}

/// A stream that is on.
pub(in super::super) struct Settled {
    pub(in super::super) arn: String,
    pub(in super::super) label: String,
}

/// The time of a label of the engine's, in microseconds: `seconds.nanoseconds`.
fn begin_of(label: &str) -> i64 {
    let (seconds, nanos) = label.split_once('.').unwrap_or((label, "0"));
    let number = |text: &str| text.parse::<i64>().unwrap_or_default();
    number(seconds).saturating_mul(1_000_000).saturating_add(number(nanos) / 1000)
}

/// Notes the end of a stream, before the number with which another one of the table begins.
fn end(engine: &Engine, stream: &Stream, before: Option<i64>) -> Result<()> {
    let connection = engine.storage.conn();
    let last: Option<i64> = connection
        .prepare_cached(
            "SELECT MAX(CAST(sequence_number AS INTEGER)) FROM _stream_records
             WHERE table_name = ?1 AND CAST(sequence_number AS INTEGER) BETWEEN ?2 AND ?3",
        )?
        .query_row(params![stream.table, stream.first, before.unwrap_or(i64::MAX) - 1], |row| row.get(0))?;
    connection
        .prepare_cached(
            "UPDATE \"heatsink:streams\" SET last = ?3, ended = ?4 WHERE table_name = ?1 AND label = ?2",
        )?
        .execute(params![
            stream.table,
            stream.label,
            last.unwrap_or(stream.first - 1),
            millis(engine.env.unix_millis())
        ])?;
    Ok(())
}

/// Notes a stream that was turned on, and gives it DynamoDB's label: a time that no other stream of
/// the table has.
fn begin(engine: &Engine, table: &TableMetadata, begins: i64) -> Result<Settled> {
    let connection = engine.storage.conn();
    let (last, made): (Option<i64>, Option<i64>) = connection
        .prepare_cached("SELECT MAX(last), MAX(made) FROM \"heatsink:streams\" WHERE table_name = ?1")?
        .query_row([&table.table_name], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let first = begins.max(last.map_or(0, |last| last + 1));
    let made = (begins / 1000).max(made.map_or(0, |made| made + 1));
    let label: String = connection
        .prepare_cached(
            "SELECT strftime('%Y-%m-%dT%H:%M:%S', ?1 / 1000, 'unixepoch') || printf('.%03d', ?1 % 1000)",
        )?
        .query_row([made], |row| row.get(0))?;
    let view = table.stream_view_type.as_deref().unwrap_or("NEW_AND_OLD_IMAGES");
    engine.storage.enable_stream(&table.table_name, view, &label)?;
    connection
        .prepare_cached(
            "INSERT INTO \"heatsink:streams\" (table_name, label, first, view, key_schema, made) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?
        .execute(params![table.table_name, label, first, view, table.key_schema, made])?;
    Ok(Settled { arn: stream_arn(&table.table_name, &label), label })
}

fn millis(time: u64) -> i64 {
    i64::try_from(time).unwrap_or(i64::MAX)
}
