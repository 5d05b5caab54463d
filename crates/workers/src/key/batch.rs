//! Items that a mover brings over by the same two transactions: the check of its claim costs as much
//! for many as for one, and it is the registry that pays.
//!
//! Not here: their transactions (`pull`), which items are brought (`mover`).

use heatsink_reshard::Change;

use crate::key::place::{Old, Place};

/// The most items: with the claim's permit 17 actions, of 25 that stores before 2022 take.
pub(crate) const MOST_ITEMS: usize = 8;
/// So many bytes of items go together: a long transaction meets more requests of clients.
const MOST_BYTES: usize = 32 * 1024;

/// Write units of the old partition that a pull takes of an item of 1 KB: the check that it is
/// there, and its deletion, both in transactions, which count twice (AWS Developer Guide, "Read and
/// write operations").
pub(crate) const UNITS: u32 = 4;

/// Items that are brought over together.
#[derive(Default)]
pub(crate) struct Batch {
    pub items: Vec<(Place, Old)>,
    bytes: usize,
}

impl Batch {
    /// Adds an item. Returns the write units of the old partition that it takes.
    pub fn push(&mut self, place: Place, old: Old) -> u32 {
        // JSON is a little longer than what DynamoDB counts.
        let bytes = old.item.to_string().len();
        self.bytes += bytes;
        self.items.push((place, old));
        u32::try_from(bytes.div_ceil(1_024)).unwrap_or(u32::MAX).saturating_mul(UNITS)
    }

    /// Whether another item may go with these. Fragments are folded one by one.
    pub fn has_room(&self, change: Change) -> bool {
        change != Change::Narrow && self.items.len() < MOST_ITEMS && self.bytes < MOST_BYTES
    }
}
