//! A store that is slow by a seed, for one thread whose tasks take turns: so that requests overlap,
//! and a failure replays.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use fastrand::Rng;
use futures::FutureExt;
use futures::executor::block_on;
use futures::future::BoxFuture;
use heatsink_dynamo::{Error, Operation};
use heatsink_store::Store;

/// A store whose requests arrive after as many turns of the others as the seed says.
pub struct Late {
    store: Arc<dyn Store>,
    rng: Mutex<Rng>,
}

impl Late {
    pub fn new(store: Arc<dyn Store>, seed: u64) -> Late {
        Late { store, rng: Mutex::new(Rng::with_seed(seed)) }
    }
}

impl Store for Late {
    fn call(&self, operation: Operation, body: Bytes) -> BoxFuture<'_, Result<Bytes, Error>> {
        let turns = self.rng.lock().unwrap().u32(..6);
        async move {
            for _ in 0..turns {
                turn().await;
            }
            // At once, so that requests are carried out in the order in which they arrive; on
            // another thread, since one executor cannot wait within another.
            let act = || block_on(self.store.call(operation, body));
            std::thread::scope(|scope| scope.spawn(act).join().expect("the store answers"))
        }
        .boxed()
    }
}

/// Lets the other tasks take their turn.
pub fn turn() -> impl Future<Output = ()> + Send {
    let mut waited = false;
    std::future::poll_fn(move |context| {
        if waited {
            return std::task::Poll::Ready(());
        }
        waited = true;
        context.waker().wake_by_ref();
        std::task::Poll::Pending
    })
}
