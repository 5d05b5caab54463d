//! A service before a store that is slow by a seed (`store`), and requests to it.

mod store;

use std::sync::Arc;

use bytes::Bytes;
use futures::executor::block_on;
use heatsink_control::{Control, Rules};
use heatsink_dynamo::{Error, Operation};
use heatsink_env::RealEnv;
use heatsink_gateway::{Limits, Service};
use heatsink_store::Store;
use heatsink_store::embedded::Embedded;
use serde_json::Value as Json;

use self::store::Late;
pub use self::store::turn;

/// A service under `rules` before an engine that is late.
pub fn service(raw: &Arc<Embedded>, seed: u64, rules: &str) -> Service {
    let store: Arc<dyn Store> = Arc::new(Late::new(raw.clone(), seed));
    let env = Arc::new(RealEnv);
    let rules = Rules::read("rules", rules).unwrap();
    let control = block_on(Control::start(store.clone(), env.clone(), rules)).unwrap();
    Service::new(store, control, env, Limits::default(), "us-east-1")
}

/// One request, as a client would have it answered.
pub async fn call(service: &Service, operation: Operation, body: Json) -> Result<Json, Error> {
    let answer = service.call(operation, Bytes::from(body.to_string())).await?;
    Ok(serde_json::from_slice(&answer).expect("an answer is JSON"))
}
