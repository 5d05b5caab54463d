//! What this process knows of the directory of buckets. One per router.
//!
//! It only saves requests: what is not known here is read from the directory, or written to it
//! again.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, PoisonError};

use heatsink_layout::Bucket;

/// Rows that are remembered. Beyond that all are forgotten, and written or read again.
const REMEMBERED: usize = 100_000;

/// The rows of the directory that this process has written or read. Rows are never removed, so what
/// is known here stays true; a row that is not known may exist.
#[derive(Debug, Default)]
pub(crate) struct KnownBuckets {
    known: Mutex<(usize, HashMap<String, BTreeSet<Bucket>>)>,
    /// Up to which bucket those without a row were looked into.
    searched: Mutex<HashMap<String, Bucket>>,
}

impl KnownBuckets {
    /// Whether a row is known to be there.
    pub(crate) fn has(&self, key: &str, bucket: Bucket) -> bool {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.1.get(key).is_some_and(|buckets| buckets.contains(&bucket))
    }

    /// The newest of a key's buckets that are known, or the oldest.
    pub(crate) fn end(&self, key: &str, newest: bool) -> Option<Bucket> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let buckets = known.1.get(key)?;
        if newest { buckets.last().copied() } else { buckets.first().copied() }
    }

    /// The bucket up to which this process has looked into all buckets of a key that have no row.
    pub(crate) fn searched(&self, key: &str) -> Option<Bucket> {
        self.searched.lock().unwrap_or_else(PoisonError::into_inner).get(key).copied()
    }

    /// Takes note that all buckets of a key up to this one were looked into.
    pub(crate) fn search(&self, key: &str, bucket: Bucket) {
        let mut searched = self.searched.lock().unwrap_or_else(PoisonError::into_inner);
        if searched.len() >= REMEMBERED {
            searched.clear();
        }
        searched.insert(key.to_owned(), bucket);
    }

    /// Takes a row that was written or read.
    pub(crate) fn learn(&self, key: &str, bucket: Bucket) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let (count, rows) = &mut *known;
        if *count >= REMEMBERED {
            (*count, *rows) = (0, HashMap::new());
        }
        *count += usize::from(rows.entry(key.to_owned()).or_default().insert(bucket));
    }
}
