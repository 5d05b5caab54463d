//! What the demo is asked for.

use heatsink_physics::PartitionSnapshot;

/// The key that goes viral.
pub const KEY: &str = "game_x";

/// The options of the demo.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Seconds of load before the command.
    pub before: u64,
    /// Seconds of load from the command on.
    pub after: u64,
    /// Puts per second on the key.
    pub writes: u32,
    /// Top-100 Queries per second.
    pub reads: u32,
    /// Its shards; `None` for what `heatsink shards` recommends.
    pub shards: Option<u16>,
    /// Items that the key has before the load.
    pub items: u64,
    /// How many gateways there are.
    pub gateways: usize,
    /// Whether each put has the condition that its item is new.
    pub conditional: bool,
    /// Capacity units a second that moving items may take of the old shard's partition.
    pub rate: u32,
    /// Whether nobody gives a command: the gateways see the heat and act on it.
    pub automatic: bool,
}

/// The partitions at one moment, in milliseconds since the start.
pub type Sample = (u32, Vec<PartitionSnapshot>);
