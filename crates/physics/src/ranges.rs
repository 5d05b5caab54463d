//! The key ranges of a table's partitions: finding the partition of a position, and splitting.

use std::ops::Range;

use crate::key_position::{KeyPosition, KeyRange, SortKey};
use crate::mode::PARTITIONS_MAX;
use crate::partition::Partition;

/// The partitions of a table or index in order of their ranges. Only ever split, never merged
/// (docs/explain/partitions.md#split-for-heat).
#[derive(Clone, Debug)]
pub(crate) struct Ranges {
    /// Where each begins; the first at [`KeyPosition::MIN`]. Apart from the partitions, so that a
    /// search touches little memory.
    froms: Vec<KeyPosition>,
    guide: Guide,
    pub all: Vec<Partition>,
    next_id: u64,
    index: bool,
}

impl Ranges {
    /// `count` equal ranges of the hash.
    pub(crate) fn even(now: u64, count: u64, index: bool) -> Self {
        let count = count.max(1);
        let from = |nth: u64| {
            KeyPosition::first(u64::try_from((u128::from(nth) << 64) / u128::from(count)).unwrap_or(u64::MAX))
        };
        let froms: Vec<KeyPosition> = (0..count).map(from).collect();
        Ranges {
            guide: Guide::new(&froms),
            froms,
            all: (0..count).map(|id| Partition::new(now, id, index)).collect(),
            next_id: count,
            index,
        }
    }

    /// As they were kept: ids and where they begin. `None` if that is no partition of the line.
    pub(crate) fn kept(now: u64, kept: &[(u64, KeyPosition)], next_id: u64, index: bool) -> Option<Self> {
        let rising = kept.windows(2).all(|two| two[0].1 < two[1].1);
        let first = kept.first().is_some_and(|(_, from)| *from == KeyPosition::MIN);
        let known = kept.iter().all(|(id, _)| *id < next_id);
        if !(rising && first && known && kept.len() <= PARTITIONS_MAX) {
            return None;
        }
        let froms: Vec<KeyPosition> = kept.iter().map(|(_, from)| *from).collect();
        Some(Ranges {
            guide: Guide::new(&froms),
            froms,
            all: kept.iter().map(|(id, _)| Partition::new(now, *id, index)).collect(),
            next_id,
            index,
        })
    }

    pub(crate) fn next_id(&self) -> u64 {
        self.next_id
    }

    /// Which partition holds a point.
    #[inline]
    pub(crate) fn find(&self, point: &KeyPosition) -> usize {
        let (low, high) = self.guide.within(point.position);
        match self.froms.get(low + 1..=high) {
            Some(rest) if !rest.is_empty() => low + rest.partition_point(|from| from <= point),
            _ => low,
        }
    }

    pub(crate) fn touched(&self, place: &KeyRange) -> Range<usize> {
        match place {
            KeyRange::At(point) => {
                let at = self.find(point);
                at..at + 1
            }
            KeyRange::Stretch { position, from, to } => {
                let first = self.find(&KeyPosition::new(*position, *from));
                first..self.find(&KeyPosition::new(*position, (*to).max(*from))) + 1
            }
            KeyRange::All => 0..self.all.len(),
            KeyRange::Unknown => 0..0,
        }
    }

    /// Where a partition begins, and the last position it holds.
    pub(crate) fn bounds(&self, at: usize) -> (KeyPosition, u64) {
        let last = match self.froms.get(at + 1) {
            None => u64::MAX,
            Some(next) if next.sort > SortKey::MIN => next.position,
            Some(next) => next.position.saturating_sub(1),
        };
        (self.froms[at], last)
    }

    /// Whether a split there would leave something on both sides.
    pub(crate) fn splits(&self, at: usize, point: KeyPosition) -> bool {
        point > self.froms[at] && self.froms.get(at + 1).is_none_or(|next| point < *next)
    }

    pub(crate) fn full(&self) -> bool {
        self.all.len() >= PARTITIONS_MAX
    }

    /// Splits a partition in two; the new ids.
    pub(crate) fn split(&mut self, now: u64, at: usize, point: KeyPosition) -> [u64; 2] {
        let ids = [self.next_id, self.next_id + 1];
        self.next_id += 2;
        let other = self.all[at].split_off(now, ids, self.index);
        self.all.insert(at + 1, other);
        self.froms.insert(at + 1, point);
        self.guide = Guide::new(&self.froms);
        ids
    }

