//! How an adoption is run, and what it has done.

use serde::Serialize;

use crate::direction::Direction;

/// The options of a run.
#[derive(Clone, Copy, Debug)]
pub struct AdoptionOptions {
    /// How many items are moved at once; at least 1.
    pub concurrency: usize,
    /// Whether no other process uses the store, so that there are no gateways to wait for.
    pub exclusive: bool,
}

/// The result of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AdoptionReport {
    /// The table.
    pub table: String,
    /// The direction.
    pub direction: Direction,
    /// The migrated attributes, if this was about keys of indexes; empty for the table's own keys.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub indexes: Vec<String>,
    /// The table was in the wanted state already; nothing was read.
    pub already: bool,
    /// Items in the table, each found exactly once before and after; for keys of indexes, the
    /// number at the start.
    pub items: u64,
    /// Items that this run moved, or rewrote.
    pub moved: u64,
    /// Items that share their primary key with an item in another random shard, as far as this run
    /// has read.
    pub tied: u64,
    /// Where shards are said to be random but follow from the sort key: the recipe, and the number
    /// of items that match it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recipe: Option<String>,
    /// The checksum over all items, equal before and after; empty for keys of indexes, because
    /// clients use the table meanwhile.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub checksum: String,
}
