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
