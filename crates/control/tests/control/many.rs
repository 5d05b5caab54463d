//! A request that names many tables looks them up a few at a time.

use std::sync::{Arc, Mutex};
use std::task::Poll;

use bytes::Bytes;
use futures::FutureExt;
use futures::executor::block_on;
use futures::future::BoxFuture;
use heatsink_control::{Control, Rules};
use heatsink_dynamo::{Code, Error, Operation};
use heatsink_env::ManualEnv;
use heatsink_store::Store;

/// Has no table; answers once it was polled twice, and counts its calls and how many wait at once.
#[derive(Default)]
struct Crowded {
    calls: Mutex<(usize, usize, usize)>,
}

impl Store for Crowded {
    fn call(&self, _: Operation, _: Bytes) -> BoxFuture<'_, Result<Bytes, Error>> {
        async move {
            {
                let (calls, waiting, most) = &mut *self.calls.lock().unwrap();
                *calls += 1;
                *waiting += 1;
                *most = (*most).max(*waiting);
            }
            let mut polled = false;
            futures::future::poll_fn(|context| {
                context.waker().wake_by_ref();
                if std::mem::replace(&mut polled, true) { Poll::Ready(()) } else { Poll::Pending }
            })
            .await;
            self.calls.lock().unwrap().1 -= 1;
            Err(Error::new(Code::ResourceNotFoundException, "Requested resource not found"))
        }
        .boxed()
    }
}

#[test]
fn tables_are_looked_up_eight_at_a_time() {
    let store = Arc::new(Crowded::default());
    let text = "[[rule]]\ntable = \"*\"\nkeys = \"hot*\"\nstrategy = \"calculated\"\nshards = 4\n";
    let rules = Rules::read("heatsink.toml", text).unwrap();
    let control = block_on(Control::start(store.clone(), Arc::new(ManualEnv::seeded(1)), rules)).unwrap();
    *store.calls.lock().unwrap() = (0, 0, 0);
    let names: Vec<String> = (0..100).map(|at| format!("table{at}")).collect();
    block_on(control.resolve(&names)).unwrap();
    assert_eq!(*store.calls.lock().unwrap(), (100, 0, 8));
}
