//! Table operations that a gateway has begun and not finished: creations and deletions. Another
//! gateway that finds such a table leaves it alone as long as its gateway may still continue, and
//! then takes it over.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use heatsink_env::MonotonicInstant;

/// The operations that this gateway has begun, and those of others that it has seen.
#[derive(Debug, Default)]
pub(crate) struct InProgress {
    /// The versions of entries and records that this gateway wrote and has requests for.
    own: Arc<Mutex<Vec<u64>>>,
    /// For each name, the version last seen and since when.
    others: Mutex<HashMap<String, (u64, MonotonicInstant)>>,
}

/// An operation that this gateway has begun. It is over when this is dropped.
#[derive(Debug)]
pub(crate) struct InProgressGuard {
    own: Arc<Mutex<Vec<u64>>>,
    version: u64,
}

impl InProgress {
    pub fn begin(&self, version: u64) -> InProgressGuard {
        self.own.lock().unwrap_or_else(PoisonError::into_inner).push(version);
        InProgressGuard { own: Arc::clone(&self.own), version }
    }

    /// Whether this gateway wrote that version, and its request is still in progress.
    pub fn is_own(&self, version: u64) -> bool {
        self.own.lock().unwrap_or_else(PoisonError::into_inner).contains(&version)
    }

    /// Since when `name` has been seen with that version.
    pub fn seen(&self, name: &str, version: u64, now: MonotonicInstant) -> MonotonicInstant {
        let mut others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = others.entry(name.to_owned()).or_insert((version, now));
        if seen.0 != version {
            *seen = (version, now);
        }
        seen.1
    }
}

impl Drop for InProgressGuard {
    fn drop(&mut self) {
        let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        // Two requests can delete one table.
        if let Some(at) = own.iter().position(|version| *version == self.version) {
            own.swap_remove(at);
        }
    }
}
