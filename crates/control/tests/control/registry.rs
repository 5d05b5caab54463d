//! First use, records, contradictions, races and age, over the embedded store.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::support::{Mortal, calculated, call, memory, table};
use bytes::Bytes;
use futures::executor::block_on;
use futures::future::BoxFuture;
use heatsink_control::registry::Registry;
use heatsink_control::{Control, MAX_AGE, Prepared, REGISTRY, Rules, StartError};
use heatsink_dynamo::{Code, Error, Operation};
use heatsink_env::ManualEnv;
use heatsink_layout::LayoutSource;
use heatsink_store::Store;
use serde_json::json;

async fn control(store: &Arc<dyn Store>, env: &ManualEnv, rules: Rules) -> Control {
    Control::start(Arc::clone(store), Arc::new(env.clone()), rules).await.unwrap()
}

/// What a gateway does with a table operation.
async fn through(
    control: &Control,
    store: &Arc<dyn Store>,
    operation: Operation,
    body: serde_json::Value,
) -> Result<Bytes, Error> {
    let body = Bytes::from(body.to_string());
    let prepared = control.before(operation, &body, &["Tab"]).await?;
    let answer = store.call(operation, body).await;
    control.after(operation, &["Tab"], prepared, answer.as_ref()).await;
    answer
}

fn shards(control: &Control, key: &str) -> Option<u16> {
    let schema = control.table("Tab")?;
    Some(control.in_force(&schema, key.as_bytes()).settled().shards)
}

async fn put(store: &Arc<dyn Store>) {
    call(
        store,
        Operation::PutItem,
        json!({ "TableName": "Tab", "Item": { "pk": { "S": "game" }, "sk": { "S": "1" } } }),
    )
    .await;
}

async fn make(store: &Arc<dyn Store>) {
    call(store, Operation::CreateTable, table("Tab", "S")).await;
}

#[tokio::test]
async fn a_new_table_is_recorded_and_another_gateway_reads_it_there() {
    let (store, env) = (memory(), ManualEnv::seeded(1));
    let one = control(&store, &env, calculated("*", "game*", 4)).await;
    through(&one, &store, Operation::CreateTable, table("Tab", "S")).await.unwrap();
    put(&store).await;
    // It holds an item by now, so that it is sharded can only come from its record. The other
    // gateway has no rules at all.
    let two = control(&store, &env, Rules::default()).await;
    for control in [&one, &two] {
        control.resolve(&["Tab"]).await.unwrap();
        assert_eq!((shards(control, "game_x"), shards(control, "other")), (Some(4), Some(1)));
    }
}

#[tokio::test]
async fn an_empty_table_is_recorded_on_first_touch_and_one_with_items_is_refused() {
    let (store, env) = (memory(), ManualEnv::seeded(1));
    make(&store).await;
    let empty = control(&store, &env, calculated("*", "*", 4)).await;
    empty.resolve(&["Tab"]).await.unwrap();
    assert_eq!(shards(&empty, "x"), Some(4));

    let store = memory();
    make(&store).await;
    put(&store).await;
    let full = control(&store, &env, calculated("*", "*", 4)).await;
    let error = full.resolve(&["Tab"]).await.unwrap_err();
    assert_eq!(error.code, Code::ValidationException);
    assert_eq!(
        error.message.unwrap(),
        "Table Tab holds items and is not on record as sharded, so the rules cannot hold for it (keys \"*\": 4 shards by sort key). \
         Bring its items under the rules with `heatsink adopt Tab`, or take the table out of the rules"
    );
    assert_eq!(shards(&full, "x"), None);
    let other = control(&store, &env, calculated("Other", "*", 4)).await;
    other.resolve(&["Tab"]).await.unwrap();
    assert_eq!(shards(&other, "x"), None);
}

#[tokio::test]
async fn of_two_gateways_with_different_rules_one_records_and_both_serve() {
    for _ in 0..20 {
        let (store, env) = (memory(), ManualEnv::seeded(1));
        make(&store).await;
        let one = control(&store, &env, calculated("*", "*", 4)).await;
        let two = control(&store, &env, calculated("*", "*", 8)).await;
        let (a, b) = (["Tab"], ["Tab"]);
        let (first, second) = futures::join!(one.resolve(&a), two.resolve(&b));
        first.unwrap();
        second.unwrap();
        let recorded = one.table("Tab").unwrap().layouts().clone();
        assert_eq!(recorded, *two.table("Tab").unwrap().layouts(), "the record holds for both");
        // Whichever starts again comes up, and uses the table as recorded.
        for shards in [4, 8] {
            let rules = calculated("*", "*", shards);
            let again = Control::start(Arc::clone(&store), Arc::new(env.clone()), rules).await.unwrap();
            again.resolve(&["Tab"]).await.unwrap();
            assert_eq!(recorded, *again.table("Tab").unwrap().layouts());
        }
    }
}

