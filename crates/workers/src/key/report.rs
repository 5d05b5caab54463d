//! What the reshard of a key, or of a value of an index, has done.

use heatsink_layout::SplitPoints;
use serde::Serialize;

use crate::key::steps::NewestStep;

/// What a run has done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReshardReport {
    /// The table.
    pub table: String,
    /// The logical key; of an index, the value.
    pub key: String,
    /// How many shards it had.
    pub from: u16,
    /// How many it has.
    pub to: u16,
    /// The slots by name that its shards have; empty where shard k has slot k.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub slots: Vec<u16>,
    /// Where its ranges begin, if its shards are ranges of the sort key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub split_at: Option<SplitPoints>,
    /// How many items this run moved; of an index, rewrote.
    pub moved: u64,
    /// From which bucket on, where they are shards of buckets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<NewestStep>,
}
