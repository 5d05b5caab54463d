//! The end of a gateway's lease, as every request reads it. Not here: what prolongs it (`gateway`).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use heatsink_env::{Env, MonotonicInstant};
use heatsink_fence::LeaseEnd;

/// The end of this gateway's lease, as every request reads it.
pub(crate) struct Lease {
    pub(super) env: Arc<dyn Env>,
    pub(super) until: AtomicU64,
    /// The same for requests that depend on a key about to move.
    pub(super) short_until: AtomicU64,
    /// When there was such a request.
    pub(super) short_used: AtomicU64,
    /// When a change was last expected; zero if never.
    pub(super) expected: AtomicU64,
}

impl Lease {
    pub fn none(env: Arc<dyn Env>) -> Self {
        let zero = AtomicU64::default;
        Lease { env, until: zero(), short_until: zero(), short_used: zero(), expected: zero() }
    }

    pub fn now(&self) -> MonotonicInstant {
        self.env.now()
    }

    pub fn is_over(&self, now: MonotonicInstant) -> bool {
        !end(&self.until).allows(now)
    }

    /// How long until it is over.
    pub fn left(&self, now: MonotonicInstant) -> Duration {
        end(&self.until).0.since(now)
    }

    /// Whether requests may no longer be sent that depend on a key about to move.
    pub fn is_short_over(&self, now: MonotonicInstant) -> bool {
        !end(&self.short_until).allows(now)
    }

    /// A change is expected: the head is read more often for a while.
    pub fn expect_change(&self) {
        self.expected.fetch_max(self.now().0, Ordering::Relaxed);
    }

    /// There is such a request: the lease is renewed more often for a while.
    pub fn use_short(&self) {
        self.short_used.fetch_max(self.now().0, Ordering::Relaxed);
    }
}

fn end(until: &AtomicU64) -> LeaseEnd {
    LeaseEnd(MonotonicInstant(until.load(Ordering::SeqCst)))
}
