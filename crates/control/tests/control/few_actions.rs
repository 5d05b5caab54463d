//! A store that takes ten actions in one transaction, as DynamoDB did at first, and DynamoDB Local
//! before 2022; or 25.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt;
use futures::executor::block_on;
use futures::future::{BoxFuture, join_all};
use heatsink_control::claim::Claim;
use heatsink_control::registry::Registry;
use heatsink_control::{Changer, Fencing, KeyRecord, KeyWrites, REGISTRY, Record, Rules, TableLayouts};
use heatsink_dynamo::{Error, KeyType, Operation};
use heatsink_env::{HastyEnv, ManualEnv};
use heatsink_layout::Layout;
use heatsink_store::Store;
use serde_json::Value as Json;

use crate::support::{call, memory, table};

struct Few(Arc<dyn Store>, usize);

impl Store for Few {
    fn call(&self, operation: Operation, body: Bytes) -> BoxFuture<'_, Result<Bytes, Error>> {
        let asked: Json = serde_json::from_slice(&body).unwrap();
        if asked["TransactItems"].as_array().is_some_and(|actions| actions.len() > self.1) {
            let error =
                Error::validation(format!("Member must have length less than or equal to {}", self.1));
            return async move { Err(error) }.boxed();
        }
        self.0.call(operation, body)
    }
}

/// A registry in such a store, with a table on record.
fn world(actions: usize) -> (Registry, Record) {
    let store: Arc<dyn Store> = Arc::new(Few(memory(), actions));
    let env = HastyEnv(ManualEnv::seeded(1));
    let registry = Registry::new(Arc::clone(&store), Arc::new(env.clone()), REGISTRY);
    let fencing = Fencing::exclusive(Rules::default().fence());
    let record = block_on(async {
        Changer::beside(Arc::clone(&store), Arc::new(env), fencing).make_registry().await.unwrap();
        call(&*store, Operation::CreateTable, table("Tab", "S")).await;
        let described = registry.describe("Tab").await.unwrap().unwrap();
        let first = registry.first_record(&described, TableLayouts::default(), true);
        registry.create(None, &first).await.unwrap()
    });
    (registry, record)
}

#[test]
fn a_claim_with_as_many_permits_as_it_had_room_for_is_taken_over() {
    let (registry, record) = world(10);
    let first = block_on(Claim::take(&registry, &record, 8)).map_err(|error| format!("{error:?}")).unwrap();
    assert_eq!(first.writes(), 8);
    for writes in [8, 4, 11] {
        let next = block_on(Claim::take(&registry, &record, writes));
        let next = next.map_err(|error| format!("{writes}: {error:?}")).unwrap();
        assert_eq!(next.writes(), 4, "{writes}");
    }
    assert!(block_on(first.end()).is_err(), "another one has taken over");
}

#[test]
fn records_of_keys_are_written_as_many_together_as_there_is_room_for() {
    for actions in [10, 25, 100] {
        written_together(actions);
    }
}

fn written_together(actions: usize) {
    let (registry, record) = world(actions);
    let writes = KeyWrites::default();
    let key = |number: usize| KeyRecord {
        key: format!("k{number:03}").into_bytes(),
        key_type: KeyType::S,
        layout: Layout::none(),
        moves: None,
        settled: true,
        reserved: 1,
        version: 1,
        changed: 0,
        since: 0,
    };
    let keys: Vec<KeyRecord> = (0..150).map(key).collect();
    let written = keys.iter().map(|key| writes.replace(&registry, &record, None, key));
    let written = block_on(join_all(written));
    assert!(written.iter().all(|written| written.as_ref().is_ok_and(Option::is_some)), "{written:?}");
    let versions: BTreeSet<u64> =
        written.iter().flatten().flatten().map(|(table, _)| table.version).collect();
    // 99 are served at once.
    let transactions = 99_usize.div_ceil(actions - 1) + 51_usize.div_ceil(actions - 1);
    assert_eq!(versions.len(), transactions, "{actions} actions");
    let record = block_on(registry.read(&record.id)).unwrap().unwrap();
    assert_eq!(block_on(registry.all_key_records(&record)).unwrap().len(), 150);
}
