//! What single shards of a few keys take, by the physical requests for them.
//!
//! Which keys these are is said from outside, once a window. A key is told of only in windows in
//! which it was measured from the begin on.
//!
//! Not here: which shard a physical request is for (`gateway`).

use std::collections::HashMap;

/// The most shards that are measured, of all keys together. A key with more is not measured.
pub const SHARDS: usize = 1_024;

/// A part, by its place, and the hash of a key.
pub(super) type Place = (usize, u64);

/// What was counted of one shard in one window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ShardCount {
    /// The slot that the shard has: the number of its physical key.
    pub(super) slot: u16,
    /// Thousandths of capacity units.
    pub(super) units: u64,
    pub(super) requests: u64,
    pub(super) throttled: u64,
    /// How many were counted for the requests, and how many of these were throttled.
    pub(super) counted: (u64, u64),
}

/// The shards of all keys that are measured.
#[derive(Debug, Default)]
pub(super) struct ShardCounts {
    keys: HashMap<Place, Measured>,
}

#[derive(Debug)]
struct Measured {
    /// The first window that was measured from its begin on.
    from: u64,
    /// A window that is counted in, and the one before it, with their numbers. Shards are in their
    /// order.
    windows: [(u64, Vec<ShardCount>); 2],
}

impl ShardCounts {
    /// These keys, each with the slots of its shards, are measured from the window after `number`
    /// on: as many of them as [`SHARDS`] has room for, the first ones first.
    pub(super) fn measure(&mut self, number: u64, keys: impl Iterator<Item = (Place, Vec<u16>)>) {
        let mut kept = HashMap::new();
        let mut left = SHARDS;
        for (place, slots) in keys {
            if slots.len() > left || kept.contains_key(&place) {
                continue;
            }
            left -= slots.len();
            let same = |measured: &Measured| measured.slots().eq(slots.iter().copied());
            let before = self.keys.remove(&place).filter(same);
            kept.insert(place, before.unwrap_or_else(|| Measured::of(&slots, number + 1)));
        }
        self.keys = kept;
    }

    /// Adds to a shard in window `number`, if it is measured then.
    pub(super) fn add(&mut self, number: u64, place: Place, more: ShardCount) {
        let Some(measured) = self.keys.get_mut(&place).filter(|measured| number >= measured.from) else {
            return;
        };
        let [even, odd] = &mut measured.windows;
        let window = if number.is_multiple_of(2) { even } else { odd };
        if window.0 != number {
            window.0 = number;
            window.1.iter_mut().for_each(|count| *count = ShardCount::none(count.slot));
        }
        if let Some(count) = window.1.iter_mut().find(|count| count.slot == more.slot) {
            count.units += more.units;
            count.requests += more.requests;
            count.throttled += more.throttled;
            count.counted.0 += more.counted.0;
            count.counted.1 += more.counted.1;
        }
    }

    /// The shards of a key in the window of that number; none where nothing of them was measured.
    pub(super) fn of(&self, number: u64, place: Place) -> &[ShardCount] {
        let windows = self.keys.get(&place).into_iter().flat_map(|measured| &measured.windows);
        windows.into_iter().find(|window| window.0 == number).map_or(&[], |window| &window.1)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }
}

impl Measured {
    /// Nothing yet of these slots, from that window on.
    fn of(slots: &[u16], from: u64) -> Self {
        let none = || (0, slots.iter().copied().map(ShardCount::none).collect());
        Measured { from, windows: [none(), none()] }
    }

    fn slots(&self) -> impl Iterator<Item = u16> {
        self.windows[0].1.iter().map(|count| count.slot)
    }
}

impl ShardCount {
    fn none(slot: u16) -> Self {
        ShardCount { slot, ..ShardCount::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn units(counts: &ShardCounts, number: u64, place: Place) -> Vec<u64> {
        counts.of(number, place).iter().map(|count| count.units).collect()
    }

    #[test]
    fn a_key_is_measured_in_whole_windows_and_by_shard() {
        let (mut counts, key) = (ShardCounts::default(), (3, 77));
        let more = |slot| ShardCount { slot, units: 5, requests: 2, throttled: 1, counted: (1, 1) };
        counts.measure(10, [(key, vec![0, 1, 2])].into_iter());
        counts.add(10, key, more(0));
        assert_eq!(units(&counts, 10, key), [0; 0], "it began within this window");
        for shard in [0, 2, 2, 9] {
            counts.add(11, key, more(shard));
        }
        counts.add(11, (3, 78), more(0));
        counts.measure(11, [(key, vec![0, 1, 2])].into_iter());
        counts.add(12, key, more(1));
        assert_eq!(units(&counts, 11, key), [5, 0, 10]);
        assert_eq!((counts.of(11, key)[2].throttled, counts.of(11, key)[2].requests), (2, 4));
        assert_eq!(units(&counts, 12, key), [0, 5, 0]);
        counts.add(13, key, more(1));
        assert_eq!(units(&counts, 11, key), [0; 0], "it is over");
        // With other slots it begins anew.
        counts.measure(13, [(key, vec![0, 7, 2])].into_iter());
        assert_eq!(units(&counts, 13, key), [0; 0]);
        (1..=2).for_each(|_| counts.add(14, key, more(7)));
        counts.add(14, key, more(1));
        assert_eq!(units(&counts, 14, key), [0, 10, 0], "slot 1 is no longer the key's");
    }

    #[test]
    fn the_shards_of_all_keys_are_bounded() {
        let mut counts = ShardCounts::default();
        let slots = |count: u16| (0..count).collect::<Vec<_>>();
        counts.measure(1, (0..10_000).map(|key| ((0, key), slots(1_025))));
        assert!(counts.is_empty());
        counts.measure(1, (0..10_000).map(|key| ((0, key), slots(if key == 1 { 1_020 } else { 16 }))));
        assert_eq!(counts.keys.len(), SHARDS / 16);
        assert!(!counts.keys.contains_key(&(0, 1)) && counts.keys.contains_key(&(0, 16)));
    }
}
