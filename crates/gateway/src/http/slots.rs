//! Counted slots with a limit: connections, requests in flight.

use std::sync::Arc;

use metrics::Gauge;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// A number of slots, some of them taken.
pub(super) struct Slots {
    places: Arc<Semaphore>,
    count: u32,
    gauge: Gauge,
}

/// A taken slot. Dropping this frees it.
pub(super) struct Slot {
    _place: OwnedSemaphorePermit,
    gauge: Gauge,
}

impl Slots {
    /// `count` slots, at least one; `gauge` shows how many are taken.
    pub(super) fn new(count: usize, gauge: Gauge) -> Self {
        let most = usize::try_from(u32::MAX).unwrap_or(usize::MAX).min(Semaphore::MAX_PERMITS);
        let count = count.clamp(1, most);
        Slots {
            places: Arc::new(Semaphore::new(count)),
            count: u32::try_from(count).unwrap_or(u32::MAX),
            gauge,
        }
    }

    /// A slot, if one is free.
    pub(super) fn take(&self) -> Option<Slot> {
        let place = Arc::clone(&self.places).try_acquire_owned().ok()?;
        self.gauge.increment(1.0);
        Some(Slot { _place: place, gauge: self.gauge.clone() })
    }

    /// Resolves once every slot is free.
    pub(super) async fn all_free(&self) {
        // The semaphore is never closed.
        let _ = self.places.acquire_many(self.count).await;
    }

    pub(super) fn taken(&self) -> usize {
        usize::try_from(self.count).unwrap_or(usize::MAX).saturating_sub(self.places.available_permits())
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.gauge.decrement(1.0);
    }
}
