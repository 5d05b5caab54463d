//! A logical key on its way from one layout to another, while clients read and write it.
//!
//! Every gateway knows the phase that the key's record names, or the one before: each is published,
//! and acknowledged by all, before the next. What clients' requests become in each phase is
//! `route`'s affair; how long a phase lasts and who ends it, `reshard`'s.

use std::sync::Arc;

use heatsink_dynamo::KeyValue;
use serde::{Deserialize, Serialize};

use crate::{Bucket, Layout, Placement, Slots, SortKey, Unplaced};

/// The attribute that marks the old copy of an item whose key moves, once there is a new one. No
/// client sees it but in records of the table's stream that it reads past Heatsink.
pub const MOVED: &str = "heatsink:moved";

/// The longest item that is marked, in bytes of its JSON, which is longer than what DynamoDB counts:
/// with the mark it is surely no more than 400 KB.
pub const MARKED: usize = 409_000;

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
    /// Whether a gateway may plan for the key only under a short lease: until the next phase items
    /// are written where they were, or have to wait.
    pub fn is_about_to_move(self) -> bool {
        matches!(self, Phase::Prepare | Phase::Hold | Phase::Check)
    }

    /// Whether each phase that gateways may plan by, when this one begins, has a short lease.
    pub fn follows_short_leases(self) -> bool {
        matches!(self, Phase::Hold | Phase::Check | Phase::Move)
    }

    /// Whether the move can still be undone by going back to the old layout: nothing has been
    /// written to a new slot.
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
    /// The attribute that says when an item expires, in a table with time to live. Known from
    /// PREPARE on.
    pub expires: Option<Arc<str>>,
    /// Whether who brings an item to its new slot marks the old copy ([`MOVED`]) before it is
    /// deleted, so that readers of the table's stream know that the item is not. Known from PREPARE
    /// on.
    pub marks: bool,
    /// The highest sort key in the old slots, as it was read when none of them got an item any
    /// more: only in MOVE, and not of every move.
    pub high_water: Option<KeyValue<'static>>,
}

/// A counter that gets more fragments, from PREPARE on: whoever has to see or clear all of them
/// knows the new ones, and nobody adds to them yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Widening {
    /// The layout with all fragments.
    pub layout: Arc<Layout>,
    /// How many fragments take ADDs: those of the layout before.
    pub adds: u16,
}

/// A counter that gets fewer fragments, from PREPARE on: nobody adds to those that it loses, and
/// whoever has to see or clear all of them still knows them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Narrowing {
    /// The layout with all fragments: the one before.
    pub layout: Arc<Layout>,
    /// How many fragments take ADDs: those of the layout after.
    pub adds: u16,
    /// Whether a worker folds the others into the base fragment. Reads see that no fold comes
    /// between what they read of the one and of the other.
    pub folds: bool,
}

/// A placement with ADDs kept to so many fragments.
#[must_use]
pub(crate) fn with_adds(mut placement: Placement, to: u16) -> Placement {
    if let Placement::SumOf { adds, .. } = &mut placement {
        *adds = to;
    }
    placement
}

/// A key whose buckets get another number of shards from one on that nothing was written to yet.
/// From PREPARE on its readers know the new number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stepping {
    /// The layout by which items are read, and written to the buckets before `held_from`: the old
    /// one in RESERVE, then the new one.
    pub layout: Arc<Layout>,
    /// Writes that can put an item into this bucket or a later one wait.
    pub held_from: Bucket,
}

impl Moving {
    /// Whether one key can change its layout while clients write: in both of them an item has one
    /// slot, which follows from its primary key; or it [widens](Self::widens) or
    /// [narrows](Self::narrows), or its buckets [step](Self::steps).
    pub fn is_possible(from: &Layout, to: &Layout) -> bool {
        let one_slot = |layout: &Layout| {
            layout.follows_from_key()
                && layout.time().is_none()
                && layout.template().is_none()
                && layout.counter_attributes().is_none()
        };
        one_slot(from) && one_slot(to) || Moving::leaves_items(from, to)
    }

    /// Whether no stored item, as readers count them, has another slot in the one layout than in the
    /// other, and none will until the change is made.
    pub fn leaves_items(from: &Layout, to: &Layout) -> bool {
        Moving::widens(from, to) || Moving::narrows(from, to) || Moving::steps(from, to).is_some()
    }

    /// Whether a counter gets fewer fragments, or becomes a whole key: the way back of
    /// [`widens`](Self::widens). What the fragments hold that it loses is added to its base fragment.
    pub fn narrows(from: &Layout, to: &Layout) -> bool {
        Moving::widens(to, from)
    }

