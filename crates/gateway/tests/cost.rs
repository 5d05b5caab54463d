//! What one hostile request costs the store: nothing, where it is refused.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use futures::FutureExt;
use futures::executor::block_on;
use futures::future::BoxFuture;
use heatsink_control::{Control, Rules};
use heatsink_dynamo::{Code, Error, Operation};
use heatsink_env::{Env, ManualEnv};
use heatsink_gateway::{Limits, Service};
use heatsink_store::Store;

/// Has no table, and counts what it is asked.
#[derive(Default)]
struct Empty {
    calls: AtomicUsize,
}

impl Store for Empty {
    fn call(&self, _: Operation, _: Bytes) -> BoxFuture<'_, Result<Bytes, Error>> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let missing = Error::new(Code::ResourceNotFoundException, "Requested resource not found");
        futures::future::ready(Err(missing)).boxed()
    }
}

/// The code of a request's refusal, and how often the store was asked for it.
fn refusal(operation: Operation, body: String) -> (Code, usize) {
    let store = Arc::new(Empty::default());
    let env: Arc<dyn Env> = Arc::new(ManualEnv::seeded(1));
    let rules = Rules::read(
        "heatsink.toml",
        "[[rule]]\ntable = \"*\"\nkeys = \"hot*\"\nstrategy = \"calculated\"\nshards = 4\n",
    );
    let control = block_on(Control::start(store.clone(), env.clone(), rules.unwrap())).unwrap();
    let service = Service::new(store.clone(), control, env, Limits::default(), "eu-west-1");
    let before = store.calls.load(Ordering::Relaxed);
    let error = block_on(service.call(operation, Bytes::from(body))).unwrap_err();
    (error.code, store.calls.load(Ordering::Relaxed) - before)
}

#[test]
fn what_names_too_much_is_refused_before_anything_is_asked() {
    let list = |count: usize, element: &dyn Fn(usize) -> String| {
        (0..count).map(element).collect::<Vec<_>>().join(",")
    };
    let put = r#"{"PutRequest":{"Item":{}}}"#;
    for (operation, body) in [
        (
            Operation::BatchWriteItem,
            format!(r#"{{"RequestItems":{{{}}}}}"#, list(3000, &|at| format!(r#""table{at}":[{put}]"#))),
        ),
        (
            Operation::BatchWriteItem,
            format!(r#"{{"RequestItems":{{{}}}}}"#, list(3000, &|at| format!(r#""table{at}":[]"#))),
        ),
        (
            Operation::BatchGetItem,
            format!(
                r#"{{"RequestItems":{{{}}}}}"#,
                list(3000, &|at| format!(r#""table{at}":{{"Keys":[{{}}]}}"#))
            ),
        ),
        (
            Operation::TransactWriteItems,
            format!(
                r#"{{"TransactItems":[{}]}}"#,
                list(3000, &|at| format!(r#"{{"Put":{{"TableName":"table{at}","Item":{{}}}}}}"#))
            ),
        ),
        (
            Operation::TransactGetItems,
            format!(
                r#"{{"TransactItems":[{}]}}"#,
                list(3000, &|at| format!(r#"{{"Get":{{"TableName":"table{at}","Key":{{}}}}}}"#))
            ),
        ),
        (
            Operation::BatchExecuteStatement,
            format!(
                r#"{{"Statements":[{}]}}"#,
                list(3000, &|at| format!(r#"{{"Statement":"SELECT * FROM table{at}"}}"#))
            ),
        ),
        (
            Operation::ExecuteTransaction,
            format!(
                r#"{{"TransactStatements":[{}]}}"#,
                list(3000, &|at| format!(r#"{{"Statement":"SELECT * FROM table{at}"}}"#))
            ),
        ),
        (
            Operation::ExecuteStatement,
            format!(r#"{{"Statement":"{}"}}"#, list(1000, &|at| format!("FROM t{at}")).replace(',', " ")),
        ),
    ] {
        assert_eq!(refusal(operation, body), (Code::ValidationException, 0), "{operation:?}");
    }
    // As many as there may be: each is looked for once. None is there, so the store is asked once
    // for each whether its part has an error of its own.
    let tables = list(25, &|at| format!(r#""table{at}":[{put}]"#));
    let body = format!(r#"{{"RequestItems":{{{tables}}}}}"#);
    assert_eq!(refusal(Operation::BatchWriteItem, body), (Code::ResourceNotFoundException, 50));
}
