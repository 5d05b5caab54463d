//! The engine: one SQLite connection, and the engine library's operations on it.
//!
//! The library's own `Database` hides its connection. This holds the connection itself, because a
//! transaction's token has to be recorded in the same SQLite transaction as its writes
//! ([`super::tokens`]).
//!
//! Not here: the thread that owns it ([`super::worker`]), whether a file may be opened
//! ([`super::file`]).

use std::cell::RefCell;
use std::sync::Arc;

use dynoxide::actions::vector_lifecycle::VectorIndexLifecycle;
use dynoxide::storage::Storage;
use dynoxide::{DynoxideError, Result};
use futures::FutureExt;
use heatsink_env::Env;
use rusqlite::OptionalExtension;

use super::backups_table;
use super::stream_schema;
use super::synchronous::Synchronous;
use super::token_table;

/// An open database.
pub(super) struct Engine {
    pub(super) storage: Storage,
    pub(super) vectors: VectorIndexLifecycle,
    pub(super) env: Arc<dyn Env>,
    /// The digest of the client's request, while a rewritten one is executed ([`super::tokens`]).
    pub(super) original: RefCell<Option<Vec<u8>>>,
}

impl Engine {
    /// Opens the database of that name: a path, or SQLite's name for a database in memory. `file`:
    /// it is a file, its commits survive what that says, and no other connection may open it until
    /// this one is closed.
    pub(super) fn open(name: &str, file: Option<Synchronous>, env: Arc<dyn Env>) -> Result<Engine> {
        let storage = Storage::new(name)?;
        token_table::prepare(storage.conn())?;
        stream_schema::prepare(storage.conn())?;
        backups_table::prepare(storage.conn())?;
        if let Some(synchronous) = file {
            // The library leaves SQLite's default, FULL.
            storage.conn().pragma_update(None, "synchronous", synchronous.pragma())?;
            // The lock file beside the database keeps other servers away. This lock keeps other
            // programs away, and servers that start after the lock file was deleted. It takes
            // effect at the first transaction that may write.
            storage.conn().pragma_update(None, "locking_mode", "EXCLUSIVE")?;
            storage.conn().execute_batch("BEGIN IMMEDIATE; COMMIT")?;
        }
        Ok(Engine { storage, vectors: VectorIndexLifecycle::new(), env, original: RefCell::default() })
    }

    /// The size in bytes of an item under the engine's own form of its key; 0 if there is none.
    pub(super) fn stored_size(&self, table: &str, partition: &str, sort: &str) -> usize {
        let sql =
            format!("SELECT item_size FROM \"{}\" WHERE pk = ?1 AND sk = ?2", table.replace('"', "\"\""));
        let size = self.storage.conn().prepare_cached(&sql).and_then(|mut statement| {
            statement.query_row([partition, sort], |row| row.get::<_, i64>(0)).optional()
        });
        size.ok().flatten().and_then(|size| usize::try_from(size).ok()).unwrap_or(0)
    }
    /// The names of a table's partition key and sort key.
    pub(super) fn key_names(&self, table: &str) -> Option<[Option<String>; 2]> {
        let schema = self.storage.get_table_metadata(table).ok()??.key_schema;
        let schema: serde_json::Value = serde_json::from_str(&schema).ok()?;
        let name = |kind: &str| {
            let element = schema.as_array()?.iter().find(|element| element["KeyType"] == kind)?;
            element["AttributeName"].as_str().map(str::to_owned)
        };
        Some([Some(name("HASH")?), name("RANGE")])
    }
}

/// The table's name, of a name or an ARN.
pub(super) fn table_name(named: &str) -> &str {
    match named.split_once(":table/") {
        Some((_, path)) => path.split('/').next().unwrap_or(path),
        None => named,
    }
}

/// Executes an operation of the library. Its futures never wait on this backend.
pub(super) fn drive<T>(operation: impl Future<Output = Result<T>>) -> Result<T> {
    operation
        .now_or_never()
        .unwrap_or_else(|| Err(DynoxideError::InternalServerError("the engine did not finish".to_owned())))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn a_file_has_the_mode_that_was_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let name = folder.path().join("data.db");
        // SQLite's numbers for them.
        for (synchronous, number) in [(Synchronous::Normal, 1), (Synchronous::Full, 2)] {
            let env = Arc::new(heatsink_env::RealEnv);
            let engine = Engine::open(name.to_str().unwrap(), Some(synchronous), env).unwrap();
            let pragma = |name| {
                engine
                    .storage
                    .conn()
                    .pragma_query_value(None, name, |row| row.get::<_, rusqlite::types::Value>(0))
            };
            assert_eq!(pragma("synchronous").unwrap(), rusqlite::types::Value::Integer(number));
            assert_eq!(pragma("journal_mode").unwrap(), rusqlite::types::Value::Text("wal".to_owned()));
        }
    }
}
