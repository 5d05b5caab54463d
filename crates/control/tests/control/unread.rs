//! A registry that cannot be read for a while: keys that the store leaves unread, and a head that
//! is damaged.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use crate::support::{calculated, call, memory, table};
use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use heatsink_control::Control;
use heatsink_dynamo::{Code, Error, Operation, Outcome};
use heatsink_env::{Env, HastyEnv, ManualEnv};
use heatsink_layout::LayoutSource;
use heatsink_store::Store;
use serde_json::{Value as Json, json};

const REGISTRY: &str = "heatsink.registry";

/// A store that leaves all keys of a BatchGetItem unread while it throttles.
struct Throttling {
    inner: Arc<dyn Store>,
    throttles: AtomicBool,
    asked: AtomicUsize,
}

impl Store for Throttling {
    fn call(&self, operation: Operation, body: Bytes) -> BoxFuture<'_, Result<Bytes, Error>> {
        if operation != Operation::BatchGetItem || !self.throttles.load(Ordering::SeqCst) {
            return self.inner.call(operation, body);
        }
        self.asked.fetch_add(1, Ordering::SeqCst);
        let asked: Json = serde_json::from_slice(&body).unwrap();
        let unread = json!({ "Responses": {}, "UnprocessedKeys": asked["RequestItems"] });
        async move { Ok(Bytes::from(unread.to_string())) }.boxed()
    }
}

#[tokio::test]
async fn keys_that_stay_unread_are_asked_for_with_pauses_and_then_given_up() {
    let inner = memory();
    call(&*inner, Operation::CreateTable, table("Board", "S")).await;
    let store = Arc::new(Throttling { inner, throttles: false.into(), asked: AtomicUsize::new(0) });
    let env = Arc::new(HastyEnv(ManualEnv::seeded(1)));
    let control = Control::start(store.clone(), env.clone(), calculated("*", "*", 4)).await.unwrap();
    store.throttles.store(true, Ordering::SeqCst);
    let begun = env.now();
    let error = control.resolve(&["Board"]).await.unwrap_err();
    assert_eq!(
        (&error.code, error.status, error.outcome),
        (&Code::ThrottlingException, 400, Outcome::NotDone)
    );
    assert!(error.to_string().contains("leaves what the registry says of table Board unread"), "{error}");
    let (asked, took) = (store.asked.load(Ordering::SeqCst), env.now().since(begun));
    assert!(asked <= 13, "{asked} calls");
    assert!(took > Duration::from_secs(2) && took < Duration::from_secs(5), "{took:?}");
    store.throttles.store(false, Ordering::SeqCst);
    control.resolve(&["Board"]).await.unwrap();
    assert!(control.table("Board").is_some());
}

async fn head(store: &dyn Store) -> Json {
    let key = json!({ "pk": { "S": "head" }, "sk": { "S": "head" } });
    let body = json!({ "TableName": REGISTRY, "Key": key, "ConsistentRead": true });
    call(store, Operation::GetItem, body).await["Item"].take()
}

async fn put(store: &dyn Store, item: &Json) {
    call(store, Operation::PutItem, json!({ "TableName": REGISTRY, "Item": item })).await;
}

#[tokio::test]
async fn a_damaged_head_is_named_and_one_that_is_right_again_is_believed() {
    let store = memory();
    call(&*store, Operation::CreateTable, table("Board", "S")).await;
    let env = Arc::new(HastyEnv(ManualEnv::seeded(1)));
    let control = Control::start(Arc::clone(&store), env.clone(), calculated("*", "*", 4)).await.unwrap();
    control.resolve(&["Board"]).await.unwrap();
    let right = head(&*store).await;
    let of = |name: &str, value: Json| {
        let mut item = right.clone();
        // As builds before the seal may have written it.
        item.as_object_mut().unwrap().remove("seal");
        item[name] = value;
        item
    };
    let change =
        |epoch: u64| json!({ "S": json!([{ "epoch": epoch, "table": "Board", "version": 1 }]).to_string() });
    let damaged = [
        of("epoch", json!({ "N": u64::MAX.to_string() })),
        of("epoch", json!({ "N": "-1" })),
        of("epoch", json!({ "S": "1" })),
        of("changes", json!({ "S": "[{]" })),
        of("settled", json!({ "S": "yes" })),
    ];
    for item in damaged {
        put(&*store, &item).await;
        env.0.advance(Duration::from_secs(60));
        let create = Bytes::from(table("New", "S").to_string());
        let refused = control.before(Operation::CreateTable, &create, &["New"]).await.map(drop).unwrap_err();
        assert!(refused.to_string().contains("head is damaged"), "{item}: {refused}");
        assert_eq!(refused.outcome, Outcome::NotDone);
        put(&*store, &right).await;
        control.resolve(&["Board"]).await.unwrap();
    }
    // Changes of a head may be numbered in any way by whoever writes it.
    for epoch in [0, u64::MAX] {
        put(&*store, &of("changes", change(epoch))).await;
        env.0.advance(Duration::from_secs(60));
        control.resolve(&["Board"]).await.unwrap();
    }
    put(&*store, &right).await;
    let create = Bytes::from(table("New", "S").to_string());
    control.before(Operation::CreateTable, &create, &["New"]).await.map(drop).unwrap();
}
