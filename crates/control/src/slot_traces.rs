//! What items of one key say of slots by name: with how many shards each shard has one slot, and
//! each slot one shard.
//!
//! The shard of an item follows from its sort key and the number of shards, and its slot from where
//! it lies. So each item names the slot of a shard, for every number of shards; a number is ruled
//! out by two items that name two slots for one shard, or one slot for two.
//!
//! Not here: keys of which shard k has slot k (`shard_traces`).

use std::collections::BTreeMap;

use heatsink_layout::hash::jump_of;
use heatsink_layout::{MOST_SLOTS, SortKey};

/// So many items of a key are kept until numbers of shards are ruled out: then few are left.
const KEPT: usize = 64;

/// The slots of one key by its items, as far as they were seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SlotTraces {
    /// The first items: the hash of the sort key, and the slot.
    first: Vec<(u64, u16)>,
    /// What is possible once there were more than [`KEPT`].
    left: Option<Vec<Candidate>>,
}

/// A number of shards with which every item seen lies in the slot of its shard.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Candidate {
    shards: u16,
    by_shard: BTreeMap<u16, u16>,
    by_slot: BTreeMap<u16, u16>,
}

impl Candidate {
    fn of(shards: u16) -> Self {
        Candidate { shards, by_shard: BTreeMap::new(), by_slot: BTreeMap::new() }
    }

    /// Takes an item. `false` if it rules the number out.
    fn takes(&mut self, hash: u64, slot: u16) -> bool {
        let shard = jump_of(hash, self.shards);
        *self.by_shard.entry(shard).or_insert(slot) == slot
            && *self.by_slot.entry(slot).or_insert(shard) == shard
    }

    /// The slots, by shard. A shard without an item has the lowest number that is free.
    fn slots(&self) -> Vec<u16> {
        let mut free = (0..MOST_SLOTS).filter(|slot| !self.by_slot.contains_key(slot));
        let slot = |shard| self.by_shard.get(&shard).copied().or_else(|| free.next());
        (0..self.shards).filter_map(slot).collect()
    }
}

impl SlotTraces {
    /// Counts an item of the key that lies in that slot. `most`: the most shards that a key has.
    pub(crate) fn add(&mut self, sort: SortKey<'_>, slot: u16, most: u16) {
        let hash = sort.xxh3();
        match &mut self.left {
            Some(left) => left.retain_mut(|candidate| candidate.takes(hash, slot)),
            None => {
                self.first.push((hash, slot));
                if self.first.len() > KEPT {
                    let left = possible(&self.first, most);
                    self.first = Vec::new();
                    self.left = Some(left);
                }
            }
        }
    }

    /// The least number of shards that the items allow, as their slots by shard, and how many of
    /// these an item names. `None` where no number is left, or an item lies in no slot.
    pub fn told(&self, most: u16) -> Option<(Vec<u16>, usize)> {
        let of = |candidate: &Candidate| (candidate.slots(), candidate.by_slot.len());
        match &self.left {
            Some(left) => left.first().map(of),
            None => possible(&self.first, most).first().map(of),
        }
    }
}

/// The numbers of shards that these items allow.
fn possible(items: &[(u64, u16)], most: u16) -> Vec<Candidate> {
    if items.is_empty() || items.iter().any(|(_, slot)| *slot >= MOST_SLOTS) {
        return Vec::new();
    }
    let allows = |shards| {
        let mut candidate = Candidate::of(shards);
        items.iter().all(|(hash, slot)| candidate.takes(*hash, *slot)).then_some(candidate)
    };
    (1..=most).filter_map(allows).collect()
}
