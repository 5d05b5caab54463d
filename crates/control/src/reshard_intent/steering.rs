//! What passes between a reshard that is carried out and whoever carries it out: what the operator wants of it now, and how far it is.

use std::sync::atomic::{AtomicBool, Ordering};

use heatsink_layout::Phase;

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

/// Is told how far the reshard of a value is. Called often: must be fast.
pub trait ProgressSink: Send + Sync {
    /// The value is in that phase from now on; in none where it rests.
    fn phase(&self, phase: Option<Phase>);
    /// So many items have been rewritten by this run.
    fn rewritten(&self, items: u64);
    /// About so many were to be rewritten when this run began.
    fn to_rewrite(&self, items: u64);
}
