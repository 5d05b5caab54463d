//! What a section allows the policy to do.
//!
//! Not here: how a section is written (`heatsink-control`).

use std::time::Duration;

use serde::Serialize;

/// What is allowed for a key.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Settings {
    /// The fewest shards of a key.
    pub fewest: u16,
    /// The most.
    pub most: u16,
    /// For how long a key has to burn before anything is changed.
    pub hot_for: Duration,
    /// For how long more, where DynamoDB splits the partition by itself.
    pub patience: Duration,
    /// For how long a key has to need half of its shards or fewer before it loses any.
    pub cold_for: Duration,
    /// The capacity units that all changes of one table may take within an hour.
    pub units_per_hour: f64,
    /// Whether values of indexes may be spread.
    pub index_values: bool,
    /// Whether an item whose numbers are only added to may become a counter.
    pub counters: bool,
    /// Whether a whole key may get ranges of its sort key, where they are better than a hash.
    pub ranges: bool,
}

impl Settings {
    /// The default: as many shards as needed, at once where nothing else helps, fewer after three
    /// cold days. The units are what one partition accepts in an hour of writes, $2.25 on demand in
    /// us-east-1: enough for a hundred keys of 3,600 items, and a bound on what a mistake costs.
    pub const DEFAULT: Settings = Settings {
        fewest: 1,
        most: 1_000,
        hot_for: Duration::from_secs(2),
        patience: Duration::from_secs(15 * 60),
        cold_for: Duration::from_secs(3 * 86_400),
        units_per_hour: 3_600_000.0,
        index_values: false,
        counters: false,
        ranges: false,
    };
}

impl Default for Settings {
    fn default() -> Self {
        Settings::DEFAULT
    }
}