    /// The bucket from which on buckets get another number of shards, if that is all that changes.
    /// Whoever makes the change proves that nothing lies there.
    pub fn steps(from: &Layout, to: &Layout) -> Option<Bucket> {
        from.differs_from(to)
    }

    /// Whether no item has to move, because a counter gets more fragments: a whole key becomes one,
    /// or one of the same attributes grows. What is stored already are its first fragments.
    pub fn widens(from: &Layout, to: &Layout) -> bool {
        let Some(attributes) = to.counter_attributes() else { return false };
        let is_narrower = match from.counter_attributes() {
            Some(own) => own == attributes,
            None => from.lies_whole(),
        };
        is_narrower && from.shards < to.shards
    }

    /// The slots of the item with that sort key; `None` for one that stays where it is.
    ///
    /// # Errors
    /// As [`Layout::slot_of`].
    pub fn slots(&self, sort: Option<SortKey<'_>>) -> Result<Option<Slots>, Unplaced> {
        let slots = Slots { from: self.from.slot_of(sort)?, to: self.to.slot_of(sort)? };
        Ok((slots.from != slots.to).then_some(slots))
    }

    /// Whether no old slot holds an item with that sort key, and none will: it is above the [high
    /// water](Self::high_water). Such an item is in its new slot, or nowhere.
    pub fn is_above_high_water(&self, sort: Option<SortKey<'_>>) -> bool {
        let Some(high_water) = &self.high_water else { return false };
        sort.and_then(SortKey::value).is_some_and(|sort| sort > *high_water)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{By, Hash, InForce, Strategy};

    fn counter(attributes: &[&str], shards: u16) -> Layout {
        let attributes = attributes.iter().map(|name| (*name).to_owned()).collect();
        Layout { strategy: Strategy::Counter { attributes }, shards, hash: Hash::JumpXxh3, version: 1 }
    }

    #[test]
    fn only_a_counter_with_more_fragments_of_the_same_numbers_widens() {
        let calculated = |shards| {
            let strategy = Strategy::calculated(By::SortKey);
            Layout { strategy, shards, hash: Hash::JumpXxh3, version: 1 }
        };
        let four = counter(&["n"], 4);
        for narrower in [Layout::none(), calculated(1), counter(&["n"], 1), counter(&["n"], 3)] {
            assert!(Moving::widens(&narrower, &four) && Moving::is_possible(&narrower, &four), "{narrower}");
        }
        for other in [calculated(2), counter(&["n"], 4), counter(&["n"], 5), counter(&["m"], 2)] {
            assert!(!Moving::widens(&other, &four), "{other}");
        }
        assert!(!Moving::is_possible(&counter(&["m"], 2), &four));
        assert!(!Moving::is_possible(&four, &calculated(8)));
    }

    #[test]
    fn a_counter_narrows_to_what_widens_to_it() {
        let four = counter(&["n"], 4);
        for narrower in [Layout::none(), counter(&["n"], 1), counter(&["n"], 3)] {
            assert!(Moving::narrows(&four, &narrower) && Moving::is_possible(&four, &narrower), "{narrower}");
            assert!(!Moving::widens(&four, &narrower));
        }
        for other in [counter(&["n"], 4), counter(&["n"], 5), counter(&["m"], 2)] {
            assert!(!Moving::narrows(&four, &other), "{other}");
        }
    }

    #[test]
    fn writers_are_narrowed_before_anything_is_folded() {
        let in_force = |phase| {
            let (from, to) = (counter(&["n"], 4).into(), counter(&["n"], 2).into());
            Moving { from, to, phase, expires: None, marks: false, high_water: None }.in_force()
        };
        let adds = |phase| match in_force(phase).placement(None).unwrap() {
            Some(Placement::SumOf { others, adds, .. }) => (others.len() + 1, adds),
            other => panic!("{other:?}"),
        };
        assert_eq!(adds(Phase::Reserve), (4, 4));
        assert_eq!(adds(Phase::Prepare), (4, 2));
        assert_eq!(adds(Phase::Move), (4, 2));
        let folds = |phase| matches!(in_force(phase), InForce::Narrowing(one) if one.folds);
        assert!(!folds(Phase::Prepare) && folds(Phase::Move));
    }

    #[test]
    fn readers_are_widened_before_writers() {
        let adds = |phase| {
            let moving = Moving {
                from: counter(&["n"], 2).into(),
                to: counter(&["n"], 4).into(),
                phase,
                expires: None,
                marks: false,
                high_water: None,
            };
            match moving.in_force().placement(None).unwrap() {
                Some(Placement::SumOf { others, adds, .. }) => (others.len() + 1, adds),
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(adds(Phase::Reserve), (2, 2));
        assert_eq!(adds(Phase::Prepare), (4, 2));
    }
}
