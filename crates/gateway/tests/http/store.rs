//! A store that a test controls: it counts, and it holds answers back.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use heatsink_dynamo::{Code, Error, Operation};
use heatsink_store::Store;

/// The answer to a Scan, once `~` is a long text.
pub const LARGE: &str = r#"{"Items":[{"text":{"S":"~"}}],"Count":1}"#;

#[derive(Clone, Default)]
pub struct Double {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    calls: Vec<&'static str>,
    hold: Duration,
}

impl Double {
    pub fn calls(&self, operation: &str) -> usize {
        self.state.lock().unwrap().calls.iter().filter(|name| **name == operation).count()
    }

    /// Later answers come after this time.
    pub fn hold(&self, hold: Duration) {
        self.state.lock().unwrap().hold = hold;
    }
}

impl Store for Double {
    fn call(&self, operation: Operation, _body: Bytes) -> BoxFuture<'_, Result<Bytes, Error>> {
        let hold = {
            let mut state = self.state.lock().unwrap();
            state.calls.push(operation.name());
            state.hold
        };
        async move {
            tokio::time::sleep(hold).await;
            match operation {
                Operation::DescribeTable => Err(Error::new(Code::ResourceNotFoundException, "no such table")),
                Operation::Scan => Ok(Bytes::from(LARGE.replace('~', &"x".repeat(2000)))),
                _ => Ok(Bytes::from_static(br#"{"Item":{}}"#)),
            }
        }
        .boxed()
    }
}
