//! What the reshard of the demo has reached, and moved.

use serde::Serialize;

/// Where the story begins if nobody gives a command.
pub const FIRST_THROTTLE: &str = "first throttle";

/// Something that was reached.
#[derive(Clone, Debug, Serialize)]
pub struct Reached {
    /// The command, a phase, or the end.
    pub what: String,
    /// When, in milliseconds since the load began.
    pub millis: u32,
    /// Write units that the key's partition had taken by then.
    pub write_units: f64,
}

/// What was moved.
#[derive(Clone, Debug, Serialize)]
pub struct Moved {
    /// Items.
    pub items: u64,
    /// The most capacity units a second that could be taken of the old shard's partition.
    pub rate: u32,
    /// The key's shards.
    pub shards: u16,
    /// Why, where nobody asked for them.
    pub because: Option<String>,
}
