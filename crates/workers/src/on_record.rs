//! Changes the record of a table on behalf of an adoption: its state, and the tag that names the
//! registry.

use heatsink_control::describe::Described;
use heatsink_control::registry::Registry;
use heatsink_control::{Record, State, tags};

use crate::error::WorkerError;

/// Writes the first record of a table.
///
/// # Errors
/// The store's, or that another process was first; retryable where layouts were frozen meanwhile.
pub(crate) async fn begin(registry: &Registry, record: &Record) -> Result<(), WorkerError> {
    let entry = registry.entry(&record.name).await?;
    if registry.create_unless_frozen(entry.as_ref(), record).await? == *record {
        Ok(())
    } else {
        Err(taken_over(&record.name))
    }
}

/// The same of keys, and a value of an index, that begin beside each other: all find no record, and
/// one of them writes it. `None` where it says something else.
///
/// # Errors
/// The store's; retryable where layouts were frozen meanwhile.
pub(crate) async fn begin_beside(registry: &Registry, first: &Record) -> Result<Option<Record>, WorkerError> {
    let entry = registry.entry(&first.name).await?;
    let found = registry.create_unless_frozen(entry.as_ref(), first).await?;
    let Record { version, created, keys, tally, .. } = found;
    let values = found.values.clone();
    let is_same = found == Record { version, created, keys, tally, values, ..first.clone() };
    Ok(Some(found).filter(|_| is_same))
}

/// The record of a table as it is now, where nothing but records of its keys has changed.
///
/// # Errors
/// The store's; [`WorkerError::Busy`] where something else has changed.
pub(crate) async fn newest(registry: &Registry, known: &Record) -> Result<Record, WorkerError> {
    let found = registry.read(&known.id).await?;
    found.filter(|found| found.says_as(known)).ok_or_else(|| taken_over(&known.name))
}

/// The same after a write that was refused: it is another one than was known.
///
/// # Errors
/// As [`newest`]; [`WorkerError::Busy`] where it is that one, too.
pub(crate) async fn newer(registry: &Registry, known: &Record) -> Result<Record, WorkerError> {
    let found = newest(registry, known).await?;
    if found.version == known.version { Err(taken_over(&known.name)) } else { Ok(found) }
}

/// Writes the next state of a record.
///
/// # Errors
/// The store's, or that another run has taken over: the record is not `from` any more.
pub(crate) async fn write(registry: &Registry, from: &Record, state: State) -> Result<Record, WorkerError> {
    let to = Record { state, version: from.version + 1, ..from.clone() };
    if registry.replace(from, &to).await? { Ok(to) } else { Err(taken_over(&from.name)) }
}

/// The error of a run whose record was changed by another process.
pub(crate) fn taken_over(table: &str) -> WorkerError {
    WorkerError::Busy(format!(
        "Another run of `heatsink adopt {table}` or `heatsink reshard`, or a gateway, changed the registry's record of table {table} meanwhile. Run this again"
    ))
}

/// Tags a recorded table. The record holds without the tag too.
pub(crate) async fn tag(registry: &Registry, described: &Described) {
    if let Err(error) = tags::claim(registry, described.arn.as_deref(), registry.name()).await {
        tracing::warn!(
            table = described.schema.name,
            "the table could not be tagged with its registry: {error}"
        );
    }
}

/// Removes the tag of a table that is not recorded any more.
pub(crate) async fn untag(registry: &Registry, described: &Described) {
    if let Err(error) = tags::release(registry, described.arn.as_deref()).await {
        tracing::warn!(
            table = described.schema.name,
            "the tag with its registry could not be taken off: {error}"
        );
    }
}
