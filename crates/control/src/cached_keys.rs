//! Keys whose reads are answered from memory while they are hot, although no rule says so.
//!
//! Not here: which keys these are (`heatsink-workers`), how reads are answered (`heatsink_gateway`).

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwap;

/// By table and the key's bytes: for how many milliseconds an answer is given again.
type Ages = HashMap<String, HashMap<Vec<u8>, u16>>;

/// The keys.
#[derive(Default)]
pub(crate) struct CachedKeys {
    ages: ArcSwap<Ages>,
    /// Whether there are any: most requests ask only that.
    any: AtomicBool,
}

impl CachedKeys {
    /// Whether there are any.
    pub fn any(&self) -> bool {
        self.any.load(Ordering::Acquire)
    }

    /// For how many milliseconds answers to reads of a key are given again.
    pub fn max_age(&self, table: &str, key: &[u8]) -> Option<u16> {
        if !self.any() {
            return None;
        }
        self.ages.load().get(table)?.get(key).copied()
    }

    /// These, in place of those of before.
    pub fn replace(&self, ages: Ages) {
        let any = !ages.is_empty();
        self.ages.store(ages.into());
        self.any.store(any, Ordering::Release);
    }
}
