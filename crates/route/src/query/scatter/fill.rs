//! How far a page is filled: by its `Limit`, and by the megabyte that a page evaluates. How many
//! rows it still takes follows from that, and from what an item weighs. Not here: how many of them
//! each shard is asked for (`round`).

use std::sync::Arc;

use super::wanted::Wanted;
use crate::learned::item_sizes::PAGE_BYTES;
use crate::query::page::{Row, count};

/// A page that is being filled.
pub(super) struct PageFill {
    wanted: Arc<Wanted>,
    /// The rows that it has.
    rows: usize,
    /// Bytes of evaluated data, estimated so that they are not too many.
    evaluated: f64,
    /// All that was read: bytes and items.
    read: (f64, usize),
}

impl PageFill {
    /// An empty page.
    pub(super) fn new(wanted: Arc<Wanted>) -> Self {
        PageFill { wanted, rows: 0, evaluated: 0.0, read: (0.0, 0) }
    }

    /// The page has a row more.
    pub(super) fn add(&mut self, row: &Row) {
        self.rows += 1;
        self.evaluated += row.size;
    }

    /// So many bytes and items were read.
    pub(super) fn note_read(&mut self, bytes: f64, items: usize) {
        self.read.0 += bytes;
        self.read.1 += items;
    }

    /// Whether it has all the rows that its `Limit` allows.
    pub(super) fn is_limited(&self) -> bool {
        self.wanted.limit.is_some_and(|limit| self.rows >= limit)
    }

    /// Whether it takes no more.
    pub(super) fn is_full(&self) -> bool {
        self.is_limited() || self.evaluated >= PAGE_BYTES
    }

    /// How many rows it still takes.
    pub(super) fn rows_left(&self) -> usize {
        let by_bytes = self.rows_left_by_bytes();
        self.wanted.limit.map_or(by_bytes, |limit| limit.saturating_sub(self.rows).min(by_bytes))
    }

    /// How many rows its bytes have room for.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between 1 and the bytes of a page"
    )]
    pub(super) fn rows_left_by_bytes(&self) -> usize {
        ((PAGE_BYTES - self.evaluated) / self.item_size()).ceil().clamp(1.0, PAGE_BYTES) as usize
    }

    /// Tells of rows that follow, shown one after the other, whether the page is full with that
    /// one.
    pub(super) fn is_full_with(&self) -> impl FnMut(&Row) -> bool {
        let mut rows = self.wanted.limit.map(|limit| limit.saturating_sub(self.rows));
        let mut bytes = self.evaluated;
        move |row| {
            bytes += row.size;
            rows = rows.map(|rows| rows.saturating_sub(1));
            rows == Some(0) || bytes >= PAGE_BYTES
        }
    }

    /// What an item weighs, as far as is known.
    pub(super) fn item_size(&self) -> f64 {
        match self.read {
            (bytes, items) if items > 0 && bytes > 0.0 => (bytes / count(items)).max(1.0),
            _ => self.wanted.sizes.expected(&self.wanted.learned_as),
        }
    }

    /// Whether anything is known of what an item weighs.
    pub(super) fn knows_item_size(&self) -> bool {
        self.read.1 > 0 || self.wanted.sizes.knows(&self.wanted.learned_as)
    }

    /// Has what was read remembered for Queries to come.
    pub(super) fn learn(&self) {
        self.wanted.sizes.learn(&self.wanted.learned_as, self.read.0, self.read.1);
    }
}
