//! A store that answers late, counts what it is asked, and fails as it is told.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use heatsink_dynamo::{Code, Error, Operation, Outcome};
use heatsink_store::Store;
use heatsink_store::embedded::Embedded;

pub struct Slow {
    pub store: Embedded,
    millis: AtomicU64,
    writes: AtomicUsize,
    reads: AtomicUsize,
    /// The next write fails so, once it was carried out if its outcome is unknown.
    fails: Mutex<Vec<Error>>,
}

impl Slow {
    pub fn new(millis: u64) -> Self {
        Slow {
            store: Embedded::memory().unwrap(),
            millis: AtomicU64::new(millis),
            writes: AtomicUsize::new(0),
            reads: AtomicUsize::new(0),
            fails: Mutex::default(),
        }
    }

    /// How many writes came since it was asked last.
    pub fn writes(&self) -> usize {
        self.writes.swap(0, Ordering::SeqCst)
    }

    /// The same of reads.
    pub fn reads(&self) -> usize {
        self.reads.swap(0, Ordering::SeqCst)
    }

    /// Waits until so many writes have come since it was asked last, however busy the machine is; and
    /// a moment more, in which others come to wait for them.
    pub async fn has_writes(&self, calls: usize) {
        Self::until(&self.writes, calls).await;
    }

    /// The same of reads.
    pub async fn has_reads(&self, calls: usize) {
        Self::until(&self.reads, calls).await;
    }

    async fn until(count: &AtomicUsize, calls: usize) {
        while count.load(Ordering::SeqCst) < calls {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }

    pub fn takes(&self, millis: u64) {
        self.millis.store(millis, Ordering::SeqCst);
    }

    /// The next write is throttled, and after it one is lost.
    pub fn fail(&self, error: Error) {
        self.fails.lock().unwrap().push(error);
    }
}

pub fn throttled() -> Error {
    Error::new(Code::ProvisionedThroughputExceededException, "The level of configured provisioned throughput")
}

pub fn lost() -> Error {
    Error::unavailable("The answer was lost", Outcome::Unknown)
}

impl Store for Slow {
    fn call(&self, operation: Operation, body: Bytes) -> BoxFuture<'_, Result<Bytes, Error>> {
        Box::pin(async move {
            if matches!(operation, Operation::GetItem | Operation::Query) {
                self.reads.fetch_add(1, Ordering::SeqCst);
                // Read first: what is written meanwhile the answer does not show.
                let answer = self.store.call(operation, body).await;
                tokio::time::sleep(Duration::from_millis(self.millis.load(Ordering::SeqCst))).await;
                return answer;
            }
            if !operation.writes_one_item() {
                return self.store.call(operation, body).await;
            }
            self.writes.fetch_add(1, Ordering::SeqCst);
            let fails = self.fails.lock().unwrap().pop();
            tokio::time::sleep(Duration::from_millis(self.millis.load(Ordering::SeqCst))).await;
            match fails {
                Some(error) if error.outcome == Outcome::NotDone => Err(error),
                Some(error) => {
                    self.store.call(operation, body).await?;
                    Err(error)
                }
                None => self.store.call(operation, body).await,
            }
        })
    }
}
