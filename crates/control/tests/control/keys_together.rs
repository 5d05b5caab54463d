//! Records of keys that are written together by one process.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use futures::FutureExt;
use futures::executor::block_on;
use futures::future::BoxFuture;
use heatsink_control::registry::Registry;
use heatsink_control::{Changer, Fencing, KeyRecord, KeyWrites, Move, REGISTRY, Record, Rules, TableLayouts};
use heatsink_dynamo::{Error, KeyType, Operation};
use heatsink_env::ManualEnv;
use heatsink_layout::{By, Hash, Layout, Phase, Strategy};
use heatsink_store::Store;

use crate::support::{call, memory, table};

/// A store that does not answer the next transaction, which it carries out.
struct Silent {
    inner: Arc<dyn Store>,
    next: AtomicBool,
}

impl Store for Silent {
    fn call(&self, operation: Operation, body: Bytes) -> BoxFuture<'_, Result<Bytes, Error>> {
        let silent = operation == Operation::TransactWriteItems && self.next.swap(false, Ordering::SeqCst);
        async move {
            let answer = self.inner.call(operation, body).await;
            if silent { futures::future::pending().await } else { answer }
        }
        .boxed()
    }
}

fn calculated(shards: u16) -> Layout {
    let (strategy, hash) = (Strategy::calculated(By::SortKey), Hash::JumpXxh3);
    Layout { strategy, shards, hash, version: 1 }
}

/// The record of a key that is on its way to four shards.
fn moving(key: &str, phase: Phase, version: u64) -> KeyRecord {
    let moves = Move {
        to: calculated(4),
        phase,
        reserved_before: 1,
        closing: false,
        expires: None,
        marks: false,
        high_water: None,
    };
    KeyRecord {
        key: key.as_bytes().to_vec(),
        key_type: KeyType::S,
        layout: Layout::none(),
        moves: Some(moves),
        settled: false,
        reserved: 4,
        version,
        changed: 0,
        since: 0,
    }
}

/// The keys `a` and `b` are in RESERVE. Returns both with the table's record as each writer knows
/// it: who wrote first knows an older one.
async fn reserved(registry: &Registry, store: &Arc<dyn Store>) -> [(Record, KeyRecord); 2] {
    let env = Arc::new(ManualEnv::seeded(1));
    let fencing = Fencing::exclusive(Rules::default().fence());
    Changer::beside(Arc::clone(store), env, fencing).freeze(false).await.unwrap();
    call(&**store, Operation::CreateTable, table("Tab", "S")).await;
    let described = registry.describe("Tab").await.unwrap().unwrap();
    let entry = registry.entry("Tab").await.unwrap();
    let first = registry.first_record(&described, TableLayouts::default(), true);
    let first = registry.create(entry.as_ref(), &first).await.unwrap();
    let one = registry.replace_key(&first, None, &moving("a", Phase::Reserve, 1)).await.unwrap().unwrap();
    let two = registry.replace_key(&one.0, None, &moving("b", Phase::Reserve, 1)).await.unwrap().unwrap();
    [one, two]
}

#[test]
fn who_is_served_again_after_a_lost_answer_is_told_that_its_record_is_written() {
    let silent = Arc::new(Silent { inner: memory(), next: AtomicBool::new(false) });
    let store: Arc<dyn Store> = silent.clone();
    let registry = Registry::new(Arc::clone(&store), Arc::new(ManualEnv::seeded(1)), REGISTRY);
    let [(older, a), (newer, b)] = block_on(reserved(&registry, &store));
    let writes = KeyWrites::default();
    let (next_a, next_b) = (moving("a", Phase::Prepare, 2), moving("b", Phase::Prepare, 2));
    silent.next.store(true, Ordering::SeqCst);
    let mut first = writes.replace(&registry, &newer, Some(&b), &next_b).boxed();
    let mut second = writes.replace(&registry, &older, Some(&a), &next_a).boxed();
    for _ in 0..3 {
        assert!((&mut first).now_or_never().is_none());
        assert!((&mut second).now_or_never().is_none());
    }
    // The run that was first is stopped. Both records are written, by what it knew of the table.
    drop(first);
    let (table, written) = block_on(second).unwrap().expect("its record is as it wanted it");
    assert_eq!(written.moves, next_a.moves);
    let (table_id, records) = (table.id.clone(), block_on(registry.key_records(&table.id)).unwrap());
    assert!(records.contains(&written), "{records:?}");
    assert_eq!(block_on(registry.read(&table_id)).unwrap(), Some(table));
}
