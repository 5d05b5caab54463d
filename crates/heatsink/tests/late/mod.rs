//! A service before a store that is slow by a seed (`store`), and requests to it.

mod store;

use std::sync::Arc;

use bytes::Bytes;
use futures::executor::block_on;
use heatsink::Gateway;
use heatsink_control::Rules;
use heatsink_dynamo::{Error, Operation};
use heatsink_store::Store;
use heatsink_store::embedded::Embedded;
use serde_json::Value as Json;

use self::store::Late;
pub use self::store::turn;

/// A service under `rules` before an engine that is late.
pub fn service(raw: &Arc<Embedded>, seed: u64, rules: &str) -> Gateway {
    let store: Arc<dyn Store> = Arc::new(Late::new(raw.clone(), seed));
    let rules = Rules::read("rules", rules).unwrap();
    block_on(Gateway::builder(store).rules(rules).start()).unwrap()
}

/// One request, as a client would have it answered.
pub async fn call(service: &Gateway, operation: Operation, body: Json) -> Result<Json, Error> {
    let answer = service.call(operation, Bytes::from(body.to_string())).await?;
    Ok(serde_json::from_slice(&answer).expect("an answer is JSON"))
}
