//! What the keys and sort keys of items say about shards that no record names.
//!
//! A key such as `game#~3` may be a shard of `game`, or a client's own. An item says more than its
//! key: Heatsink puts it into the shard that follows from its sort key and the number of shards.
//! Where all items of `game`, `game#~1`, `game#~2`, … lie as some number of shards puts them,
//! either Heatsink put them there, or it is chance; how small that chance is, is computed. A
//! client's own few keys of that form are never taken for shards.
//!
//! Where a key's shards have slots by name, each slot holds the items of one shard (`slot_traces`);
//! where they are ranges of the sort key, those between two others (`range_traces`).
//!
//! Not seen: shards that follow from a part of the sort key, buckets, fragments of counters, and
//! values of indexes.
//!
//! Not here: who reads the items (`lost_registry`, and `rebuild` in `adopt`).

use std::collections::BTreeMap;

use heatsink_dynamo::{KeyType, KeyValue};
use heatsink_layout::SortKey;
use heatsink_layout::codec::split_shard_of;

use crate::range_traces::{RangeTraces, ToldRanges};
use crate::slot_traces::SlotTraces;

/// The most shards that a key can have.
pub const MOST_SHARDS: u16 = 1_000;

/// Below this chance keys are taken for shards: one in a hundred thousand. Ten items in four shards
/// are enough.
const CHANCE: f64 = 1e-5;

/// The items of one key whose other keys are written like shards, as far as they were seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyTraces {
    /// How many items were seen, in all shards.
    pub items: u64,
    /// How many of them lie under keys that are written like shards.
    pub in_shards: u64,
    /// The least and the greatest number of shards with which every item seen lies where it does;
    /// `None` if there is none.
    pub shards: Option<(u16, u16)>,
    /// What they say of slots by name.
    named: SlotTraces,
    /// What they say of ranges.
    ranges: RangeTraces,
}

impl KeyTraces {
    /// Counts an item that lies in `shard`, which it does with these numbers of shards.
    pub fn add(&mut self, here: Option<(u16, u16)>, shard: u16) {
        let before = if self.items == 0 { Some((1, MOST_SHARDS)) } else { self.shards };
        self.items += 1;
        self.in_shards += u64::from(shard > 0);
        self.shards = before.zip(here).and_then(|((least, greatest), (from, to))| {
            let both = (least.max(from), greatest.min(to));
            (both.0 <= both.1).then_some(both)
        });
    }

    /// Counts an item with that sort key that lies in the slot of that number.
    fn see(&mut self, sort: SortKey<'_>, slot: u16) {
        self.add(sort.shard_counts(slot, MOST_SHARDS), slot);
        self.named.add(sort, slot, MOST_SHARDS);
        self.ranges.add(sort.value(), slot);
    }

    /// The ranges of the sort key that the items name, where no number of shards has each in its usual
    /// slot; `None` where there are no such either. Few items name slots by name, too.
    pub fn ranges(&self) -> Option<ToldRanges> {
        if self.shards.is_some() { None } else { self.ranges.told() }
    }

    /// The slots that the items name, by shard, where no number of shards has each in its usual
    /// one. `None` where there are no such either.
    pub fn slots(&self) -> Option<Vec<u16>> {
        self.named_slots().map(|(slots, _)| slots)
    }

    fn named_slots(&self) -> Option<(Vec<u16>, usize)> {
        if self.shards.is_some() { None } else { self.named.told(MOST_SHARDS) }
    }

    /// The least number of shards with which every item lies where it does; 0 if there is none.
    pub fn least(&self) -> u16 {
        let named = || self.slots().and_then(|slots| u16::try_from(slots.len()).ok());
        let ranges = || self.ranges().map(|told| told.split_points.ranges());
        self.shards.map(|(least, _)| least).or_else(named).or_else(ranges).unwrap_or(0)
    }

    /// How likely it is that so many items lie so by chance, at most: with n shards each item does
    /// with one chance in n, whatever n is. Of slots by name one item of each says where it is, and
    /// the others lie there by chance; one slot alone says nothing.
    pub fn by_chance(&self) -> f64 {
        let (least, free) = match (self.shards, self.named_slots()) {
            (Some((least, _)), _) => (least.max(2), 0),
            (None, Some((slots, named))) if slots.len() > 1 => {
                (u16::try_from(slots.len()).unwrap_or(u16::MAX), named)
            }
            (None, None) => return self.ranges().map_or(1.0, |told| told.by_chance),
            _ => return 1.0,
        };
        let items = i32::try_from(self.items).unwrap_or(i32::MAX);
        let free = i32::try_from(free).unwrap_or(i32::MAX);
        let with = |shards: u16| f64::from(shards).powi(free.saturating_sub(items));
        (least..=MOST_SHARDS).map(with).sum::<f64>().min(1.0)
    }
}

/// The traces of a table's keys, by the key that they would be shards of.
#[derive(Clone, Debug, Default)]
pub struct ShardTraces {
    keys: BTreeMap<Vec<u8>, KeyTraces>,
}

impl ShardTraces {
    /// Counts an item whose key, of that type, is written like a shard. `false` for another one,
    /// which is not counted.
    pub fn see(&mut self, physical: &[u8], key_type: KeyType, sort: SortKey<'_>) -> bool {
        let Some((base, shard)) = split_shard_of(physical, key_type) else { return false };
        self.keys.entry(base.to_vec()).or_default().see(sort, shard);
        true
    }

    /// Counts an item of a key itself, where others were seen that are written like its shards.
    pub fn see_base(&mut self, key: &[u8], sort: SortKey<'_>) {
        if let Some(traces) = self.keys.get_mut(key) {
            traces.see(sort, 0);
        }
    }

