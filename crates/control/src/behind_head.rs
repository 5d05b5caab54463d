//! A table's record that is older than the head of the registry says: it was put back from before
//! a change, by hand or from a backup.
//!
//! The head names the last few changes alone. Not here: records of keys, which their table's record
//! vouches for at any age (`tally`).

use heatsink_dynamo::{Error, Outcome};

use crate::name::NameEntry;
use crate::record::Record;
use crate::registry::Registry;

/// Versions are counted up from a random first one below 2^48. Two that are further apart are not
/// of one record.
const FAR: u64 = 1 << 24;

/// The record, or the one that has been written since it was read. `entry`: that of its name, where
/// it was read.
///
/// # Errors
/// Retryable, where it is older than the head says.
pub(crate) async fn checked(
    registry: &Registry,
    record: Record,
    entry: Option<&NameEntry>,
) -> Result<Record, Error> {
    // The head names versions of records and of entries of names alike.
    let is_before = |version: u64, named: u64| version < named && named - version < FAR;
    let mut named = registry.named_by_head(&record.name);
    named.retain(|named| is_before(record.version, *named));
    if named.is_empty() {
        return Ok(record);
    }
    let read;
    let entry = match entry {
        Some(entry) => Some(entry),
        None => {
            read = registry.entry(&record.name).await?;
            read.as_ref()
        }
    };
    let is_of_entry =
        |named: u64| entry.is_some_and(|entry| entry.version == named || is_before(named, entry.version));
    named.retain(|named| !is_of_entry(*named));
    if named.is_empty() {
        return Ok(record);
    }
    let record = registry.read_as_it_is(&record.id).await?.unwrap_or(record);
    if !named.into_iter().any(|named| is_before(record.version, named)) {
        return Ok(record);
    }
    Err(older(registry, &record.name, "than the head of the registry says"))
}

/// The error for a record that was put back from before: older than what.
pub(crate) fn older(registry: &Registry, table: &str, than: &str) -> Error {
    Error::unavailable(
        format!(
            "The registry {} has a record of table {table} that is older {than}. Nothing is sent until all its items are restored from one moment \
             (docs/how-to/recover.md)",
            registry.name()
        ),
        Outcome::NotDone,
    )
}
