//! How often keys were written to through this gateway, or what stands for that: keys and tables
//! are hashed to a fixed number of counters. Those that share one begin a generation too often,
//! never too seldom.

use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, Ordering};

use foldhash::quality::RandomState;

/// How many counters there are for keys, and for tables.
const COUNTERS: usize = 4096;

/// The counters of a key and of its table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    key: usize,
    table: usize,
}

/// The generation of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Generation(u64, u64);

pub(super) struct Generations {
    keys: Box<[AtomicU64]>,
    tables: Box<[AtomicU64]>,
    hasher: RandomState,
}

impl Default for Generations {
    fn default() -> Self {
        let counters = || (0..COUNTERS).map(|_| AtomicU64::new(0)).collect();
        Generations { keys: counters(), tables: counters(), hasher: RandomState::default() }
    }
}

impl Generations {
    /// The place of a logical key.
    pub(super) fn place(&self, table: &str, key: &[u8]) -> Place {
        Place { key: self.counter(&(table, key)), table: self.counter(&table) }
    }

    /// The generation that reads of a key are of now.
    pub(super) fn now(&self, place: Place) -> Generation {
        let of = |counters: &[AtomicU64], at: usize| {
            counters.get(at).map_or(0, |counter| counter.load(Ordering::SeqCst))
        };
        Generation(of(&self.keys, place.key), of(&self.tables, place.table))
    }

    /// A key was written to.
    pub(super) fn wrote(&self, place: Place) {
        next(&self.keys, place.key);
    }

    /// Any keys of a table were written to.
    pub(super) fn wrote_any(&self, table: &str) {
        next(&self.tables, self.counter(&table));
    }

    fn counter(&self, of: &impl std::hash::Hash) -> usize {
        usize::try_from(self.hasher.hash_one(of)).unwrap_or(usize::MAX) % COUNTERS
    }
}

fn next(counters: &[AtomicU64], at: usize) {
    if let Some(counter) = counters.get(at) {
        counter.fetch_add(1, Ordering::SeqCst);
    }
}
