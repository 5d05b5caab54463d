//! Placement: the slots in which one item may lie, by its layout and its sort key.
//!
//! A reader that looks into all slots of a placement finds the item, and a strategy differs from
//! another in the placements that it gives. Not here: which layout is in force for a key
//! ([`InForce`](crate::InForce)), and what requests do with slots (`route`).

use crate::{Layout, Slot, Slots, SortKey, Strategy, Unplaced};

/// Where one item may lie. Buckets are slots of their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Placement {
    /// In this slot or nowhere: the slot follows from the primary key.
    One(Slot),
    /// In at most one of several slots: other writers assign the shard.
    AnyOf {
        /// The hashed slot, into which an item is put that lies nowhere yet. Two writers that meet,
        /// and a write that is sent twice, then concern one item.
        hashed: Slot,
        /// The other slots, in order.
        others: Vec<Slot>,
    },
    /// In several slots at once, as fragments: the base fragment holds every attribute, the others
    /// parts of some numbers. The item exists if and only if its base fragment does.
    SumOf {
        /// The slot of the base fragment.
        base: Slot,
        /// The slots of the other fragments, in order.
        others: Vec<Slot>,
        /// The top-level attributes that are summed over the fragments; not empty.
        attributes: Vec<String>,
        /// How many of the fragments take ADDs, from the base fragment on: all, but while the
        /// counter gets more.
        adds: u16,
    },
    /// In the new slot, or else in the old one, while its key moves. A copy in the new slot is the
    /// item, whatever lies in the old one.
    Moving(Slots),
}

impl Placement {
    /// The slot that a request goes to when nothing more is known of the item.
    pub fn first(&self) -> Slot {
        match self {
            Placement::One(slot)
            | Placement::AnyOf { hashed: slot, .. }
            | Placement::SumOf { base: slot, .. }
            | Placement::Moving(Slots { to: slot, .. }) => *slot,
        }
    }

    /// The slots beside the first.
    pub fn others(&self) -> &[Slot] {
        match self {
            Placement::One(_) => &[],
            Placement::AnyOf { others, .. } | Placement::SumOf { others, .. } => others,
            Placement::Moving(Slots { from, .. }) => std::slice::from_ref(from),
        }
    }

    /// All slots, the first one first; each once.
    pub fn slots(&self) -> impl Iterator<Item = Slot> {
        std::iter::once(self.first()).chain(self.others().iter().copied())
    }
}

impl Layout {
    /// Where the item with that sort key may lie.
    ///
    /// # Errors
    /// [`Unplaced`] where the sort key cannot be an item's.
    pub fn placement(&self, sort: Option<SortKey<'_>>) -> Result<Placement, Unplaced> {
        if let Strategy::Counter { attributes } = &self.strategy {
            return Ok(Placement::SumOf {
                base: Slot::default(),
                others: (1..self.shards).map(Slot::shard).collect(),
                attributes: attributes.clone(),
                adds: self.shards.max(1),
            });
        }
        if !self.is_externally_assigned() {
            return self.slot_of(sort).map(Placement::One);
        }
        let hashed = self.hashed_slot(sort)?;
        let shards = (0..self.shards).map(|shard| Slot { shard, ..hashed });
        Ok(Placement::AnyOf { hashed, others: shards.filter(|slot| *slot != hashed).collect() })
    }
}