#[tokio::test]
async fn a_table_dropped_and_made_again_is_noticed() {
    let (store, env) = (memory(), ManualEnv::seeded(1));
    let one = control(&store, &env, calculated("*", "*", 4)).await;
    through(&one, &store, Operation::CreateTable, table("Tab", "S")).await.unwrap();
    one.resolve(&["Tab"]).await.unwrap();
    let two = control(&store, &env, Rules::default()).await;
    two.resolve(&["Tab"]).await.unwrap();
    let old = two.table("Tab").unwrap();

    // Past both gateways, and with an item before any gateway can touch it.
    call(&store, Operation::DeleteTable, json!({ "TableName": "Tab" })).await;
    make(&store).await;
    put(&store).await;
    env.advance(MAX_AGE);
    assert_eq!(one.resolve(&["Tab"]).await.unwrap_err().code, Code::ValidationException);
    // It might be a restored copy, so that a gateway without rules must not forward to it either.
    let refused = two.resolve(&["Tab"]).await.unwrap_err();
    assert_eq!(refused.code, Code::ValidationException);
    assert!(refused.message.unwrap().contains("--records-from"));
    assert!(two.table("Tab").is_none(), "the old table's record says nothing of the new one");
    // A request that still holds the old schema gets the old layouts.
    assert_eq!(two.in_force(&old, b"x").settled().shards, 4);

    // Through a gateway it is noticed at once, and the record follows.
    through(&one, &store, Operation::DeleteTable, json!({ "TableName": "Tab" })).await.unwrap();
    through(&one, &store, Operation::CreateTable, table("Tab", "S")).await.unwrap();
    one.resolve(&["Tab"]).await.unwrap();
    assert_eq!(shards(&one, "x"), Some(4));
    // The other gateway learns of it from the store's own error before its knowledge is too old.
    let gone = Error::new(Code::ResourceNotFoundException, "");
    two.after(Operation::GetItem, &["Tab"], Prepared::default(), Err(&gone)).await;
    two.resolve(&["Tab"]).await.unwrap();
    assert_eq!(shards(&two, "x"), Some(4));
}

#[tokio::test]
async fn what_is_known_costs_nothing_and_one_request_looks_again() {
    let env = ManualEnv::seeded(1);
    let counted = Mortal::immortal(memory());
    let store: Arc<dyn Store> = counted.clone();
    make(&store).await;
    let control = control(&store, &env, calculated("*", "*", 4)).await;
    let calls = || counted.calls.swap(0, Ordering::SeqCst);
    calls();
    let many: Vec<_> = (0..50).map(|_| control.resolve(&["Tab"])).collect();
    for resolved in futures::future::join_all(many).await {
        resolved.unwrap();
    }
    // Describe, read the record, look for items; no registry: make it and its head; PENDING,
    // publish, look again for items, ACTIVE, publish.
    assert!((10..=40).contains(&calls()), "first uses share one look-up");
    control.resolve(&["Tab", "Tab"]).await.unwrap();
    assert_eq!(calls(), 0);
    env.advance(Duration::from_secs(5));
    for _ in 0..10 {
        control.resolve(&["Tab"]).await.unwrap();
    }
    assert_eq!(calls(), 2, "one describe, one record");
}

#[tokio::test]
async fn a_store_without_registry_and_a_gateway_without_rules_look_at_each_table_once() {
    let env = ManualEnv::seeded(1);
    let counted = Mortal::immortal(memory());
    let store: Arc<dyn Store> = counted.clone();
    make(&store).await;
    let plain = control(&store, &env, Rules::default()).await;
    counted.calls.store(0, Ordering::SeqCst);
    plain.resolve(&["Tab"]).await.unwrap();
    // Describe, tags. A gateway that others use the store beside also asks other registries, and
    // looks at the first items.
    assert_eq!(counted.calls.swap(0, Ordering::SeqCst), 2);
    for _ in 0..10 {
        plain.resolve(&["Tab"]).await.unwrap();
    }
    assert_eq!(counted.calls.load(Ordering::SeqCst), 0);
    // Another gateway brings rules; this one follows the record once its knowledge is too old.
    let ruled = control(&store, &env, calculated("*", "*", 4)).await;
    ruled.resolve(&["Tab"]).await.unwrap();
    env.advance(MAX_AGE);
    plain.resolve(&["Tab"]).await.unwrap();
    assert_eq!(shards(&plain, "x"), Some(4));
}

#[tokio::test]
async fn a_store_that_is_down_is_not_remembered() {
    let env = ManualEnv::seeded(1);
    let inner = memory();
    make(&inner).await;
    let mut failures = 0;
    for left in 1.. {
        let mortal = Mortal::new(Arc::clone(&inner), left, false);
        let store: Arc<dyn Store> = mortal.clone();
        let Ok(control) = Control::start(store, Arc::new(env.clone()), calculated("*", "*", 4)).await else {
            continue;
        };
        let first = control.resolve(&["Tab"]).await;
        mortal.left.store(i64::MAX, Ordering::SeqCst);
        control.resolve(&["Tab"]).await.unwrap();
        assert_eq!(shards(&control, "x"), Some(4));
        match first {
            Ok(_) => break,
            Err(error) => assert!(error.retryable(), "{error}"),
        }
        failures += 1;
    }
    assert!(failures > 0);
}

