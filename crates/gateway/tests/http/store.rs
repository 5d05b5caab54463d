//! A store that a test controls: it counts, and it holds answers back.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::{BoxFuture, ready};
use heatsink_control::REGISTRY;
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
    finished: Vec<&'static str>,
    hold: Duration,
    large: usize,
}

impl Double {
    pub fn calls(&self, operation: &str) -> usize {
        self.state.lock().unwrap().calls.iter().filter(|name| **name == operation).count()
    }

    /// How many calls came to their end.
    pub fn finished(&self, operation: &str) -> usize {
        self.state.lock().unwrap().finished.iter().filter(|name| **name == operation).count()
    }

    /// Later answers to a Query or an UpdateItem hold so many bytes of text.
    pub fn answer_with(&self, bytes: usize) {
        self.state.lock().unwrap().large = bytes;
    }

    /// Later answers come after this time, but for descriptions of tables: the first request for
    /// one waits for them too.
    pub fn hold(&self, hold: Duration) {
        self.state.lock().unwrap().hold = hold;
    }
}

impl Store for Double {
    fn call(&self, operation: Operation, body: Bytes) -> BoxFuture<'_, Result<Bytes, Error>> {
        if body.windows(REGISTRY.len()).any(|part| part == REGISTRY.as_bytes()) {
            return ready(Err(Error::new(Code::ResourceNotFoundException, "no registry"))).boxed();
        }
        let (hold, large) = {
            let mut state = self.state.lock().unwrap();
            state.calls.push(operation.name());
            (state.hold, state.large)
        };
        async move {
            if operation != Operation::DescribeTable {
                tokio::time::sleep(hold).await;
            }
            self.state.lock().unwrap().finished.push(operation.name());
            match operation {
                Operation::DescribeTable => Err(Error::new(Code::ResourceNotFoundException, "no such table")),
                Operation::ListTables => Ok(Bytes::from_static(br#"{"TableNames":["abc","private"]}"#)),
                Operation::Scan => Ok(Bytes::from(LARGE.replace('~', &"x".repeat(2000)))),
                Operation::Query | Operation::UpdateItem if large > 0 => {
                    Ok(Bytes::from(LARGE.replace('~', &"x".repeat(large))))
                }
                _ => Ok(Bytes::from_static(br#"{"Item":{}}"#)),
            }
        }
        .boxed()
    }
}