    /// Counts these items, by their partition and sort keys.
    pub fn see_all(&mut self, items: &[(KeyValue<'_>, KeyValue<'_>)]) {
        // First those in shards: they tell which keys matter.
        for base in [false, true] {
            for (key, sort) in items {
                let (key_type, key) = (key.key_type(), key.canonical_bytes());
                let number;
                let sort = match sort {
                    KeyValue::S(text) => SortKey::S(text),
                    KeyValue::B(bytes) => SortKey::B(bytes),
                    KeyValue::N(value) => {
                        number = value.to_string();
                        SortKey::N(&number)
                    }
                };
                if base {
                    self.see_base(&key, sort);
                } else {
                    self.see(&key, key_type, sort);
                }
            }
        }
    }

    /// The keys, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &KeyTraces)> {
        self.keys.iter().map(|(key, traces)| (&**key, traces))
    }

    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether no item was seen.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// A key whose shards cannot be there by chance, however many keys were looked at.
    pub fn sure(&self) -> Option<(&[u8], &KeyTraces)> {
        let looked_at = u32::try_from(self.keys.len()).map_or(f64::MAX, f64::from);
        self.iter().find(|(_, traces)| traces.by_chance() * looked_at < CHANCE)
    }
}

#[cfg(test)]
mod tests {
    use heatsink_layout::codec::plain_suffix;
    use heatsink_layout::{By, Hash, Layout, Strategy};

    use super::*;

    fn sharded(items: usize, shards: u16, key: &str) -> ShardTraces {
        in_slots(items, &(0..shards).collect::<Vec<u16>>(), key)
    }

    fn in_slots(items: usize, slots: &[u16], key: &str) -> ShardTraces {
        let layout = Layout {
            strategy: Strategy::calculated(By::SortKey),
            shards: u16::try_from(slots.len()).unwrap(),
            hash: Hash::JumpXxh3,
            version: 1,
        };
        let layout = layout.with_slots(slots).unwrap();
        let mut traces = ShardTraces::default();
        let sorts: Vec<String> = (0..items).map(|at| format!("player {at}")).collect();
        // The key's own items last: only then is it known that it has shards.
        for base in [false, true] {
            for sort in &sorts {
                let shard = layout.shard_of(Some(SortKey::S(sort)));
                match (base, shard) {
                    (true, 0) => traces.see_base(key.as_bytes(), SortKey::S(sort)),
                    (false, 1..) => {
                        let physical = format!("{key}{}", plain_suffix(shard));
                        assert!(traces.see(physical.as_bytes(), KeyType::S, SortKey::S(sort)));
                    }
                    _ => {}
                }
            }
        }
        traces
    }

    #[test]
    fn shards_are_told_with_their_number() {
        for (items, shards) in [(12, 4), (40, 4), (300, 16), (2_000, 64)] {
            let traces = sharded(items, shards, "game");
            let (key, found) = traces.sure().unwrap();
            assert_eq!((key, found.items), (&b"game"[..], items as u64));
            let (least, greatest) = found.shards.unwrap();
            assert!((least..=greatest).contains(&shards), "{shards}: {found:?}");
        }
        assert_eq!(sharded(2_000, 4, "game").iter().next().unwrap().1.shards, Some((4, 4)));
    }

    #[test]
    fn slots_by_name_are_told_by_their_items() {
        for slots in [&[0, 1, 4, 3][..], &[5, 0], &[9, 8, 7, 6, 5, 4], &[1, 0, 2]] {
            for items in [60, 3_000] {
                let traces = in_slots(items, slots, "game");
                let (_, found) = traces.sure().unwrap();
                assert_eq!(found.slots().as_deref(), Some(slots), "{items}");
                assert_eq!(found.shards, None);
            }
        }
        assert_eq!(sharded(3_000, 4, "game").iter().next().unwrap().1.slots(), None);
    }

    /// A contradiction rules a list out, however late it comes: an item in another slot than the
    /// others of its shard. A whole key in one slot looks like a client's own.
    #[test]
    fn what_contradicts_itself_tells_no_slots() {
        for items in [40, 3_000] {
            let mut traces = in_slots(items, &[0, 1, 4, 3], "game");
            for slot in [0, 1] {
                traces.see(format!("game#~{}", 7 + slot).as_bytes(), KeyType::S, SortKey::S("another"));
            }
            let (_, found) = traces.iter().next().unwrap();
            let told = found.slots().filter(|_| found.by_chance() < CHANCE);
            assert_eq!(told, None, "{items}");
        }
        assert_eq!(in_slots(3_000, &[5], "game").sure(), None);
    }

    #[test]
    fn keys_that_clients_write_so_are_their_own() {
        let mut traces = ShardTraces::default();
        for at in 0..10_000_u32 {
            // One item each, some under one key, and a round robin over shards that a client made.
            traces.see(format!("{at}#~1").as_bytes(), KeyType::S, SortKey::S("x"));
            traces.see(b"game#~3", KeyType::S, SortKey::S(&at.to_string()));
            traces.see(
                format!("robin#~{}", 1 + at % 4).as_bytes(),
                KeyType::S,
                SortKey::S(&format!("at {at}")),
            );
        }
        assert_eq!(traces.sure(), None);
        assert!(
            !traces.see(b"game#3", KeyType::S, SortKey::S("x"))
                && !traces.see(b"game#~0", KeyType::S, SortKey::S("x"))
        );
    }

    /// Few items say nothing: they may lie there by chance.
    #[test]
    fn few_items_are_no_proof() {
        assert_eq!(sharded(5, 4, "game").sure(), None);
        assert!(sharded(8, 4, "game").iter().next().unwrap().1.by_chance() > CHANCE);
    }
}
