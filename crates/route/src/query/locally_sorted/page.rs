//! What a page of a locally sorted Query will hold, as far as was read: rows in logical order, no
//! more than the page takes, each item once.
//!
//! Not here: where a row stands in that order (`order`), what is read (`super`).

use std::collections::{BTreeMap, HashSet};

use bytes::Bytes;

use super::moving::Copy;
use super::order::{Place, RowKind};
use crate::identity::Identity;
use crate::learned::item_sizes::PAGE_BYTES;
use crate::query::page::{Collected, Row};

/// Such a page.
#[derive(Clone)]
pub(super) struct SortedPage {
    descending: bool,
    limit: Option<usize>,
    /// Behind which its rows stand.
    after: Option<Place>,
    /// Whether an item's row can be read more than once.
    repeats: bool,
    /// Behind which nothing may be shown: rows that were read there are forgotten.
    bound: Option<Place>,
    /// In no order until cut.
    rows: Vec<(Place, RowKind, Row)>,
    pages: Vec<Bytes>,
    /// Whether rows were left out because the page is full.
    more: bool,
}

impl SortedPage {
    /// An empty page of `limit` rows, all behind `after`. `repeats`: whether an item's row can be
    /// read more than once.
    pub(super) fn new(descending: bool, limit: Option<usize>, after: Option<Place>, repeats: bool) -> Self {
        let (rows, pages) = (Vec::new(), Vec::new());
        SortedPage { descending, limit, after, repeats, bound: None, rows, pages, more: false }
    }

    /// How many rows it has at most.
    pub(super) fn limit(&self) -> Option<usize> {
        self.limit
    }

    /// How many answers of the store it was read from.
    pub(super) fn pages(&self) -> usize {
        self.pages.len()
    }

    /// Whether a row at that place could be in it.
    pub(super) fn takes(&self, place: &Place) -> bool {
        let beyond = |bound: &Place| if self.descending { place < bound } else { place > bound };
        !self.bound.as_ref().is_some_and(beyond) && self.after.as_ref().is_none_or(beyond)
    }

    /// Adds a row of the answer that comes next ([`cut`](Self::cut)).
    pub(super) fn add(&mut self, place: Place, kind: RowKind, row: Row) {
        self.rows.push((place, kind, row));
    }

    /// Takes the answer whose rows were added, keeps what the page can hold, in order, and forgets
    /// the rest.
    pub(super) fn cut(&mut self, answer: Bytes) {
        self.pages.push(answer);
        let descending = self.descending;
        if self.repeats {
            self.keep_newest();
        }
        self.rows.sort_by(|(a, of_a, _), (b, of_b, _)| {
            let order = if descending { b.cmp(a) } else { a.cmp(b) };
            order.then(of_a.rank().cmp(&of_b.rank()))
        });
        self.rows.dedup_by(|(a, ..), (b, ..)| a == b);
        let mut bytes = 0.0;
        let fits = self.rows.iter().take(self.limit.unwrap_or(usize::MAX)).take_while(|(.., row)| {
            let room = bytes < PAGE_BYTES;
            bytes += row.size;
            room
        });
        let fits = fits.count();
        if fits < self.rows.len() {
            self.more = true;
            self.bound =
                fits.checked_sub(1).and_then(|last| self.rows.get(last)).map(|(last, ..)| last.clone());
        }
        self.rows.truncate(fits);
        self.let_go();
    }

    /// Of several rows of an item keeps the one that was read last: it may have been given another
    /// index sort key in between.
    fn keep_newest(&mut self) {
        let mut newest: BTreeMap<_, usize> = BTreeMap::new();
        let is_item = |kind: &RowKind| matches!(kind, RowKind::Item);
        for ((_, partition, sort, slot), _, row) in self.rows.iter().filter(|(_, of, _)| is_item(of)) {
            let page = newest.entry((partition, sort, slot)).or_default();
            *page = row.page.max(*page);
        }
        let is_newest = |((_, partition, sort, slot), of, row): &(Place, RowKind, Row)| {
            !is_item(of) || newest.get(&(partition, sort, slot)) == Some(&row.page)
        };
        let mut stays = self.rows.iter().map(is_newest).collect::<Vec<_>>().into_iter();
        self.rows.retain(|_| stays.next().unwrap_or(true));
    }

    /// Lets go of answers of which no row is left.
    fn let_go(&mut self) {
        let mut used = vec![false; self.pages.len()];
        for (.., row) in &self.rows {
            if let Some(used) = used.get_mut(row.page) {
                *used = true;
            }
        }
        for (page, used) in self.pages.iter_mut().zip(used) {
            if !used {
                *page = Bytes::new();
            }
        }
    }

    /// The place of its last row, if rows behind that were left out.
    pub(super) fn end(&self) -> Option<&Place> {
        self.rows.last().filter(|_| self.more).map(|(last, ..)| last)
    }

    /// The old copies among its rows of which nothing more is known.
    pub(super) fn copies(&self) -> Vec<Copy> {
        self.rows.iter().filter_map(|(_, of, _)| of.old().cloned()).collect()
    }

    /// The rows of these copies are shown; those of the others are not.
    pub(super) fn settle(&mut self, shown: &HashSet<Identity>) {
        for (_, of, _) in &mut self.rows {
            if let Some(copy) = of.old() {
                *of = if shown.contains(copy.identity()) { RowKind::Alone } else { RowKind::Gone };
            }
        }
    }

    /// The page, once all of it was read. `ends_at_last`: whether its last row is where it ends,
    /// shown or not.
    pub(super) fn collected(self, ends_at_last: bool) -> Collected {
        let more = self.more || self.limit.is_some_and(|limit| self.rows.len() >= limit);
        let end = self.rows.last().map(|(.., row)| row.clone()).filter(|_| ends_at_last);
        let shown = |(_, of, row): (Place, RowKind, Row)| (!matches!(of, RowKind::Gone)).then_some(row);
        let rows: Vec<Row> = self.rows.into_iter().filter_map(shown).collect();
        Collected { pages: self.pages, rows, end, more, capacity: None, tied: false }
    }
}
