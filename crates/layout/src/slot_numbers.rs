//! Which slot each shard of a key has.
//!
//! A shard is a part of the key's items, told by their hash. Its slot is the physical key under
//! which they lie. Shard k has slot k unless a list says otherwise. A shard that gets another slot
//! takes only its own items along, whatever the others do.
//!
//! Lists are for calculated shards outside buckets, for ranges, and for whole keys. Not here: how a
//! slot is written as a physical key ([`Table`](crate::Table)), which slot a shard should have
//! (`heat`).

use crate::{By, Layout, Strategy};

/// Slots have numbers below this.
pub const MOST_SLOTS: u16 = 10_000;

/// Why numbers are no list of slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadSlots {
    /// There is not one for each shard.
    #[error("{named} slots are named for {shards} shards, and each shard has one")]
    Count {
        /// How many are named.
        named: usize,
        /// How many shards there are.
        shards: u16,
    },
    /// Two shards would share it.
    #[error("the slot {0} is named twice")]
    Twice(u16),
    /// There is none of that number.
    #[error("there is no slot {0}: the highest is {most}", most = MOST_SLOTS - 1)]
    Above(u16),
    /// Items of such a layout have no slots by name.
    #[error("only whole keys, and keys whose shards are calculated or ranges, have slots by name")]
    Strategy,
}

/// Whether these can be the slots of so many shards.
///
/// # Errors
/// [`BadSlots`].
pub fn check_slots(slots: &[u16], shards: u16) -> Result<(), BadSlots> {
    if slots.len() != usize::from(shards) {
        return Err(BadSlots::Count { named: slots.len(), shards });
    }
    if let Some(above) = slots.iter().find(|slot| **slot >= MOST_SLOTS) {
        return Err(BadSlots::Above(*above));
    }
    let mut sorted = slots.to_vec();
    sorted.sort_unstable();
    match sorted.windows(2).find(|pair| pair.first() == pair.last()) {
        Some(pair) => Err(BadSlots::Twice(pair.first().copied().unwrap_or_default())),
        None => Ok(()),
    }
}

impl Layout {
    /// The slots by name, by shard; empty where shard k has slot k.
    pub fn slots(&self) -> &[u16] {
        match &self.strategy {
            Strategy::Calculated { slots, .. } | Strategy::Range { slots, .. } => slots,
            _ => &[],
        }
    }

    /// The number of a shard's slot.
    pub fn slot_number(&self, shard: u16) -> u16 {
        self.slots().get(usize::from(shard)).copied().unwrap_or(shard)
    }

    /// The numbers of all slots, by shard; where there are buckets, those that any bucket has.
    pub fn slot_numbers(&self) -> impl Iterator<Item = u16> {
        (0..self.most_shards().max(1)).map(|shard| self.slot_number(shard))
    }

    /// The shard that has the slot of that number.
    pub fn shard_in(&self, number: u16) -> Option<u16> {
        let slots = self.slots();
        if slots.is_empty() {
            return (number < self.most_shards().max(1)).then_some(number);
        }
        let at = slots.iter().position(|slot| *slot == number)?;
        u16::try_from(at).ok()
    }

    /// The lowest number of a slot above that one; above none, the lowest of all.
    pub fn next_slot(&self, after: Option<u16>) -> Option<u16> {
        self.slot_numbers().filter(|number| after.is_none_or(|after| *number > after)).min()
    }

    /// All slots have numbers below this.
    pub fn slot_bound(&self) -> u16 {
        self.slot_numbers().max().map_or(0, |highest| highest.saturating_add(1))
    }

    /// The same layout with these slots, by shard.
    ///
    /// # Errors
    /// [`BadSlots`].
    pub fn with_slots(self, slots: &[u16]) -> Result<Layout, BadSlots> {
        check_slots(slots, self.shards)?;
        let is_usual = slots.iter().zip(0..).all(|(slot, shard)| *slot == shard);
        let slots = if is_usual { Vec::new() } else { slots.to_vec() };
        let strategy = match self.strategy {
            Strategy::Calculated { by, .. } => Strategy::Calculated { by, slots },
            Strategy::Range { split_points, .. } => Strategy::Range { split_points, slots },
            Strategy::None if is_usual => Strategy::None,
            Strategy::None => Strategy::Calculated { by: By::SortKey, slots },
            _ => return Err(BadSlots::Strategy),
        };
        Ok(Layout { strategy, ..self })
    }

    /// Whether its slots are as [`with_slots`](Self::with_slots) names them: a record that says
    /// otherwise is damaged.
    pub fn has_sound_slots(&self) -> bool {
        let slots = self.slots();
        slots.is_empty()
            || check_slots(slots, self.shards).is_ok()
                && slots.iter().zip(0..).any(|(slot, shard)| *slot != shard)
    }

    /// Of the numbers from `from` on that no shard's slot has, so many, the lowest first; fewer
    /// where there are no more below [`MOST_SLOTS`].
    pub fn lowest_free_slots(&self, count: u16, from: u16) -> Vec<u16> {
        let free = (from..MOST_SLOTS).filter(|number| self.shard_in(*number).is_none());
        free.take(usize::from(count)).collect()
    }

    /// The slots of so many shards of the same key: those that stay keep theirs, and new ones get
    /// the lowest free ones.
    pub fn slots_for(&self, shards: u16) -> Vec<u16> {
        let kept = self.shards.min(shards);
        let mut slots: Vec<u16> = (0..kept).map(|shard| self.slot_number(shard)).collect();
        let free = (0..MOST_SLOTS).filter(|number| !slots.contains(number));
        let new: Vec<u16> = free.take(usize::from(shards - kept)).collect();
        slots.extend(new);
        slots
    }

    /// Whether two layouts put each item into the same shard, whatever slots the shards have.
    pub fn spreads_as(&self, other: &Layout) -> bool {
        if self.shards != other.shards {
            return false;
        }
        match (&self.strategy, &other.strategy) {
            (Strategy::None | Strategy::Calculated { .. }, Strategy::None | Strategy::Calculated { .. })
                if self.shards <= 1 =>
            {
                true
            }
            (Strategy::Calculated { by, .. }, Strategy::Calculated { by: other_by, .. }) => {
                by == other_by && self.hash == other.hash
            }
            (Strategy::Range { split_points, .. }, Strategy::Range { split_points: others, .. }) => {
                split_points == others
            }
            _ => false,
        }
    }
}
