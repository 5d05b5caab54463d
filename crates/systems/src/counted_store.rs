//! The embedded store behind its partitions: counts the physical requests that reach it, and answers
//! updates late where a load asks for that.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::future::{BoxFuture, FutureExt};
use heatsink_dynamo::{Error, Operation};
use heatsink_env::{Env, ManualEnv};
use heatsink_store::Store;
use heatsink_store::embedded::Embedded;
use heatsink_store::partitioned::Partitioned;

/// A store whose calls are counted.
pub(crate) struct CountedStore {
    store: Partitioned<Embedded>,
    clock: ManualEnv,
    calls: AtomicU64,
    /// Nanoseconds that an update takes.
    takes: AtomicU64,
    /// Updates that came while they take time.
    updates: AtomicU64,
}

impl CountedStore {
    pub(crate) fn new(store: Partitioned<Embedded>, clock: ManualEnv) -> Self {
        let [calls, takes, updates] = [0; 3].map(AtomicU64::new);
        CountedStore { store, clock, calls, takes, updates }
    }

    pub(crate) fn partitioned(&self) -> &Partitioned<Embedded> {
        &self.store
    }

    /// All calls so far.
    pub(crate) fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    /// From now on an update takes so long on the stage's clock.
    pub(crate) fn takes(&self, long: Duration) {
        self.takes.store(u64::try_from(long.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// The updates that came while they take time.
    pub(crate) fn late_updates(&self) -> u64 {
        self.updates.load(Ordering::Relaxed)
    }
}

impl Store for CountedStore {
    fn call(&self, operation: Operation, body: Bytes) -> BoxFuture<'_, Result<Bytes, Error>> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let takes = self.takes.load(Ordering::Relaxed);
        if takes == 0 || operation != Operation::UpdateItem {
            return self.store.call(operation, body);
        }
        self.updates.fetch_add(1, Ordering::Relaxed);
        let late = self.clock.sleep(Duration::from_nanos(takes));
        async move {
            late.await;
            self.store.call(operation, body).await
        }
        .boxed()
    }
}
