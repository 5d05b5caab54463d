//! The words of an adoption: how, how far, what came of it.

use heatsink_control::claim::ClaimError;
use heatsink_dynamo::Error;
use serde::Serialize;
use serde_json::Value as Json;

use crate::direction::Direction;
use crate::item::{Attributes, NoKey};

/// How to run.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How many items are moved at once; at least 1.
    pub concurrency: usize,
    /// Whether this process is the only one that has the store, so that there are no gateways to wait for.
    pub exclusive: bool,
}

/// What is being done, for a progress display.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Reads every item, changes nothing.
    Looking,
    /// Waits until every gateway has noticed.
    Settling,
    /// Moves items.
    Moving,
    /// Reads every item again and compares.
    Verifying,
}

/// Is told how far it is. Called often: must be quick.
pub trait Progress: Send + Sync {
    /// A phase begins. `items` is how many it will pass by, where that is known.
    fn phase(&self, phase: Phase, items: Option<u64>);
    /// That many more items have been passed by.
    fn passed(&self, items: u64);
}

/// What was done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The table.
    pub table: String,
    /// Which way.
    pub direction: Direction,
    /// The attributes that were turned, where it was about keys of indexes; empty where it was about the table's own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub indexes: Vec<String>,
    /// It was there already; nothing was looked at.
    pub already: bool,
    /// Items in the table: each found exactly once at its place, before and after; for keys of indexes, those of the start.
    pub items: u64,
    /// Items that this run moved, or rewrote.
    pub moved: u64,
    /// Items whose primary key another item has too, in another shard that was drawn; as far as this run has looked.
    pub tied: u64,
    /// Where shards are said to be drawn at random and follow from the sort key: by which recipe, and on how many items that was seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recipe: Option<String>,
    /// The checksum over all items, equal before and after; none for keys of indexes, since clients go on.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub checksum: String,
}

/// Why an adoption did not happen or did not finish.
#[derive(Debug)]
pub enum AdoptError {
    /// The command cannot be carried out as it is given; nothing was changed.
    Usage(String),
    /// It stopped. What it says tells whether to run it again.
    Failed(String),
    /// The store failed. Run it again: it goes on where it stopped.
    Store(Error),
}

impl std::fmt::Display for AdoptError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            AdoptError::Usage(problem) | AdoptError::Failed(problem) => f.write_str(problem),
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
            ClaimError::TakenOver(what) => AdoptError::Failed(what),
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
