//! A gateway that knows the records of a table's keys reads those again that may have changed; where
//! it cannot tell, all.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use futures::executor::block_on;
use futures::future::{BoxFuture, join_all};
use heatsink_control::registry::Registry;
use heatsink_control::{
    Changer, Control, Fencing, KeyRecord, KeyWrites, MAX_AGE, REGISTRY, Record, Rules, TableLayouts, Touched,
};
use heatsink_dynamo::{Error, KeyType, Operation};
use heatsink_env::{HastyEnv, ManualEnv};
use heatsink_layout::{By, Hash, Layout, LayoutSource, Strategy};
use heatsink_store::Store;
use serde_json::{Value as Json, json};

use crate::support::{call, memory, table};

const KEYS: usize = 150;

/// Counts the records of keys that it gives.
struct Counting {
    inner: Arc<dyn Store>,
    records: AtomicUsize,
}

impl Store for Counting {
    fn call(&self, operation: Operation, body: Bytes) -> BoxFuture<'_, Result<Bytes, Error>> {
        async move {
            let answer = self.inner.call(operation, body).await?;
            if operation == Operation::Query {
                let read: Json = serde_json::from_slice(&answer).unwrap();
                let items = read["Items"].as_array().unwrap();
                let of_keys = |item: &&Json| item["sk"]["S"].as_str().unwrap().starts_with("key:");
                self.records.fetch_add(items.iter().filter(of_keys).count(), Ordering::Relaxed);
            }
            Ok(answer)
        }
        .boxed()
    }
}

fn record(key: &str, shards: u16, version: u64) -> KeyRecord {
    let (strategy, hash) = (Strategy::calculated(By::SortKey), Hash::JumpXxh3);
    KeyRecord {
        key: key.as_bytes().to_vec(),
        key_type: KeyType::S,
        layout: Layout { strategy, shards, hash, version: 1 },
        moves: None,
        settled: true,
        reserved: 8,
        version,
        changed: 0,
        since: 0,
    }
}

struct World {
    store: Arc<Counting>,
    env: Arc<ManualEnv>,
    registry: Registry,
    control: Control,
    table: Record,
    writes: KeyWrites,
}

impl World {
    /// A table with many keys on record, and a gateway that knows it.
    fn new() -> World {
        let store = Arc::new(Counting { inner: memory(), records: AtomicUsize::new(0) });
        let env = Arc::new(ManualEnv::seeded(1));
        // Who reads records that do not fit pauses between two looks.
        let hasty = Arc::new(HastyEnv(ManualEnv::clone(&env)));
        let fencing = Fencing::exclusive(Rules::default().fence());
        let (registry, table) = block_on(async {
            Changer::beside(store.clone(), env.clone(), fencing).freeze(false).await.unwrap();
            call(&*store, Operation::CreateTable, table("Tab", "S")).await;
            let registry = Registry::new(store.clone(), hasty.clone(), REGISTRY);
            let described = registry.describe("Tab").await.unwrap().unwrap();
            let entry = registry.entry("Tab").await.unwrap();
            let first = registry.first_record(&described, TableLayouts::default(), true);
            let table = registry.create(entry.as_ref(), &first).await.unwrap();
            (registry, table)
        });
        let fencing = Fencing::shared(Rules::default().fence(), "one");
        let control =
            block_on(Control::join(store.clone(), hasty.clone(), Rules::default(), fencing)).unwrap();
        let mut world = World { store, env, registry, control, table, writes: KeyWrites::default() };
        let keys: Vec<(Option<KeyRecord>, KeyRecord)> =
            (0..KEYS).map(|key| (None, record(&format!("k{key:03}"), 4, 1))).collect();
        world.write(&keys);
        assert_eq!(world.shards("k000"), (4, KEYS));
        world
    }

    /// Writes records of keys together.
    fn write(&mut self, keys: &[(Option<KeyRecord>, KeyRecord)]) {
        let (writes, registry, table) = (&self.writes, &self.registry, &self.table);
        let written = keys.iter().map(|(from, to)| writes.replace(registry, table, from.as_ref(), to));
        let written = block_on(join_all(written));
        let tables = written.into_iter().map(|one| one.unwrap().unwrap().0);
        self.table = tables.max_by_key(|table| table.version).unwrap();
    }

    /// Gives some keys eight shards.
    fn widen(&mut self, keys: &[&str]) {
        let change = |key: &&str| {
            let from = block_on(self.registry.key_record(&self.table.id, key.as_bytes(), KeyType::S));
            let from = from.unwrap().unwrap();
            let to = record(key, 8, from.version + 1);
            (Some(from), to)
        };
        let changes: Vec<_> = keys.iter().map(change).collect();
        self.write(&changes);
    }

    /// How many shards a key has, as the gateway knows it once it looks again, and how many records it
    /// has read for that.
    fn shards(&self, key: &str) -> (u16, usize) {
        self.env.advance(MAX_AGE + Duration::from_secs(1));
        self.store.records.store(0, Ordering::Relaxed);
        let pass = block_on(self.control.resolve(&["Tab"])).unwrap();
        let view = self.control.view(&pass);
        let found = view.in_force(&view.table("Tab").unwrap(), key.as_bytes());
        (found.settled().shards, self.store.records.load(Ordering::Relaxed))
    }
}

#[test]
fn what_may_have_changed_is_read_and_nothing_else() {
    let mut world = World::new();
    world.widen(&["k010", "k012"]);
    assert_eq!(world.shards("k010"), (8, 3), "from the first to the last of them");
    world.widen(&["k020"]);
    world.widen(&["k100", "k101"]);
    world.widen(&["k019"]);
    assert_eq!(world.shards("k100"), (8, 4));
    assert_eq!(world.shards("k020"), (8, 0));
    assert_eq!(world.shards("k030"), (4, 0));
    // A record that was taken off, and one that is new.
    let gone = block_on(world.registry.key_record(&world.table.id, b"k050", KeyType::S)).unwrap().unwrap();
    world.table = block_on(world.registry.forget_keys(&world.table, &[gone])).unwrap().unwrap();
    world.write(&[(None, record("k050x", 8, 1))]);
    assert_eq!(world.shards("k050x"), (8, 1));
}

#[test]
fn all_is_read_where_the_hint_does_not_fit() {
    let mut world = World::new();
    // An older build writes the table's record: it knows no hint.
    world.widen(&["k010"]);
    let older =
        Record { touched: Touched::default(), version: world.table.version + 1, ..world.table.clone() };
    assert!(block_on(world.registry.replace(&world.table, &older)).unwrap());
    world.table = older;
    assert_eq!(world.shards("k010"), (8, KEYS));
    // A record that the hint does not name was written by hand, or is lost.
    world.widen(&["k011"]);
    let key = json!({ "pk": { "S": world.table.id }, "sk": { "S": "key:k011" } });
    block_on(call(&*world.store, Operation::DeleteItem, json!({ "TableName": REGISTRY, "Key": key })));
    world.env.advance(MAX_AGE + Duration::from_secs(1));
    assert!(block_on(world.control.resolve(&["Tab"])).is_err());
}
