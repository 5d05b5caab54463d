//! What the requests of one key have in common: whether sort keys only grow, whether one page is
//! read again and again, how large items are.

use std::hash::BuildHasher;

use foldhash::fast::FixedState;

use super::sorts::SortSample;

/// The bytes of a sort key that are compared. Keys that are equal up to here count as not growing.
const PREFIX: usize = 40;

/// The signs of one counter. Each share is of the requests that were examined, not of all.
#[derive(Clone, Debug)]
pub struct Signs {
    writes: u32,
    growing: u32,
    same_sort: u32,
    updates: u32,
    adds: u32,
    last_sort: u64,
    reads: u32,
    same: u32,
    page: u64,
    largest_item: u32,
    length: u8,
    largest_sort: [u8; PREFIX],
    sorts: SortSample,
}

impl Signs {
    pub(super) const NONE: Signs = Signs {
        writes: 0,
        growing: 0,
        same_sort: 0,
        updates: 0,
        adds: 0,
        last_sort: 0,
        reads: 0,
        same: 0,
        page: 0,
        largest_item: 0,
        length: 0,
        largest_sort: [0; PREFIX],
        sorts: SortSample::NONE,
    };

    /// An item of that sort key is written. `sort`: bytes that are ordered as the sort keys are.
    pub fn writes(&mut self, sort: &[u8]) {
        let hash = FixedState::with_seed(0).hash_one(sort);
        self.same_sort += u32::from(self.writes > 0 && self.last_sort == hash);
        self.last_sort = hash;
        let sort = sort.get(..PREFIX).unwrap_or(sort);
        let largest = self.largest_sort.get(..usize::from(self.length)).unwrap_or_default();
        let grows = sort > largest;
        // The first is neither: there is nothing to compare it with.
        self.growing += u32::from(grows && self.writes > 0);
        self.writes += 1;
        if grows {
            self.largest_sort[..sort.len()].copy_from_slice(sort);
            self.length = u8::try_from(sort.len()).unwrap_or_default();
        }
    }

    /// The item that was [written](Self::writes) last has that sort key, an attribute value in JSON.
    pub fn sorted_at(&mut self, raw: &[u8]) {
        self.sorts.add(self.writes, raw);
    }

    /// An item is written, which `adds` to numbers and does nothing else.
    pub fn adds(&mut self, adds: bool) {
        self.updates += 1;
        self.adds += u32::from(adds);
    }

    /// A page is read. `page`: a hash of what was asked for.
    pub fn reads(&mut self, page: u64) {
        self.same += u32::from(self.reads > 0 && self.page == page);
        self.reads += 1;
        self.page = page;
    }

    /// An item of so many bytes is read or written.
    pub fn item(&mut self, bytes: usize) {
        self.largest_item = self.largest_item.max(u32::try_from(bytes).unwrap_or(u32::MAX));
    }

    /// Some of the sort keys that were written to.
    pub(super) fn written(&self) -> Vec<String> {
        self.sorts.kept()
    }

    pub(super) fn largest_item(&self) -> u32 {
        self.largest_item
    }

    /// The share of writes whose sort key is above the largest before it; `None` of fewer than two.
    pub(super) fn growing_share(&self) -> Option<f64> {
        (self.writes > 1).then(|| f64::from(self.growing) / f64::from(self.writes - 1))
    }

    /// The share of writes whose sort key is that of the write before; `None` of fewer than two.
    pub(super) fn same_sort_share(&self) -> Option<f64> {
        (self.writes > 1).then(|| f64::from(self.same_sort) / f64::from(self.writes - 1))
    }

    /// The share of writes that only add to numbers; `None` where none was seen.
    pub(super) fn added_share(&self) -> Option<f64> {
        (self.updates > 0).then(|| f64::from(self.adds) / f64::from(self.updates))
    }

    /// The share of reads that ask for what the read before them asked for; `None` of fewer than
    /// two.
    pub(super) fn same_share(&self) -> Option<f64> {
        (self.reads > 1).then(|| f64::from(self.same) / f64::from(self.reads - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growing_keys_and_repeated_pages_are_told_from_others() {
        let mut signs = Signs::NONE;
        assert_eq!((signs.growing_share(), signs.same_share()), (None, None));
        for at in 0..100_u32 {
            signs.writes(format!("2026-01-01T00:00:00.{at:03}").as_bytes());
            signs.reads(u64::from(at / 50));
            signs.item(at as usize);
            signs.adds(at % 4 > 0);
        }
        assert_eq!((signs.growing_share(), signs.largest_item()), (Some(1.0), 99));
        assert_eq!((signs.same_share(), signs.same_sort_share()), (Some(98.0 / 99.0), Some(0.0)));
        assert_eq!(signs.added_share(), Some(0.75));
        signs.writes(b"1999");
        assert_eq!(signs.growing_share(), Some(0.99));
        (0..300).for_each(|_| signs.writes(b"1999"));
        assert_eq!(signs.same_sort_share(), Some(0.75));
    }
}
