//! One thread whose tasks take turns as a seed says, and a store that is slow by the same seed: so that requests overlap, and a failure
//! replays.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use fastrand::Rng;
use futures::FutureExt;
use futures::executor::block_on;
use futures::future::BoxFuture;
use heatsink_control::{Control, Rules};
use heatsink_dynamo::{Error, Operation};
use heatsink_env::RealEnv;
use heatsink_gateway::{Limits, Service};
use heatsink_store::Store;
use heatsink_store::embedded::Embedded;
use serde_json::Value as Json;

/// A store whose requests arrive after as many turns of the others as the seed says.
struct Late {
    store: Arc<Embedded>,
    rng: Mutex<Rng>,
}

impl Store for Late {
    fn call(&self, operation: Operation, body: Bytes) -> BoxFuture<'_, Result<Bytes, Error>> {
        let turns = self.rng.lock().unwrap().u32(..6);
        async move {
            for _ in 0..turns {
                turn().await;
            }
            // At once, so that requests are carried out in the order in which they arrive; on another thread, since one executor
            // cannot wait within another.
            let act = || block_on(self.store.call(operation, body));
            std::thread::scope(|scope| scope.spawn(act).join().expect("the store answers"))
        }
        .boxed()
    }
}

/// A service under `rules` before an engine that is late.
pub fn service(raw: &Arc<Embedded>, seed: u64, rules: &str) -> Service {
    let store: Arc<dyn Store> = Arc::new(Late { store: raw.clone(), rng: Mutex::new(Rng::with_seed(seed)) });
    let env = Arc::new(RealEnv);
    let rules = Rules::read("rules", rules).unwrap();
    let control = block_on(Control::start(store.clone(), env.clone(), rules)).unwrap();
    Service::new(store, control, env, Limits::default(), "us-east-1")
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

/// One request, as a client would have it answered.
pub async fn call(service: &Service, operation: Operation, body: Json) -> Result<Json, Error> {
    let answer = service.call(operation, Bytes::from(body.to_string())).await?;
    Ok(serde_json::from_slice(&answer).expect("an answer is JSON"))
}
