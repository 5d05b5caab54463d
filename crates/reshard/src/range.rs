//! A read of a range of items of which each may have two copies, for a Query.
//!
//! For every range: the new copies, the old ones, the new ones again, all strongly consistent. A
//! row of the old copies counts only where both reads of the new ones lack it; of the others the
//! second read counts. A range ends where the first of its three pages ends, and the next range has
//! three reads of its own: old rows that are read later say nothing about new rows that were read
//! before.
//!
//! Filters, limits and counts apply to what comes out. Not here: which physical keys are read for a
//! side. Where a physical key belongs to both layouts, a row of it is a new copy if the new layout
//! puts it there, and an old one otherwise.

use crate::record::Side;
use crate::rules::{Rule, Rules};

/// Rows in the order of the Query, which is that of `K`; `T` is what a row holds.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Page<K, T> {
    /// The rows, each place once, in order.
    pub rows: Vec<(K, T)>,
    /// Up to where, inclusively, these are all rows; `None` for the end of what was asked for.
    pub end: Option<K>,
}

/// The next page to read.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RangeCall<K> {
    /// Of which copies.
    pub side: Side,
    /// Where to begin, exclusively.
    pub after: Option<K>,
    /// Where to end, inclusively, at the latest. What is read beyond it does not count.
    pub until: Option<K>,
}

/// A read of ranges, one after the other.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RangeRead<K, T> {
    after: Option<K>,
    /// Before this place, in the order of the Query, the old copies have no rows.
    old_from: Option<K>,
    at: At<K, T>,
    rules: Rules,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum At<K, T> {
    First,
    Old {
        first: Page<K, T>,
    },
    Again {
        first: Page<K, T>,
        old: Page<K, T>,
    },
    /// Only without a rule: the new copies are known once and for all.
    Known {
        first: Page<K, T>,
        again: Page<K, T>,
    },
}

impl<K: Ord + Clone, T: Clone> RangeRead<K, T> {
    /// A read of everything after a place, or from the beginning.
    pub fn new(after: Option<K>, rules: Rules) -> Self {
        RangeRead { after, old_from: None, at: RangeRead::start(rules), rules }
    }

    /// The same, of a key whose old copies have no rows before this place in the order of the
    /// Query: a descending Query reads what is above the high water first. A range that ends before
    /// it is read once.
    #[must_use]
    pub fn with_old_from(self, old_from: Option<K>) -> Self {
        RangeRead { old_from, ..self }
    }

    /// The page to read next.
    pub fn call(&self) -> RangeCall<K> {
        let keeps_range = self.rules.keep(Rule::RangeReadAgain);
        let (side, until) = match &self.at {
            At::First => (Side::New, None),
            At::Old { first } => (Side::Old, first.end.clone()),
            At::Again { first, old } if keeps_range => (Side::New, earlier(&first.end, &old.end)),
            At::Again { .. } => (Side::New, None),
            At::Known { .. } => (Side::Old, None),
        };
        RangeCall { side, after: self.after.clone(), until }
    }

    /// Takes the page that was read. `Some` with the rows of a range when all of its pages are
    /// there; its end is where the next range begins.
    pub fn answered(&mut self, page: Page<K, T>) -> Option<Page<K, T>> {
        let start = RangeRead::start(self.rules);
        let (first, old, again) = match std::mem::replace(&mut self.at, start) {
            At::First if page.end.is_some() && page.end < self.old_from => {
                self.after.clone_from(&page.end);
                return Some(page);
            }
            At::First => {
                self.at = At::Old { first: page };
                return None;
            }
            At::Old { first } if self.rules.keep(Rule::NewReadAgain) => {
                self.at = At::Again { first, old: page };
                return None;
            }
            At::Old { first } => (first.clone(), page, first),
            At::Again { first, old } => (first, old, page),
            At::Known { mut first, mut again } => {
                let after = &self.after;
                let ahead = |(key, _): &(K, T)| after.as_ref().is_none_or(|after| key > after);
                first.rows.retain(ahead);
                again.rows.retain(ahead);
                (first, page, again)
            }
        };
        let merged = merge(&first, &old, &again);
        self.after.clone_from(&merged.end);
        if !self.rules.keep(Rule::RangeReadAgain) && first.end.is_none() && again.end.is_none() {
            self.at = At::Known { first, again };
        }
        Some(merged)
    }

    fn start(rules: Rules) -> At<K, T> {
        match rules.keep(Rule::NewReadFirst) {
            true => At::First,
            false => At::Old { first: Page { rows: Vec::new(), end: None } },
        }
    }
}

/// The earlier of two ends.
fn earlier<K: Ord + Clone>(one: &Option<K>, other: &Option<K>) -> Option<K> {
    one.iter().chain(other).min().cloned()
}

/// The rows of a range of which these pages were read in this order.
fn merge<K: Ord + Clone, T: Clone>(first: &Page<K, T>, old: &Page<K, T>, again: &Page<K, T>) -> Page<K, T> {
    let end = earlier(&earlier(&first.end, &old.end), &again.end);
    let inside = |key: &K| end.as_ref().is_none_or(|end| key <= end);
    let has = |page: &Page<K, T>, key: &K| page.rows.binary_search_by(|(row, _)| row.cmp(key)).is_ok();
    let old_rows = old.rows.iter().filter(|(key, _)| !has(first, key) && !has(again, key));
    let mut rows: Vec<(K, T)> =
        again.rows.iter().chain(old_rows).filter(|(key, _)| inside(key)).cloned().collect();
    rows.sort_by(|(one, _), (other, _)| one.cmp(other));
    Page { rows, end }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(rows: &[(u8, u8)], end: Option<u8>) -> Page<u8, u8> {
        Page { rows: rows.to_vec(), end }
    }

    #[test]
    fn an_old_row_counts_where_no_read_of_the_new_ones_has_it() {
        let mut read = RangeRead::new(None, Rules::ALL);
        assert_eq!(read.call(), RangeCall { side: Side::New, after: None, until: None });
        assert_eq!(read.answered(page(&[(2, 20), (5, 50)], Some(7))), None);
        assert_eq!(read.call(), RangeCall { side: Side::Old, after: None, until: Some(7) });
        assert_eq!(read.answered(page(&[(1, 1), (2, 2), (3, 3), (4, 4), (5, 5)], Some(5))), None);
        assert_eq!(read.call(), RangeCall { side: Side::New, after: None, until: Some(5) });
        let merged = read.answered(page(&[(2, 21), (3, 30), (6, 60)], None));
        assert_eq!(merged, Some(page(&[(1, 1), (2, 21), (3, 30), (4, 4)], Some(5))));
        assert_eq!(read.call(), RangeCall { side: Side::New, after: Some(5), until: None });
    }

    #[test]
    fn a_range_where_no_old_row_lies_is_read_once() {
        let mut read = RangeRead::new(None, Rules::ALL).with_old_from(Some(4));
        let above = page(&[(1, 1), (3, 3)], Some(3));
        assert_eq!(read.answered(above.clone()), Some(above));
        assert_eq!(read.call(), RangeCall { side: Side::New, after: Some(3), until: None });
        assert_eq!(read.answered(page(&[(4, 4)], Some(4))), None, "an old row may lie there");
        let mut read = RangeRead::new(None, Rules::ALL).with_old_from(Some(4));
        assert_eq!(read.answered(page(&[], None)), None, "it ends with the key");
    }
}
