//! The directory of buckets: which buckets each logical key has had an item in.
//!
//! One table in the store, `heatsink.buckets`, hidden from clients: a row for each key and bucket, written before the bucket's first
//! item and never removed. So a bucket without a row holds nothing, and one with a row may hold something. Who carries the
//! requests out is not known here; [`Buckets`] remembers what they said.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, PoisonError};

use xxhash_rust::xxh3::xxh3_128;

use crate::{Bucket, Table};

/// The directory's table name. Its partition key `pk` is [`directory_key`], its sort key `sk` the bucket as text; both strings.
pub const DIRECTORY: &str = "heatsink.buckets";

/// The key of a logical key's rows: the table's id and a hash. Should two keys of one table ever share it, each is also looked for in
/// the other's buckets, which are then empty: that costs reads and loses nothing.
pub fn directory_key(table: &Table, logical: &[u8]) -> String {
    format!("{}#{:032x}", table.id, xxh3_128(logical))
}

/// Rows that are remembered; beyond that all are forgotten, and written or read again.
const REMEMBERED: usize = 100_000;

/// The rows of the directory that this process has written or read. What it holds is so for ever; what it does not hold may be there.
#[derive(Debug, Default)]
pub struct Buckets {
    known: Mutex<(usize, HashMap<String, BTreeSet<Bucket>>)>,
    /// Up to which bucket those without a row were looked into.
    searched: Mutex<HashMap<String, Bucket>>,
}

impl Buckets {
    /// Whether a row is known to be there.
    pub fn has(&self, key: &str, bucket: Bucket) -> bool {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.1.get(key).is_some_and(|buckets| buckets.contains(&bucket))
    }

    /// The newest of a key's buckets that are known, or the oldest.
    pub fn end(&self, key: &str, newest: bool) -> Option<Bucket> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let buckets = known.1.get(key)?;
        if newest { buckets.last().copied() } else { buckets.first().copied() }
    }

    /// The bucket up to which this process has looked into all buckets of a key that have no row.
    pub fn searched(&self, key: &str) -> Option<Bucket> {
        self.searched.lock().unwrap_or_else(PoisonError::into_inner).get(key).copied()
    }

    /// Takes note that all buckets of a key up to this one were looked into.
    pub fn search(&self, key: &str, bucket: Bucket) {
        let mut searched = self.searched.lock().unwrap_or_else(PoisonError::into_inner);
        if searched.len() >= REMEMBERED {
            searched.clear();
        }
        searched.insert(key.to_owned(), bucket);
    }

    /// Takes a row that was written or read.
    pub fn learn(&self, key: &str, bucket: Bucket) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let (count, rows) = &mut *known;
        if *count >= REMEMBERED {
            (*count, *rows) = (0, HashMap::new());
        }
        *count += usize::from(rows.entry(key.to_owned()).or_default().insert(bucket));
    }
}
