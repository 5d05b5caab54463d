//! The store as a run uses it: calls are let through while the run may go on, so that
//! it can be stopped between two of them.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, Waker};

use bytes::Bytes;
use futures::future::{BoxFuture, poll_fn};
use heatsink_dynamo::{Error, Operation, Outcome};
use heatsink_store::{Permit, Store};

use super::host::Host;

/// A store that can be shut off.
pub(super) struct Tap {
    store: Arc<dyn Store>,
    host: Host,
    shut: AtomicBool,
    under_way: AtomicUsize,
    waits: Mutex<Option<Waker>>,
}

impl Tap {
    pub fn new(store: Arc<dyn Store>, host: Host) -> Arc<Self> {
        let (shut, under_way, waits) = Default::default();
        Arc::new(Tap { store, host, shut, under_way, waits })
    }

    /// Lets no call through any more.
    pub fn shut(&self) {
        self.shut.store(true, Ordering::SeqCst);
    }

    /// Waits until none is under way. Somebody else has to poll them.
    pub async fn idle(&self) {
        poll_fn(|context| {
            *self.waits.lock().unwrap_or_else(PoisonError::into_inner) = Some(context.waker().clone());
            if self.under_way.load(Ordering::SeqCst) == 0 { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }
}

impl Permit for Tap {
    fn check(&self) -> Result<(), Error> {
        if self.shut.load(Ordering::SeqCst) || !self.host.may_send() {
            return Err(Error::unavailable("This gateway stopped carrying it out", Outcome::NotDone));
        }
        Ok(())
    }
}

/// A call under way.
struct UnderWay<'a>(&'a Tap);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        if self.0.under_way.fetch_sub(1, Ordering::SeqCst) == 1
            && let Some(waker) = self.0.waits.lock().unwrap_or_else(PoisonError::into_inner).take()
        {
            waker.wake();
        }
    }
}

impl Store for Tap {
    fn call(&self, operation: Operation, body: Bytes) -> BoxFuture<'_, Result<Bytes, Error>> {
        Box::pin(async move {
            self.check()?;
            self.under_way.fetch_add(1, Ordering::SeqCst);
            let _under_way = UnderWay(self);
            self.store.call_if(operation, body, self).await
        })
    }
}
