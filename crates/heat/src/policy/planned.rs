//! A change of one key, and what it takes.

use super::decision::Change;
use super::facts::Units;
use crate::units_per_write;

/// Each shard is to take this share of a partition, where it is not known what else is there.
pub(super) const FILLED: f64 = 0.75;
/// Capacity units of a partition that the move of one item of a kilobyte takes.
const UNITS_PER_ITEM: f64 = 10.0;
/// Where a key's items are not known, it is taken to have so many.
pub(super) const ITEMS: u64 = 1_000;
/// A change of one key.
pub(super) struct Plan {
    pub(super) change: Change,
    /// The slot of each shard.
    pub(super) slots: Vec<u16>,
    /// What each shard is asked for then.
    pub(super) each: Units,
    /// Slots that it gives up because they burn.
    pub(super) left: Vec<u16>,
    /// The capacity units of the move.
    pub(super) units: f64,
}

/// The capacity units that it takes to move so many items of so many bytes.
pub fn units_of_move(items: u64, item_bytes: u32) -> f64 {
    #[allow(clippy::cast_precision_loss, reason = "items, far below 2^52")]
    let items = items as f64;
    items * UNITS_PER_ITEM * units_per_write(item_bytes.clamp(1, 409_600))
}
