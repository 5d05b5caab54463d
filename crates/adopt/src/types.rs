//! The public types of an adoption: options, phases, progress, report, errors.

use heatsink_control::claim::ClaimError;
use heatsink_dynamo::Error;
use serde::Serialize;
use serde_json::Value as Json;

use crate::direction::Direction;
use crate::item::{Attributes, NoKey};

/// The options of a run.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How many items are moved at once; at least 1.
    pub concurrency: usize,
    /// Whether no other process uses the store, so that there are no gateways to wait for.
    pub exclusive: bool,
}

/// The phase of a run, for a progress display.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Reads every item, changes nothing.
    Looking,
    /// Waits until every gateway has acknowledged the change.
    Settling,
    /// Moves items.
    Moving,
    /// Reads every item again and compares.
    Verifying,
}

/// Receives the progress of a run. Called often: must be fast.
pub trait Progress: Send + Sync {
    /// A phase begins. `items` is the number of items that it will process, if known.
    fn phase(&self, phase: Phase, items: Option<u64>);
    /// So many more items have been processed.
    fn passed(&self, items: u64);
}

/// Progress that nobody is shown.
pub(crate) struct Unseen;

impl Progress for Unseen {
    fn phase(&self, _: Phase, _: Option<u64>) {}
    fn passed(&self, _: u64) {}
}

/// The result of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The table.
    pub table: String,
    /// The direction.
    pub direction: Direction,
    /// The migrated attributes, if this was about keys of indexes; empty for the table's own keys.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub indexes: Vec<String>,
    /// The table was in the wanted state already; nothing was read.
    pub already: bool,
    /// Items in the table, each found exactly once before and after; for keys of indexes, the number at the start.
    pub items: u64,
    /// Items that this run moved, or rewrote.
    pub moved: u64,
    /// Items that share their primary key with an item in another random shard, as far as this run has read.
    pub tied: u64,
    /// Where shards are said to be random but follow from the sort key: the recipe, and the number of items that match it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recipe: Option<String>,
    /// The checksum over all items, equal before and after; empty for keys of indexes, because clients use the table meanwhile.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub checksum: String,
}

/// Why an adoption did not start or did not finish.
#[derive(Debug)]
pub enum AdoptError {
    /// The command is not possible as given; nothing was changed.
    Usage(String),
    /// The run stopped. The message says whether to run it again.
    Failed(String),
    /// Another run, or another change of the table, is at work. Later it is possible.
    Busy(String),
    /// It was cancelled, and everything is as it was.
    Cancelled(String),
    /// The store failed. Run it again: it resumes where it stopped.
    Store(Error),
}

impl std::fmt::Display for AdoptError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            AdoptError::Usage(problem)
            | AdoptError::Failed(problem)
            | AdoptError::Busy(problem)
            | AdoptError::Cancelled(problem) => f.write_str(problem),
            AdoptError::Store(error) => {
                write!(f, "The store failed: {error}. Run this again: it goes on where it stopped")
            }
        }
    }
}

impl std::error::Error for AdoptError {}

impl From<Error> for AdoptError {
    fn from(error: Error) -> Self {
        AdoptError::Store(error)
    }
}

impl From<ClaimError> for AdoptError {
    fn from(error: ClaimError) -> Self {
        match error {
            ClaimError::TakenOver(what) => AdoptError::Busy(what),
            ClaimError::Store(error) => AdoptError::Store(error),
        }
    }
}

impl From<NoKey> for AdoptError {
    fn from(_: NoKey) -> Self {
        AdoptError::Store(Error::internal("The store sent an item without the table's key"))
    }
}

/// A primary key for a message; long values are cut.
pub(crate) fn shown(key: &Attributes) -> String {
    let cut = |value: &Json| match value
        .as_object()
        .and_then(|object| object.values().next())
        .and_then(Json::as_str)
    {
        Some(text) if text.chars().count() > 60 => {
            format!("\"{}…\"", text.chars().take(60).collect::<String>())
        }
        Some(text) => format!("{text:?}"),
        None => value.to_string(),
    };
    let parts: Vec<String> = key.iter().map(|(name, value)| format!("{name} = {}", cut(value))).collect();
    parts.join(", ")
}
