//! Single keys on record of a table that comes back out of its rules. Their items come back with all
//! others, from wherever their records say that they lie; then the records go.
//!
//! Not here: bringing one key back while clients use it (`key`).

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use heatsink_control::registry::Registry;
use heatsink_control::reshard_intent::key_text;
use heatsink_control::{KeyRecord, Record, settled_layouts};
use heatsink_layout::KeyLayouts;

use crate::direction::Direction;
use crate::error::{WorkerError, usage};
use crate::on_record::taken_over;

/// The records of single keys of a table that is to be adopted or brought back.
///
/// # Errors
/// [`WorkerError::Usage`] where they are in the way, with what to do; [`WorkerError::Busy`] while one
/// of them moves.
pub(crate) async fn of(
    registry: &Registry,
    record: &Record,
    direction: Direction,
) -> Result<Vec<KeyRecord>, WorkerError> {
    let table = &record.name;
    if record.keys == 0 {
        return Ok(Vec::new());
    }
    if direction != Direction::Back || record.layouts.own().is_empty() {
        return usage(format!(
            "Single keys of table {table} are on record by `heatsink reshard`, and a table with such keys cannot be adopted: `heatsink leave {table}` brings \
             them back and takes their records off"
        ));
    }
    let keys = registry.all_key_records(record).await?;
    match keys.iter().find(|one| one.moves.is_some() || !one.settled) {
        None => Ok(keys),
        Some(moves) => Err(WorkerError::Busy(format!(
            "The key {:?} of table {table} is being resharded: let that end, or cancel it (`heatsink reshard status {table}`)",
            key_text(&moves.key, moves.key_type)
        ))),
    }
}

/// The layouts of keys that stay.
pub(crate) fn layouts(version: u64, keys: &[KeyRecord]) -> Arc<KeyLayouts> {
    Arc::new(settled_layouts(version, keys))
}

/// Takes the records of the keys off, and returns the table's record as it is then.
///
/// # Errors
/// The store's, or that another process changed one of them.
pub(crate) fn forget<'a>(
    registry: &'a Registry,
    record: Record,
    keys: &'a [KeyRecord],
) -> BoxFuture<'a, Result<Record, WorkerError>> {
    async move { registry.forget_keys(&record, keys).await?.ok_or_else(|| taken_over(&record.name)) }.boxed()
}
