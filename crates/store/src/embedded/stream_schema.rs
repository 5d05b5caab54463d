//! The table of streams, in the same database as the items, and an index of the engine's records.

use dynoxide::Result;
use rusqlite::Connection;

/// DynamoDB allows no colon in a table's name, so no table of a client can have this one.
const SCHEMA: &str = "CREATE TABLE IF NOT EXISTS \"heatsink:streams\" (
        table_name TEXT NOT NULL,
        label TEXT NOT NULL,
        first INTEGER NOT NULL,
        last INTEGER,
        view TEXT NOT NULL,
        key_schema TEXT NOT NULL,
        made INTEGER NOT NULL,
        ended INTEGER,
        PRIMARY KEY (table_name, label)
    );
    CREATE INDEX IF NOT EXISTS \"heatsink:streams:records\"
        ON _stream_records (table_name, CAST(sequence_number AS INTEGER));";

/// Makes room for streams in a database that has none yet.
pub(super) fn prepare(connection: &Connection) -> Result<()> {
    Ok(connection.execute_batch(SCHEMA)?)
}
