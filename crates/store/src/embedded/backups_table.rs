//! The table of settings of continuous backups, in the same database as the items.

use dynoxide::Result;
use rusqlite::{Connection, OptionalExtension};

/// DynamoDB allows no colon in a table's name, so no table of a client can have this one. A table
/// that is made again has another id.
const SCHEMA: &str = "CREATE TABLE IF NOT EXISTS \"heatsink:continuous_backups\" (
        table_id TEXT PRIMARY KEY,
        since INTEGER NOT NULL,
        days INTEGER NOT NULL
    );";

/// The setting of a table for which they are on.
pub(super) struct Setting {
    /// Since when, in seconds since 1970.
    pub(super) since: i64,
    /// How many days one can go back.
    pub(super) days: u64,
}

/// Makes room for settings in a database that has none yet.
pub(super) fn prepare(connection: &Connection) -> Result<()> {
    Ok(connection.execute_batch(SCHEMA)?)
}

/// Turns them on; a table for which they are on keeps since when.
pub(super) fn turn_on(connection: &Connection, table_id: &str, setting: &Setting) -> Result<()> {
    let on = "INSERT INTO \"heatsink:continuous_backups\" (table_id, since, days) VALUES (?1, ?2, ?3)
              ON CONFLICT (table_id) DO UPDATE SET days = excluded.days";
    connection.execute(on, (table_id, setting.since, setting.days))?;
    Ok(())
}

/// Turns them off.
pub(super) fn turn_off(connection: &Connection, table_id: &str) -> Result<()> {
    connection.execute("DELETE FROM \"heatsink:continuous_backups\" WHERE table_id = ?1", [table_id])?;
    Ok(())
}

/// The setting of a table; `None` where they are off.
pub(super) fn find(connection: &Connection, table_id: &str) -> Result<Option<Setting>> {
    let found = "SELECT since, days FROM \"heatsink:continuous_backups\" WHERE table_id = ?1";
    let setting =
        connection.query_row(found, [table_id], |row| Ok(Setting { since: row.get(0)?, days: row.get(1)? }));
    Ok(setting.optional()?)
}