#[tokio::test]
async fn the_registry_is_hidden_and_impossible_tables_are_not_made() {
    let (store, env) = (memory(), ManualEnv::seeded(1));
    let bucket = |table: &str| {
        let rule = format!("[[rule]]\ntable = \"{table}\"\nstrategy = \"bucket\"\nbucket = \"day\"");
        Rules::read("rules", &rule).unwrap()
    };
    let control = control(&store, &env, bucket("Tab")).await;
    assert!(
        control.is_hidden(REGISTRY)
            && control.is_hidden("arn:aws:dynamodb:eu-west-1:1:table/heatsink.registry")
    );
    assert_eq!(control.resolve(&[REGISTRY]).await.unwrap_err().code, Code::ResourceNotFoundException);
    let refused = |operation, body: serde_json::Value| {
        block_on(control.before(operation, body.to_string().as_bytes(), &["Tab"])).unwrap_err()
    };
    assert_eq!(refused(Operation::CreateTable, table(REGISTRY, "S")).code, Code::ValidationException);
    assert_eq!(
        refused(Operation::DeleteTable, json!({ "TableName": REGISTRY })).code,
        Code::ResourceNotFoundException
    );
    assert_eq!(
        refused(Operation::CreateTable, table("Tab", "N")).message.unwrap(),
        "rule 1 (line 1) cannot hold for table Tab: its partition key pk is a number, which has room for a shard and not for a bucket"
    );
    // Made by a request that bypasses the gateway, it keeps the gateway from starting.
    call(&store, Operation::CreateTable, table("Tab", "N")).await;
    let again = Control::start(Arc::clone(&store), Arc::new(env.clone()), bucket("Tab")).await;
    assert!(matches!(again, Err(StartError::Rules(_))));
    // A glob leaves it alone.
    let glob = Control::start(Arc::clone(&store), Arc::new(env), bucket("*")).await.unwrap();
    glob.resolve(&["Tab"]).await.unwrap();
    assert!(glob.table("Tab").is_none());
}

#[tokio::test]
async fn records_of_an_older_build_hold_for_a_gateway_without_rules() {
    let (store, env) = (memory(), ManualEnv::seeded(1));
    let one = control(&store, &env, calculated("*", "*", 4)).await;
    through(&one, &store, Operation::CreateTable, table("Tab", "S")).await.unwrap();
    // As the build before the fence left it: records of the first form, and neither a head nor
    // entries of names.
    let page = call(&store, Operation::Scan, json!({ "TableName": REGISTRY })).await;
    for item in page["Items"].as_array().unwrap() {
        let key = json!({ "pk": item["pk"], "sk": item["sk"] });
        if item["sk"]["S"] == "table" {
            let old = json!({
                "TableName": REGISTRY, "Key": key, "UpdateExpression": "SET form = :f REMOVE made, seal", "ExpressionAttributeValues": { ":f": { "N": "1" } },
            });
            call(&store, Operation::UpdateItem, old).await;
        } else {
            call(&store, Operation::DeleteItem, json!({ "TableName": REGISTRY, "Key": key })).await;
        }
    }
    let two = control(&store, &env, Rules::default()).await;
    let pass = two.resolve(&["Tab"]).await.unwrap();
    assert!(two.view(&pass).table("Tab").is_some(), "or it forwards what is sharded");
}

/// Says of time to live what it is told to say.
struct Telling(serde_json::Value);

impl Store for Telling {
    fn call(&self, operation: Operation, _: Bytes) -> BoxFuture<'_, Result<Bytes, Error>> {
        assert_eq!(operation, Operation::DescribeTimeToLive);
        let answer = match &self.0 {
            serde_json::Value::Null => Err(Error::new(Code::UnknownOperationException, "")),
            told => Ok(Bytes::from(json!({ "TimeToLiveDescription": told }).to_string())),
        };
        Box::pin(async move { answer })
    }
}

#[tokio::test]
async fn a_table_expires_until_time_to_live_is_off() {
    let told = |told| async {
        let registry = Registry::new(Arc::new(Telling(told)), Arc::new(ManualEnv::seeded(1)), REGISTRY);
        registry.time_to_live("Tab").await
    };
    for status in ["ENABLING", "ENABLED", "DISABLING"] {
        let by = told(json!({ "TimeToLiveStatus": status, "AttributeName": "gone" })).await;
        assert_eq!(by.unwrap().as_deref(), Some("gone"), "{status}");
        // By which attribute has to be known.
        assert!(told(json!({ "TimeToLiveStatus": status })).await.is_err(), "{status}");
    }
    assert_eq!(told(json!({ "TimeToLiveStatus": "DISABLED" })).await.unwrap(), None);
    // A store without time to live.
    assert_eq!(told(serde_json::Value::Null).await.unwrap(), None);
}
