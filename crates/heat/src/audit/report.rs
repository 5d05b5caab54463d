//! What an audit tells.

use serde::Serialize;

use super::action::Verdict;
use super::load::Asked;

/// The report.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// Items taken; of stream records, writes; of recorded requests, as many as were sent.
    pub items: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Whether the rates are those of stream records or requests, and not of times in sort keys.
    pub measured: bool,
    /// Of recorded requests: what was asked for as a whole.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub traffic: Option<Totals>,
    /// The seconds from the first to the last time. `None` without times.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<i64>,
    /// Of a sample: the share of the table's items that was read, from 0 to 1, by the table's item
    /// count. Items of a key are stored together, so this is about the probability that a key was
    /// read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share_read: Option<f64>,
    /// Keys in the form of a shard's physical key: those of a sharded table, read as they are
    /// stored.
    #[serde(skip_serializing_if = "is_none")]
    pub shard_keys: u64,
    /// The patterns, those with something to do first, then by items.
    pub patterns: Vec<Pattern>,
}

/// What was asked of a table or index as a whole.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Totals {
    /// The index whose keys the patterns are of; `None` for the table's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index: Option<String>,
    /// The share of its requests that was throttled.
    pub throttled_share: f64,
    /// The share of its requests that are of no one key, or of one that is not known: Scans, and
    /// some statements of PartiQL.
    pub without_key_share: f64,
}

/// The keys that are written alike.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Pattern {
    /// The varying parts are in braces: `THREAT#{id}`.
    pub pattern: String,
    /// Different keys.
    pub keys: u64,
    /// Items under all of them.
    pub items: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The key with the most bytes.
    pub largest: Key,
    /// The key that was written fastest; `None` where no sort key holds a time.
    pub busiest: Option<Key>,
    /// What to do, and why.
    pub verdict: Verdict,
}

/// One key.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Key {
    /// The key; bytes that are no text are shown as `�`.
    pub key: String,
    /// Its items.
    pub items: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Write units per second in its busiest window, of items that still exist.
    pub peak_units: Option<f64>,
    /// Seconds of that window: the precision of its times.
    pub window: Option<i64>,
    /// Days between the first and the last time, at least one.
    pub days: Option<f64>,
    /// Of recorded requests.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub asked: Option<Asked>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
const fn is_none(count: &u64) -> bool {
    *count == 0
}
