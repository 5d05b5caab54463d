//! What an operator can change of a reshard that runs.

use std::sync::atomic::{AtomicBool, Ordering};

/// Pauses and cancels a reshard that runs. By default it is neither.
#[derive(Debug, Default)]
pub struct Steering {
    paused: AtomicBool,
    cancelled: AtomicBool,
    too_late: AtomicBool,
}

impl Steering {
    /// Stops moving items, between two of them, or goes on. Phases before that go on: in some of them writes wait.
    pub fn pause(&self, paused: bool) {
        self.paused.store(paused, Ordering::Relaxed);
    }

    /// Takes the key back to the layout of before, if nothing was written under the new one yet.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// Whether it was cancelled when that was no longer possible.
    pub fn is_too_late(&self) -> bool {
        self.too_late.load(Ordering::Relaxed)
    }

    pub(crate) fn is_paused(&self) -> bool {
        self.paused.load(Ordering::Relaxed)
    }

    /// Whether to go back, as far as anybody knows.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed) && !self.is_too_late()
    }

    pub(crate) fn comes_too_late(&self) {
        self.too_late.store(true, Ordering::Relaxed);
    }
}
