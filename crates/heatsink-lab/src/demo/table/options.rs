//! What the demo is asked for.

use std::time::Duration;

/// The options of the demo.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Keys that the table has before.
    pub keys: u64,
    /// Items of each.
    pub items: u64,
    /// Writes per second over all keys.
    pub writes: u32,
    /// One write in so many is the first of a new key; 0: none is.
    pub new_key_in: u64,
    /// Write units a second that the table has.
    pub capacity: u32,
    /// Keys are moved for so long at most.
    pub at_most: Option<Duration>,
    /// Shards that the rule gives each key.
    pub shards: u16,
    /// Seconds of load before the adoption, and after it.
    pub seconds: u64,
    /// Gateways.
    pub gateways: usize,
}
