//! What the items of a table without a record say of its layouts.

use heatsink_layout::{Layout, SplitPoints, ValueLayout};
use serde::Serialize;

/// What the items say.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Rebuilt {
    /// The table.
    pub table: String,
    /// What says that the table was on record, beside its items.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sign: Option<String>,
    /// How many items were read.
    pub items: u64,
    /// The keys whose number of shards is told.
    pub keys: Vec<Told>,
    /// The values of indexes whose number of shards is told.
    pub values: Vec<Told>,
    /// What is written like a shard and is not told, with the reason.
    pub not_told: Vec<NotTold>,
    /// Whether the table is on record now.
    pub recorded: bool,
    #[serde(skip)]
    pub(crate) found: Found,
}

/// A key, or a value of an index, whose number of shards its items tell.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Told {
    /// The logical key, or value; in base64 where it is binary.
    pub key: String,
    /// The index whose value it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index: Option<String>,
    /// The least number of shards with which every item lies where it does: the one that is
    /// recorded.
    pub shards: u16,
    /// The greatest.
    pub at_most: u16,
    /// Their slots by name; empty where shard k has slot k.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub slots: Vec<u16>,
    /// Where its ranges begin, if its shards are ranges of the sort key: between two of its items.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub split_at: Option<SplitPoints>,
    /// How many items it has.
    pub items: u64,
    /// How likely they lie so by chance, at most.
    pub by_chance: f64,
}

/// What is written like a shard, and is not told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NotTold {
    /// The key, or the value of an index, that it would be a shard of; in base64 where it is
    /// binary.
    pub key: String,
    /// The index whose value it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index: Option<String>,
    /// How many items it has.
    pub items: u64,
    /// Why.
    pub why: String,
}

/// What is to be recorded.
#[derive(Clone, Debug, Default)]
pub(crate) struct Found {
    pub keys: Vec<(Vec<u8>, Layout)>,
    pub values: Vec<ValueLayout>,
}

impl Rebuilt {
    /// Whether nothing says that the table was ever on record: neither a sign nor an item.
    pub fn is_whole(&self) -> bool {
        self.sign.is_none() && self.keys.is_empty() && self.values.is_empty() && self.not_told.is_empty()
    }
}
