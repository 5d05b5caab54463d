//! What the demo is asked for.

/// The options of the demo.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Keys that the table has before.
    pub keys: u64,
    /// Items of each.
    pub items: u64,
    /// Writes per second over all keys; one in fifty is the first of a new key.
    pub writes: u32,
    /// Shards that the rule gives each key.
    pub shards: u16,
    /// Seconds of load before the adoption, and after it.
    pub seconds: u64,
    /// Gateways.
    pub gateways: usize,
}
