//! A store that a test controls: it counts calls, holds them back, and fails as it is told.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use heatsink_connector::Embedded;
use heatsink_dynamo::{Error, Operation};
use heatsink_store::Store;
use tokio::sync::watch;

/// An embedded store before which calls of one operation are held or fail.
#[derive(Clone)]
pub struct Double(Arc<Inner>);

struct Inner {
    store: Embedded,
    /// What is held, while it is.
    held: watch::Sender<Option<Operation>>,
    /// What the next calls of an operation fail with.
    failures: Mutex<VecDeque<(Operation, Error)>>,
    begun: AtomicUsize,
    /// Calls that were let go before they ended.
    left: AtomicUsize,
    done: AtomicUsize,
}

/// Counts a call that is dropped before its end.
struct Leaves<'a>(&'a AtomicUsize, bool);

impl Drop for Leaves<'_> {
    fn drop(&mut self) {
        if !self.1 {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
}

impl Double {
    pub fn new() -> Self {
        Double(Arc::new(Inner {
            store: Embedded::memory().unwrap(),
            held: watch::Sender::new(None),
            failures: Mutex::default(),
            begun: AtomicUsize::new(0),
            left: AtomicUsize::new(0),
            done: AtomicUsize::new(0),
        }))
    }

    /// Holds calls of that operation back until another one, or none, is held.
    pub fn hold(&self, operation: Option<Operation>) {
        self.0.held.send_replace(operation);
    }

    /// The next call of that operation fails so.
    pub fn fail(&self, operation: Operation, error: Error) {
        self.0.failures.lock().unwrap().push_back((operation, error));
    }

    /// Held calls: how many began, how many were let go, how many were carried out.
    pub fn held(&self) -> (usize, usize, usize) {
        let Inner { begun, left, done, .. } = &*self.0;
        let [begun, left, done] = [begun, left, done].map(|count| count.load(Ordering::SeqCst));
        (begun, left, done)
    }
}

impl Store for Double {
    fn call(&self, operation: Operation, body: Bytes) -> BoxFuture<'_, Result<Bytes, Error>> {
        let inner = &*self.0;
        let failure = {
            let mut failures = inner.failures.lock().unwrap();
            let next = failures.front().is_some_and(|(of, _)| *of == operation);
            next.then(|| failures.pop_front()).flatten()
        };
        if let Some((_, error)) = failure {
            return futures::future::ready(Err(error)).boxed();
        }
        let mut held = inner.held.subscribe();
        if *held.borrow() != Some(operation) {
            return inner.store.call(operation, body);
        }
        inner.begun.fetch_add(1, Ordering::SeqCst);
        async move {
            let mut leaves = Leaves(&inner.left, false);
            let _ = held.wait_for(|held| *held != Some(operation)).await;
            let answer = inner.store.call(operation, body).await;
            leaves.1 = true;
            inner.done.fetch_add(1, Ordering::SeqCst);
            answer
        }
        .boxed()
    }
}
