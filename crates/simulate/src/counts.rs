//! What a run counts in one step: by stream, and by partition.

use heatsink_physics::KeyPosition;

/// The requests of one stream in one step.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Count {
    pub offered: u64,
    pub accepted: u64,
    /// Of the accepted, those that a cache answered.
    pub cached: u64,
}

/// A partition in one step: what went through it in that step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Heat {
    pub first: KeyPosition,
    pub reads: f32,
    pub writes: f32,
    /// Refusals for whatever reason of requests aimed at it.
    pub throttles: f32,
    /// Of those, the refusals at its own ceiling.
    pub refused: f32,
    /// What was asked of it, as a share of its ceiling: 1 is full. Without what the table's or
    /// index's own bucket refused.
    pub asked: f32,
}

/// One step.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    /// Its end, in nanoseconds.
    pub end: u64,
    /// By stream.
    pub counts: Vec<Count>,
    /// By resource: its partitions in order.
    pub heat: Vec<Vec<Heat>>,
}
