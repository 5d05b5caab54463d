//! A logical key on its way from one layout to another, while clients read and write it.
//!
//! Every gateway knows the phase that the key's record names, or the one before: each is published, and acknowledged by all, before the next. What
//! clients' requests become in each phase is `route`'s affair; how long a phase lasts and who ends it, `reshard`'s.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{Layout, Slot, SortKey, Unplaced};

/// How far a key's move has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Phase {
    /// As before the move, but nobody writes to the physical keys that the key will use.
    Reserve,
    /// Items are written where they were, and read in both places.
    Prepare,
    /// Writes of items that change their slot wait.
    Hold,
    /// Writes wait but those that need not know what the item was, which go to the new slot.
    Check,
    /// Items are written to the new slot. What depends on the item as it is brings it there first.
    Move,
}

impl Phase {
    /// Whether a gateway may plan for the key only under a short lease: until the next phase items are written where they were, or have to wait.
    pub fn is_about_to_move(self) -> bool {
        matches!(self, Phase::Prepare | Phase::Hold | Phase::Check)
    }

    /// Whether each phase that gateways may plan by, when this one begins, has a short lease.
    pub fn follows_short_leases(self) -> bool {
        matches!(self, Phase::Hold | Phase::Check | Phase::Move)
    }

    /// Whether the move can still be undone by going back to the old layout: nothing has been written to a new slot.
    pub fn may_cancel(self) -> bool {
        self <= Phase::Hold
    }

    /// Whether workers may write in this phase: those that clear orphans, and the mover.
    pub fn has_workers(self) -> bool {
        matches!(self, Phase::Reserve | Phase::Move)
    }
}

/// A key that moves: both layouts, and the phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moving {
    /// Where items were.
    pub from: Arc<Layout>,
    /// Where they go.
    pub to: Arc<Layout>,
    /// How far the move has come.
    pub phase: Phase,
    /// The attribute that says when an item expires, in a table with time to live. Known from PREPARE on.
    pub expires: Option<Arc<str>>,
}

/// The two slots of an item that changes its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slots {
    /// Where it was.
    pub from: Slot,
    /// Where it goes.
    pub to: Slot,
}

impl Moving {
    /// Whether one key can move between two layouts while clients write: in both of them an item has one slot, which follows from its primary key.
    pub fn is_possible(from: &Layout, to: &Layout) -> bool {
        let one_slot = |layout: &Layout| {
            layout.follows_from_key()
                && layout.time().is_none()
                && layout.template().is_none()
                && layout.counter_attributes().is_none()
        };
        one_slot(from) && one_slot(to)
    }

    /// The slots of the item with that sort key; `None` for one that stays where it is.
    ///
    /// # Errors
    /// As [`Layout::slot_of`].
    pub fn slots(&self, sort: Option<SortKey<'_>>) -> Result<Option<Slots>, Unplaced> {
        let slots = Slots { from: self.from.slot_of(sort)?, to: self.to.slot_of(sort)? };
        Ok((slots.from != slots.to).then_some(slots))
    }
}