    /// The middle of a partition's range: between item collections while it holds more than one
    /// position.
    pub(crate) fn middle(&self, at: usize) -> Option<KeyPosition> {
        let (from, last) = self.bounds(at);
        let point = if from.position < last {
            KeyPosition::first(from.position + (last - from.position).div_ceil(2))
        } else {
            let next = self.froms.get(at + 1).filter(|next| next.position == from.position);
            KeyPosition::new(from.position, from.sort.middle(next.map_or(SortKey::MAX, |next| next.sort)))
        };
        self.splits(at, point).then_some(point)
    }

    /// Splits every range that is wider than its share of `needed` equal ones into equal parts, as
    /// few as will do. Then no range is asked for more than its ceiling by traffic that is spread
    /// evenly over the keys. `halves`: by halving only.
    pub(crate) fn grow(&mut self, now: u64, needed: usize, halves: bool) {
        for at in (0..self.all.len()).rev() {
            let (from, last) = self.bounds(at);
            // How many shares of the line this range holds, rounded up; less one position, by which
            // equal ranges differ.
            let shares = (u128::from(last - from.position) * needed.max(1) as u128) >> 64;
            let parts = u64::try_from(shares).unwrap_or(u64::MAX).saturating_add(1);
            let parts = if halves { parts.next_power_of_two() } else { parts };
            self.cut(now, at, parts);
        }
    }

    /// Cuts a partition into so many equal ranges, from the last to the first. Item collections
    /// stay whole.
    fn cut(&mut self, now: u64, at: usize, parts: u64) {
        let (from, last) = self.bounds(at);
        let width = u128::from(last - from.position) + 1;
        for part in (1..parts).rev() {
            let offset = u64::try_from(width * u128::from(part) / u128::from(parts)).unwrap_or(u64::MAX);
            let point = KeyPosition::first(from.position.saturating_add(offset));
            if self.splits(at, point) && !self.full() {
                self.split(now, at, point);
            }
        }
    }
}

/// Where to look for a position: the line in equal parts, and for each which partition holds its
/// start. A search that halves the partitions takes a turn at random for every half, which a
/// processor cannot foresee; this takes nearly none.
#[derive(Clone, Debug)]
struct Guide {
    /// One for each part, and the last partition behind them.
    starts: Vec<u32>,
    shift: u32,
}

/// At most 4,096 parts: a split makes the guide anew.
const GUIDE_BITS: u32 = 12;

impl Guide {
    /// Some eight parts for each partition.
    fn new(froms: &[KeyPosition]) -> Guide {
        let bits = (froms.len().max(2).ilog2() + 3).min(GUIDE_BITS);
        let shift = 64 - bits;
        let number = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        let mut starts = Vec::with_capacity((1 << bits) + 1);
        let mut at = 0;
        for part in 0..1u64 << bits {
            let start = KeyPosition::first(part << shift);
            while froms.get(at + 1).is_some_and(|next| *next <= start) {
                at += 1;
            }
            starts.push(number(at));
        }
        starts.push(number(froms.len().saturating_sub(1)));
        Guide { starts, shift }
    }

    /// First and last of the partitions that may hold the position.
    #[inline]
    fn within(&self, position: u64) -> (usize, usize) {
        let part = usize::try_from(position >> self.shift).unwrap_or(0);
        (self.starts[part] as usize, self.starts[part + 1] as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn a_place_is_found_where_its_range_is() {
        let mut random = Random::seeded(1);
        let mut ranges = Ranges::even(0, 5, false);
        for turn in 0..400 {
            // Between keys, and inside one that is cut again and again.
            let position = if turn % 2 == 0 { random.between(0, u64::MAX) } else { 7 << 60 };
            let point = KeyPosition::new(position, SortKey::ordinal(random.between(0, u64::MAX)));
            let at = ranges.find(&point);
            if ranges.splits(at, point) {
                ranges.split(0, at, point);
            }
            for _ in 0..20 {
                let near =
                    ranges.froms[usize::try_from(random.between(0, ranges.froms.len() as u64 - 1)).unwrap()];
                let far = KeyPosition::first(random.between(0, u64::MAX));
                for point in [
                    near,
                    far,
                    KeyPosition::first(near.position),
                    KeyPosition::first(near.position.wrapping_sub(1)),
                ] {
                    let plain = ranges.froms.partition_point(|from| *from <= point) - 1;
                    assert_eq!(ranges.find(&point), plain);
                }
            }
        }
        assert!(ranges.all.len() > 300);
        assert_eq!(ranges.find(&KeyPosition::new(u64::MAX, SortKey::MAX)), ranges.all.len() - 1);
    }
}
