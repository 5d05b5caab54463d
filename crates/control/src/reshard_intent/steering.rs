//! What the operator wants of a reshard while it is carried out.

use std::sync::atomic::{AtomicBool, Ordering};

/// Pauses and cancels a reshard that runs. By default it is neither.
#[derive(Debug, Default)]
pub struct Steering {
    paused: AtomicBool,
    cancelled: AtomicBool,
    too_late: AtomicBool,
}

impl Steering {
    /// Stops moving items, between two of them, or goes on. Phases before that go on: in some of
    /// them writes wait.
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

    /// Whether no item is to be moved for now.
    pub fn is_paused(&self) -> bool {
        self.paused.load(Ordering::Relaxed)
    }

    /// Whether to go back, as far as anybody knows.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed) && !self.is_too_late()
    }

    /// Says that there is no way back any more.
    pub fn comes_too_late(&self) {
        self.too_late.store(true, Ordering::Relaxed);
    }
}
