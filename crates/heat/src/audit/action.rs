//! What is proposed for a pattern, and why.

use serde::Serialize;

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// Spread the keys: one of them was written nearly as fast as a partition accepts, or faster.
    Shard,
    /// Nothing yet: DynamoDB splits the partition. If it does not, spread the key.
    Wait,
    /// Spread the load over several keys: no shard count carries it.
    SeveralKeys,
    /// Write one item less often, or make it a counter: most writes of a hot key go to it.
    ChangeItem,
    /// Keep what is read again and again in a cache.
    Cache,
    /// Bound the size of the collections by buckets of time. This does not raise the rate.
    Bucket,
    /// The items do not show the rate: measure it.
    Measure,
    /// Do not shard.
    Leave,
}

impl Action {
    /// In words.
    pub const fn words(self) -> &'static str {
        match self {
            Action::Shard => "shard",
            Action::Wait => "wait, else shard",
            Action::SeveralKeys => "several keys",
            Action::ChangeItem => "change the item",
            Action::Cache => "cache",
            Action::Bucket => "bucket",
            Action::Measure => "measure",
            Action::Leave => "do not shard",
        }
    }
}

/// What to do about a pattern.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    /// What.
    pub action: Action,
    /// Why.
    pub reason: String,
    /// A rule for heatsink.toml, where one is proposed.
    pub rule: Option<String>,
}
