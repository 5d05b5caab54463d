//! A store whose positions stand still: everything that reads the registry by pages ends with an
//! error, after a few calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use futures::FutureExt;
use futures::future::{BoxFuture, ready};
use heatsink_control::registry::Registry;
use heatsink_control::{REGISTRY, check};
use heatsink_dynamo::{Code, Error, Operation};
use heatsink_env::{Env, HastyEnv, ManualEnv};
use heatsink_store::Store;
use serde_json::{Value as Json, json};

use crate::support::calculated;

/// Answers each request for a page with none of it, and with the same position.
#[derive(Default)]
struct Stuck {
    asked: AtomicUsize,
}

impl Store for Stuck {
    fn call(&self, operation: Operation, _: Bytes) -> BoxFuture<'_, Result<Bytes, Error>> {
        assert!(self.asked.fetch_add(1, Ordering::SeqCst) < 100, "it is asked for ever");
        let answer = match operation {
            Operation::Query | Operation::Scan => {
                json!({ "Items": [], "Count": 0, "LastEvaluatedKey": { "pk": { "S": "a" }, "sk": { "S": "b" } } })
            }
            Operation::ListTables => json!({ "TableNames": [], "LastEvaluatedTableName": "a" }),
            _ => return ready(Err(Error::new(Code::ResourceNotFoundException, "no such table"))).boxed(),
        };
        ready(Ok(Bytes::from(answer.to_string()))).boxed()
    }
}

#[tokio::test]
async fn a_position_that_stands_still_ends_every_read() {
    let (store, env) = (Arc::new(Stuck::default()), Arc::new(HastyEnv(ManualEnv::seeded(1))));
    let registry = Registry::new(store.clone() as Arc<dyn Store>, env.clone() as Arc<dyn Env>, REGISTRY);
    let said = [
        registry.heat_reports().await.map(drop),
        registry.named("a").await.map(drop),
        registry.key_records("a").await.map(drop),
        registry
            .call(Operation::Scan, json!({ "TableName": "a", "ExclusiveStartKey": position() }))
            .await
            .map(drop),
        check(store.clone(), env, &calculated("*", "*", 4)).await.map(drop),
    ];
    for said in said {
        let error = said.unwrap_err();
        assert!(error.to_string().contains("at the same position"), "{error}");
    }
}

fn position() -> Json {
    json!({ "pk": { "S": "a" }, "sk": { "S": "b" } })
}
