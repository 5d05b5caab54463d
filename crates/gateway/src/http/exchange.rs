//! The state that the parts of one connection share: the socket, the request in progress, and the
//! detection of a client that hangs up.
//!
//! All parts run in one task, one after the other; the atomics only make the whole `Send`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

#[derive(Default)]
pub(super) struct Exchange {
    /// The head of a request has come whole.
    heard: AtomicBool,
    /// A request is in progress, and no byte of its answer is written.
    working: AtomicBool,
    /// The last write had to wait for the client.
    blocked: AtomicBool,
    /// The client took no byte of an answer for too long.
    stalled: AtomicBool,
    /// An answer was written before the whole request was read.
    cut: AtomicBool,
}

/// Marks a request as in progress until this is dropped.
pub(super) struct Working(Arc<Exchange>);

impl Exchange {
    /// Marks a request as in progress.
    pub(super) fn work(self: &Arc<Self>) -> Working {
        self.working.store(true, Ordering::Relaxed);
        Working(Arc::clone(self))
    }

    pub(super) fn set_heard(&self) {
        self.heard.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_heard(&self) -> bool {
        self.heard.load(Ordering::Relaxed)
    }

    /// Whether the next bytes to the client would be between two answers.
    pub(super) fn is_between_answers(&self) -> bool {
        self.working.load(Ordering::Relaxed) && !self.blocked.load(Ordering::Relaxed)
    }

    pub(super) fn set_blocked(&self, blocked: bool) {
        self.blocked.store(blocked, Ordering::Relaxed);
    }

    pub(super) fn set_stalled(&self) {
        self.stalled.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_stalled(&self) -> bool {
        self.stalled.load(Ordering::Relaxed)
    }

    pub(super) fn set_cut(&self) {
        self.cut.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_cut(&self) -> bool {
        self.cut.load(Ordering::Relaxed)
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        self.0.working.store(false, Ordering::Relaxed);
    }
}
