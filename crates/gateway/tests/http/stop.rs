//! A gateway stops whatever it was doing by itself just then.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use heatsink_control::{Fencing, REGISTRY, Rules};
use heatsink_dynamo::{Error, Operation};
use heatsink_gateway::{Gateway, http};
use heatsink_store::Store;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::server::{limits, until};
use crate::store::Double;

/// A store whose registry gives no answer any more, once it is told to.
#[derive(Clone, Default)]
struct SilentRegistry {
    store: Double,
    silent: Arc<AtomicBool>,
    asked: Arc<AtomicBool>,
}

impl Store for SilentRegistry {
    fn call(&self, operation: Operation, body: Bytes) -> BoxFuture<'_, Result<Bytes, Error>> {
        let of_registry = body.windows(REGISTRY.len()).any(|part| part == REGISTRY.as_bytes());
        if of_registry && self.silent.load(Ordering::SeqCst) {
            self.asked.store(true, Ordering::SeqCst);
            return Box::pin(pending());
        }
        self.store.call(operation, body)
    }
}

#[tokio::test]
async fn it_does_not_wait_for_a_look_at_the_registry_that_nobody_takes_further() {
    let store = SilentRegistry::default();
    let rules = Rules::read("rules", "[fence]\nheartbeat = \"200ms\"\npoll = \"50ms\"\n").unwrap();
    let fencing = Fencing::shared(rules.fence(), "test");
    let gateway = Gateway::builder(Arc::new(store.clone())).fencing(fencing).rules(rules).limits(limits());
    let gateway = gateway.start().await.unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let served = tokio::spawn(gateway.serve(listener, http::Hosts::loopback(), async {
        let _ = stopped.await;
    }));
    store.silent.store(true, Ordering::SeqCst);
    until("a look at the registry", || store.asked.load(Ordering::SeqCst)).await;
    stop.send(()).unwrap();
    let ended = tokio::time::timeout(Duration::from_secs(10), served).await;
    assert!(ended.expect("it waits for its own look").unwrap());
}
