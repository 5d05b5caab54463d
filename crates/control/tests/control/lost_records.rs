//! Records that are lost beside a registry that is there: half of it was restored, or an item of it
//! was deleted.

use std::sync::Arc;
use std::time::Duration;

use futures::executor::block_on;
use heatsink_control::registry::Registry;
use heatsink_control::{
    Changer, Control, Fencing, KeyRecord, MAX_AGE, REGISTRY, Record, Rules, TableLayouts,
};
use heatsink_dynamo::{KeyType, Operation};
use heatsink_env::{Env, HastyEnv, ManualEnv};
use heatsink_layout::{By, Hash, Layout, SortKey, Strategy};
use heatsink_store::Store;
use serde_json::json;

use crate::support::{call, memory, table};

fn four() -> Layout {
    let (strategy, hash) = (Strategy::calculated(By::SortKey), Hash::JumpXxh3);
    Layout { strategy, shards: 4, hash, version: 1 }
}

/// The record of a key that has four shards.
fn sharded(key: &str) -> KeyRecord {
    KeyRecord {
        key: key.as_bytes().to_vec(),
        key_type: KeyType::S,
        layout: four(),
        moves: None,
        settled: true,
        reserved: 4,
        version: 1,
        changed: 0,
        since: 0,
    }
}

/// A store with a registry that every gateway has noticed, and a table that is not on record.
async fn begun(store: &Arc<dyn Store>) {
    let fencing = Fencing::exclusive(Rules::default().fence());
    let changer = Changer::beside(Arc::clone(store), Arc::new(ManualEnv::seeded(1)), fencing);
    changer.freeze(false).await.unwrap();
    call(&**store, Operation::CreateTable, table("Tab", "S")).await;
}

/// Puts the table and these keys on record.
async fn on_record(registry: &Registry, keys: &[&str]) -> Record {
    let described = registry.describe("Tab").await.unwrap().unwrap();
    let entry = registry.entry("Tab").await.unwrap();
    let first = registry.first_record(&described, TableLayouts::default(), true);
    let mut record = registry.create(entry.as_ref(), &first).await.unwrap();
    for key in keys {
        (record, _) = registry.replace_key(&record, None, &sharded(key)).await.unwrap().unwrap();
    }
    record
}

async fn lose(store: &Arc<dyn Store>, id: &str, sort: &str) {
    let key = json!({ "pk": { "S": id }, "sk": { "S": sort } });
    call(&**store, Operation::DeleteItem, json!({ "TableName": REGISTRY, "Key": key })).await;
}

/// What a gateway says of the table, whose cached status is over.
fn asked(control: &Control, env: &ManualEnv) -> Result<(), String> {
    env.advance(MAX_AGE + Duration::from_secs(1));
    block_on(control.resolve(&["Tab"])).map(drop).map_err(|error| error.to_string())
}

#[tokio::test]
async fn a_table_of_which_a_keys_record_is_lost_is_refused() {
    let store = memory();
    begun(&store).await;
    let env = HastyEnv(ManualEnv::seeded(1));
    let registry = Registry::new(Arc::clone(&store), Arc::new(env.clone()), REGISTRY);
    let record = on_record(&registry, &["a", "b"]).await;
    assert_eq!(registry.all_key_records(&record).await.unwrap().len(), 2);
    lose(&store, &record.id, "key:a").await;
    let before = env.now();
    let error = registry.all_key_records(&record).await.unwrap_err();
    assert!(error.retryable() && error.to_string().contains("lost records of keys"), "{error}");
    // It waits between its looks, and not after the last one.
    assert_eq!(env.now().since(before), Duration::from_millis(20 + 40 + 60));
    // An older build has written the record since: then none at all is too few.
    let older = Record { tally: None, ..record.clone() };
    assert_eq!(registry.all_key_records(&older).await.unwrap().len(), 1);
    lose(&store, &record.id, "key:b").await;
    assert!(registry.all_key_records(&older).await.is_err());
}

#[test]
fn keys_are_counted_where_an_older_build_has_written_the_tables_record() {
    let store = memory();
    block_on(begun(&store));
    let registry = Registry::new(Arc::clone(&store), Arc::new(ManualEnv::seeded(1)), REGISTRY);
    let record = block_on(on_record(&registry, &["a", "b"]));
    let count = |record: &Record| record.tally.map(|tally| tally.count);
    assert_eq!(count(&record), Some(2));
    let older = Record { tally: None, version: record.version + 1, ..record.clone() };
    assert!(block_on(registry.replace(&record, &older)).unwrap());
    let (record, _) = block_on(registry.replace_key(&older, None, &sharded("c"))).unwrap().unwrap();
    assert_eq!(count(&record), Some(3));
    assert_eq!(block_on(registry.read(&record.id)).unwrap(), Some(record));
}

#[test]
fn a_gateway_that_knew_a_table_before_it_was_on_record_notices_that_its_record_is_lost() {
    let store = memory();
    let env = Arc::new(ManualEnv::seeded(1));
    block_on(begun(&store));
    // One of several: a store that nobody else reaches is not judged by its items.
    let rules = Rules::default();
    let fencing = Fencing::shared(rules.fence(), "one");
    let control = block_on(Control::join(Arc::clone(&store), env.clone(), rules, fencing)).unwrap();
    assert_eq!(asked(&control, &env), Ok(()));
    let registry = Registry::new(Arc::clone(&store), env.clone(), REGISTRY);
    let record = block_on(on_record(&registry, &["hot"]));
    for number in 0..40 {
        let sort = format!("s{number}");
        let slot = four().shard_of(Some(SortKey::S(&sort)));
        let key = if slot == 0 { "hot".to_owned() } else { format!("hot#~{slot}") };
        let item = json!({ "pk": { "S": key }, "sk": { "S": sort } });
        block_on(call(&*store, Operation::PutItem, json!({ "TableName": "Tab", "Item": item })));
    }
    assert_eq!(asked(&control, &env), Ok(()));
    // By its keys' records; then by its items, also where its name has no entry any more.
    block_on(lose(&store, &record.id, "table"));
    let told = asked(&control, &env);
    assert!(told.as_ref().is_err_and(|why| why.contains("keys on record")), "{told:?}");
    for (id, sort) in [(&*record.id, "key:hot"), ("name:Tab", "name")] {
        block_on(lose(&store, id, sort));
        let told = asked(&control, &env);
        assert!(told.as_ref().is_err_and(|why| why.contains("just where 4 shards put them")), "{told:?}");
    }
}
