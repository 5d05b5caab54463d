//! A look-up that everyone who waited for it has left comes to its end all the same; and look-ups
//! after other rules hold nobody up.
#![allow(clippy::disallowed_methods, reason = "the store's thread keeps real time")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::support::{calculated, call, memory, table};
use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use heatsink_control::Control;
use heatsink_dynamo::{Error, Operation};
use heatsink_env::ManualEnv;
use heatsink_layout::LayoutSource;
use heatsink_store::Store;
use tokio::sync::Semaphore;

/// Lets through as many calls as it has been told to.
struct Gate {
    inner: Arc<dyn Store>,
    open: Semaphore,
    asked: AtomicUsize,
}

impl Store for Gate {
    fn call(&self, operation: Operation, body: Bytes) -> BoxFuture<'_, Result<Bytes, Error>> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        async move {
            self.open.acquire().await.unwrap().forget();
            self.inner.call(operation, body).await
        }
        .boxed()
    }
}

#[tokio::test]
async fn a_look_up_goes_on_when_its_only_asker_hangs_up() {
    let inner = memory();
    call(&*inner, Operation::CreateTable, table("Board", "S")).await;
    let gate = Arc::new(Gate { inner, open: Semaphore::new(1000), asked: AtomicUsize::new(0) });
    let env = Arc::new(ManualEnv::seeded(1));
    let control = Control::start(gate.clone(), env, calculated("*", "*", 4)).await.unwrap();
    gate.open.forget_permits(1000);
    let asked = gate.asked.load(Ordering::SeqCst);

    // Asked once, then forgotten: the client hung up.
    assert!(control.resolve(&["Board"]).now_or_never().is_none());
    gate.open.add_permits(1000);
    for _ in 0..1000 {
        if control.table("Board").is_some() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(control.table("Board").is_some(), "the look-up stands still");
    let done = gate.asked.load(Ordering::SeqCst);
    assert!(done > asked + 1, "more than its first call was made");
    control.resolve(&["Board"]).await.unwrap();
    assert_eq!(gate.asked.load(Ordering::SeqCst), done, "and nobody has to look again");
}

#[tokio::test]
async fn other_rules_hold_no_request_up() {
    let inner = memory();
    for name in ["Board", "Other"] {
        call(&*inner, Operation::CreateTable, table(name, "S")).await;
    }
    let gate = Arc::new(Gate { inner, open: Semaphore::new(1000), asked: AtomicUsize::new(0) });
    let env = Arc::new(ManualEnv::seeded(1));
    let control = Control::start(gate.clone(), env, calculated("Board", "*", 4)).await.unwrap();
    control.resolve(&["Board", "Other"]).await.unwrap();
    assert!(control.table("Board").is_some() && control.table("Other").is_none());
    let rules = control.check_rules(calculated("*", "*", 4)).await.unwrap();
    let left = gate.open.forget_permits(1000);

    // The store does not answer.
    let looking = tokio::spawn(control.replace_rules(rules));
    let asked = gate.asked.load(Ordering::SeqCst);
    while gate.asked.load(Ordering::SeqCst) == asked {
        tokio::task::yield_now().await;
    }
    let resolved = control.resolve(&["Board", "Other"]).now_or_never();
    assert!(resolved.is_some_and(|resolved| resolved.is_ok()), "a request waits for a look-up");
    gate.open.add_permits(left);
    looking.await.unwrap();
    assert!(control.table("Other").is_some(), "the new rule holds");
}
