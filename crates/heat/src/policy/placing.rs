//! Slots for the shards of a key.
//!
//! Not here: how many shards there are to be at least (`plan`).

use std::collections::BTreeSet;

use heatsink_layout::MOST_SLOTS;

use super::crowds::MOST_FILLED;
use super::facts::{Partitions, Units};
use crate::{PARTITION_READS, PARTITION_WRITES};

/// Slots that are tried for each partition.
const TRIED: usize = 16;

/// The lowest slots that are free, in place of those that leave (`None`) and for further shards.
pub(super) fn lowest(keep: &[Option<u16>], shards: u16, taken: &BTreeSet<u16>) -> Option<Vec<u16>> {
    let mut free = (0..MOST_SLOTS).filter(|slot| !taken.contains(slot));
    (0..usize::from(shards)).map(|at| keep.get(at).copied().flatten().or_else(|| free.next())).collect()
}

/// What the partitions of one table or index are asked for, changes that are decided included.
pub(super) struct Ground<'a> {
    partitions: &'a dyn Partitions,
    loads: Vec<Units>,
}

impl<'a> Ground<'a> {
    pub(super) fn of(partitions: &'a dyn Partitions) -> Self {
        let loads = (0..partitions.count()).map(|at| partitions.load(at)).collect();
        Ground { partitions, loads }
    }

    /// The partition of a slot.
    pub(super) fn partition(&self, key: &[u8], slot: u16) -> usize {
        self.partitions.of(key, slot)
    }

    /// What a partition is asked for.
    pub(super) fn load(&self, partition: usize) -> Units {
        self.loads.get(partition).copied().unwrap_or_default()
    }

    /// From now on a slot asks for so much more, or less.
    pub(super) fn add(&mut self, key: &[u8], slot: u16, units: Units, factor: f64) {
        let partition = self.partition(key, slot);
        if let Some(load) = self.loads.get_mut(partition) {
            load.writes = (load.writes + units.writes * factor).max(0.0);
            load.reads = (load.reads + units.reads * factor).max(0.0);
        }
    }

    /// The fewest shards, from so many on, and slots for them by which no partition is filled too
    /// much. The key's own load is not on the ground. `keep`: the slots that the first shards have,
    /// `None` for those that leave. `each`: what one of so many shards is asked for.
    pub(super) fn place(
        &self,
        key: &[u8],
        keep: &[Option<u16>],
        taken: &BTreeSet<u16>,
        counts: std::ops::RangeInclusive<u16>,
        each: impl Fn(u16) -> Units,
    ) -> Option<Vec<u16>> {
        let tried = (self.loads.len() * TRIED).clamp(256, usize::from(MOST_SLOTS));
        let mut free: Vec<Vec<u16>> = vec![Vec::new(); self.loads.len()];
        // The lowest one of a partition is taken first, from the end.
        for slot in (0..MOST_SLOTS).take(tried).rev().filter(|slot| !taken.contains(slot)) {
            if let Some(free) = free.get_mut(self.partition(key, slot)) {
                free.push(slot);
            }
        }
        counts.into_iter().find_map(|shards| self.spread(key, keep, free.clone(), shards, each(shards)))
    }

    /// The fewest shards, from so many on, by which no partition is filled too much while they have
    /// the first slots.
    pub(super) fn place_first(
        &self,
        key: &[u8],
        counts: std::ops::RangeInclusive<u16>,
        each: impl Fn(u16) -> Units,
    ) -> Option<u16> {
        counts.into_iter().find(|shards| {
            let first: Vec<Option<u16>> = (0..*shards).map(Some).collect();
            let none = vec![Vec::new(); self.loads.len()];
            self.spread(key, &first, none, *shards, each(*shards)).is_some()
        })
    }

    fn spread(
        &self,
        key: &[u8],
        keep: &[Option<u16>],
        mut free: Vec<Vec<u16>>,
        shards: u16,
        each: Units,
    ) -> Option<Vec<u16>> {
        let mut loads = self.loads.clone();
        let mut slots = Vec::with_capacity(usize::from(shards));
        let fits = |load: &Units| filled(*load, each) <= MOST_FILLED;
        for at in 0..usize::from(shards) {
            let kept = keep.get(at).copied().flatten().map(|slot| (slot, self.partition(key, slot)));
            let kept = kept.filter(|(_, partition)| loads.get(*partition).is_some_and(fits));
            let (slot, partition) = match kept {
                Some(kept) => kept,
                None => {
                    let coolest = (0..loads.len())
                        .filter(|at| !free[*at].is_empty() && fits(&loads[*at]))
                        .min_by(|a, b| filled(loads[*a], each).total_cmp(&filled(loads[*b], each)))?;
                    (free[coolest].pop()?, coolest)
                }
            };
            loads[partition].writes += each.writes;
            loads[partition].reads += each.reads;
            slots.push(slot);
        }
        Some(slots)
    }
}

/// Which share of a partition is asked for with so much more.
fn filled(load: Units, more: Units) -> f64 {
    ((load.writes + more.writes) / PARTITION_WRITES).max((load.reads + more.reads) / PARTITION_READS)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Slot s lies on partition s mod the count.
    struct Round(Vec<f64>);

    impl Partitions for Round {
        fn count(&self) -> usize {
            self.0.len()
        }
        fn of(&self, _: &[u8], slot: u16) -> usize {
            usize::from(slot) % self.0.len()
        }
        fn load(&self, partition: usize) -> Units {
            Units { writes: self.0[partition], reads: 0.0 }
        }
    }

    fn each(all: f64) -> impl Fn(u16) -> Units {
        move |shards| Units { writes: all / f64::from(shards), reads: 0.0 }
    }

    #[test]
    fn shards_are_laid_where_it_is_cool() {
        let partitions = Round(vec![800.0, 0.0, 900.0, 100.0]);
        let ground = Ground::of(&partitions);
        let none = BTreeSet::new();
        let placed = |all, counts| ground.place(b"k", &[None], &none, counts, each(all));
        assert_eq!(placed(1_500.0, 1..=10), Some(vec![1, 3]));
        assert_eq!(placed(3_000.0, 1..=200), None, "the table has no room for it");
        // A slot that fits is kept, one that burns is not taken again.
        let kept = ground.place(b"k", &[Some(3), None], &[1, 3].into(), 2..=2, each(600.0));
        assert_eq!(kept, Some(vec![3, 5]));
    }

    #[test]
    fn where_partitions_are_not_known_the_lowest_free_slots_are_taken() {
        assert_eq!(lowest(&[Some(0), None, Some(2)], 5, &[0, 1, 2, 4].into()), Some(vec![0, 3, 2, 5, 6]));
    }
}
