//! Counted slots with a limit that may change: connections, requests in flight.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use metrics::Gauge;
use tokio::sync::Notify;

/// A number of slots that are taken.
pub(super) struct Slots {
    taken: Arc<Taken>,
    gauge: Gauge,
}

#[derive(Default)]
struct Taken {
    count: AtomicUsize,
    /// Notified when the last one is given back.
    none: Notify,
}

/// A taken slot. Dropping this frees it.
pub(super) struct Slot {
    taken: Arc<Taken>,
    gauge: Gauge,
}

impl Slots {
    /// Slots of which none is taken; `gauge` shows how many are.
    pub(super) fn new(gauge: Gauge) -> Self {
        Slots { taken: Arc::default(), gauge }
    }

    /// A slot, if fewer than `most` are taken. At least one can be.
    pub(super) fn take(&self, most: usize) -> Option<Slot> {
        let more = |count| (count < most.max(1)).then_some(count + 1);
        self.taken.count.fetch_update(Ordering::AcqRel, Ordering::Acquire, more).ok()?;
        self.gauge.increment(1.0);
        Some(Slot { taken: Arc::clone(&self.taken), gauge: self.gauge.clone() })
    }

    /// Resolves once no slot is taken.
    pub(super) async fn all_free(&self) {
        loop {
            let mut none = pin!(self.taken.none.notified());
            // Before the look, so that no slot that is freed in between is missed.
            none.as_mut().enable();
            if self.taken() == 0 {
                return;
            }
            none.await;
        }
    }

    pub(super) fn taken(&self) -> usize {
        self.taken.count.load(Ordering::Acquire)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.gauge.decrement(1.0);
        if self.taken.count.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.taken.none.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_limit_that_falls_takes_no_slot_away_and_gives_none() {
        let slots = Slots::new(Gauge::noop());
        let (first, second) = (slots.take(2).unwrap(), slots.take(2).unwrap());
        assert!(slots.take(2).is_none());
        drop(first);
        assert!(slots.take(1).is_none());
        drop(second);
        slots.all_free().await;
        assert!(slots.take(0).is_some(), "one can always be taken");
    }
}
