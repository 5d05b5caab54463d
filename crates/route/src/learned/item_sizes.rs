//! How many items to ask of one shard, and how large the items of a table are.
//!
//! Not here: which shards to ask, which is the merge's to say.

use std::sync::{Mutex, PoisonError};

use hashlink::LruCache;

/// What one page of DynamoDB holds at most, in bytes of evaluated data (AWS, "Constraints").
pub(crate) const PAGE_BYTES: f64 = 1024.0 * 1024.0;

/// What a request with a fixed number of rows asks of each of `shards`: mean + 3σ of
/// Binomial(`rows`, 1/`shards`), so that one round nearly always suffices. At least 1, at most
/// `rows`.
pub(crate) fn likely(rows: usize, shards: usize) -> usize {
    let (mean, sigma) = binomial(rows, shards);
    at_most(mean + 3.0 * sigma, rows)
}

/// What a page that is bounded by its bytes asks of each shard: the mean. Over thousands of rows
/// the few that are missing come cheaper from a second round than from reading 3σ too many in every
/// shard of every page.
pub(crate) fn mean(rows: usize, shards: usize) -> usize {
    at_most(binomial(rows, shards).0, rows)
}

#[allow(clippy::cast_precision_loss, reason = "row counts far below 2^52")]
fn binomial(rows: usize, shards: usize) -> (f64, f64) {
    let p = 1.0 / shards.max(1) as f64;
    let mean = rows as f64 * p;
    (mean, (mean * (1.0 - p)).sqrt())
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "not negative and bounded by rows"
)]
fn at_most(share: f64, rows: usize) -> usize {
    // A hair below the next whole number is rounding, not a reason for one more row.
    ((share - 1e-9).ceil() as usize).clamp(1, rows.max(1))
}

/// The size of a table's or an index's items in bytes, learned from what reads of it cost. One per
/// router.
///
/// It only decides how much is asked at first; a wrong guess costs a round or some capacity units,
/// never an answer.
#[derive(Debug)]
pub(crate) struct ItemSizes {
    learned: Mutex<LruCache<String, f64>>,
}

impl Default for ItemSizes {
    fn default() -> Self {
        ItemSizes { learned: Mutex::new(LruCache::new(REMEMBERED)) }
    }
}

/// What an item is taken for before the first one was seen, in bytes. Small items are the common
/// case, and asking too few costs one more round while asking too many costs capacity units.
pub(crate) const UNKNOWN_ITEM: f64 = 1024.0;

/// How much one read moves the average.
const WEIGHT: f64 = 0.25;

/// Tables and indexes remembered; beyond that those that were not read lately are forgotten and
/// learned again.
const REMEMBERED: usize = 4096;

impl ItemSizes {
    /// The size in bytes to expect of the items of `name` (a table, or `table/index`).
    pub(crate) fn expected(&self, name: &str) -> f64 {
        let mut learned = self.learned.lock().unwrap_or_else(PoisonError::into_inner);
        learned.get(name).copied().unwrap_or(UNKNOWN_ITEM)
    }

    /// Whether anything is known of the items of `name`.
    pub(crate) fn knows(&self, name: &str) -> bool {
        self.learned.lock().unwrap_or_else(PoisonError::into_inner).contains_key(name)
    }

    /// Takes what one Query saw: `bytes` in `items` items. Few items say nothing, since capacity
    /// units are rounded.
    #[allow(clippy::cast_precision_loss, reason = "item counts of one page")]
    pub(crate) fn learn(&self, name: &str, bytes: f64, items: usize) {
        if items < 16 || bytes <= 0.0 {
            return;
        }
        let seen = (bytes / items as f64).max(1.0);
        let mut learned = self.learned.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(size) = learned.get_mut(name) {
            *size += (seen - *size) * WEIGHT;
            return;
        }
        learned.insert(name.to_owned(), seen);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_mean_and_three_sigma() {
        assert_eq!(likely(100, 10), 19);
        assert_eq!(likely(1, 10), 1);
        assert_eq!(likely(20, 10), 7);
        assert_eq!(likely(100, 1), 100);
        assert_eq!(mean(2621, 10), 263);
        assert_eq!(mean(0, 0), 1);
    }

    #[test]
    fn sizes_are_learned_per_name() {
        let sizes = ItemSizes::default();
        assert!((sizes.expected("t") - UNKNOWN_ITEM).abs() < 1e-9);
        sizes.learn("t", 40_000.0, 100);
        assert!((sizes.expected("t") - 400.0).abs() < 1e-9);
        sizes.learn("t", 80_000.0, 100);
        assert!((sizes.expected("t") - 500.0).abs() < 1e-9);
        sizes.learn("t", 4096.0, 3);
        assert!((sizes.expected("t") - 500.0).abs() < 1e-9);
        assert!((sizes.expected("u") - UNKNOWN_ITEM).abs() < 1e-9);
    }

    #[test]
    fn a_table_in_use_is_remembered_while_many_others_are_read_once() {
        let sizes = ItemSizes::default();
        sizes.learn("in use", 40_000.0, 100);
        for nth in 0..3 * REMEMBERED {
            sizes.learn(&format!("t{nth}"), 80_000.0, 100);
            assert!((sizes.expected("in use") - 400.0).abs() < 1e-9, "{nth}");
        }
        assert!((REMEMBERED / 2..=REMEMBERED).contains(&sizes.learned.lock().unwrap().len()));
    }
}
