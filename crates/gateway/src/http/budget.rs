//! A bound on bytes that are held in memory, summed over all connections.
//!
//! Not here: what is done where there is no room (`front`).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use metrics::Gauge;

/// Up to here, in bytes, a body is not counted: what a connection's own read buffer may hold anyway. So a flood of large bodies leaves
/// room for ordinary requests, and the number of connections bounds the small ones.
pub(super) const UNCOUNTED: usize = 64 * 1024;

/// So many bytes may be held, and so many are.
pub(super) struct Budget {
    limit: usize,
    used: AtomicUsize,
    gauge: Gauge,
}

/// Bytes held. Dropping it gives them back.
pub(super) struct Held {
    budget: Arc<Budget>,
    bytes: usize,
}

impl Budget {
    /// A budget of `limit` bytes; `gauge` follows what is held of it.
    pub(super) fn new(limit: usize, gauge: Gauge) -> Arc<Self> {
        Arc::new(Budget { limit, used: AtomicUsize::new(0), gauge })
    }

    /// Nothing yet, to be counted here.
    pub(super) fn hold(self: &Arc<Self>) -> Held {
        Held { budget: Arc::clone(self), bytes: 0 }
    }

    /// Whether more than half of it is held.
    pub(super) fn is_pressed(&self) -> bool {
        self.used.load(Ordering::Relaxed) > self.limit / 2
    }
}

impl Held {
    /// Holds `bytes` altogether, if there is room; otherwise what it held before. Bodies of up to [`UNCOUNTED`] bytes always fit.
    pub(super) fn reach(&mut self, bytes: usize) -> bool {
        self.raise(bytes, self.budget.limit)
    }

    /// Holds `bytes` altogether, where there is no room too: for what cannot be refused any more.
    pub(super) fn force(&mut self, bytes: usize) {
        self.raise(bytes, usize::MAX);
    }

    fn raise(&mut self, bytes: usize, limit: usize) -> bool {
        let more = bytes.saturating_sub(self.bytes);
        if more == 0 || bytes <= UNCOUNTED {
            return true;
        }
        let within = |used: usize| used.checked_add(more).filter(|sum| *sum <= limit);
        let fits = self.budget.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, within).is_ok();
        if fits {
            self.bytes += more;
            self.budget.gauge.increment(figure(more));
        }
        fits
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.budget.used.fetch_sub(self.bytes, Ordering::Relaxed);
            self.budget.gauge.decrement(figure(self.bytes));
        }
    }
}

#[allow(clippy::cast_precision_loss, reason = "a gauge of bytes need not be exact beyond 2^53")]
fn figure(bytes: usize) -> f64 {
    bytes as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_stays_within_the_limit_and_is_given_back() {
        let budget = Budget::new(10 * UNCOUNTED, Gauge::noop());
        let (mut one, mut two, mut small) = (budget.hold(), budget.hold(), budget.hold());
        assert!(one.reach(4 * UNCOUNTED) && !budget.is_pressed());
        assert!(one.reach(6 * UNCOUNTED) && budget.is_pressed());
        assert!(one.reach(UNCOUNTED + 1), "less than it has");
        assert!(!two.reach(5 * UNCOUNTED));
        assert!(two.reach(4 * UNCOUNTED));
        assert!(small.reach(UNCOUNTED) && !small.reach(UNCOUNTED + 1));
        small.force(2 * UNCOUNTED);
        drop((one, two));
        assert_eq!(budget.used.load(Ordering::Relaxed), 2 * UNCOUNTED);
        drop(small);
        assert_eq!(budget.used.load(Ordering::Relaxed), 0);
    }
}
