//! Runs that meet a change of a key's buckets which another one left, and workers that began before
//! it. One process, no gateway.
//!
//! Not here: gateways and clients meanwhile (`heatsink`'s tests), every order of the steps (the
//! model of `heatsink-reshard`).
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures::executor::block_on;
use futures::future::BoxFuture;
use heatsink_control::claim::Claim;
use heatsink_control::registry::Registry;
use heatsink_control::{KeyRecord, Move, Record, Rules};
use heatsink_dynamo::{Error, KeyType, Operation};
use heatsink_env::{Env, HastyEnv, ManualEnv};
use heatsink_layout::{
    Bucket, By, Epoch, Glob, Granularity, Hash, KeyLayout, Layout, Phase, SortKey, Strategy, TableLayouts,
    Time,
};
use heatsink_store::Store;
use heatsink_store::embedded::Embedded;
use heatsink_workers::{Reshard, ReshardOptions, ReshardReport, Unwatched, WorkerError};
use serde_json::{Value as Json, json};

/// More calls than any run here needs.
const MANY: u32 = 2_000;

/// What a worker of before the change writes, once a bucket of the key that changes was looked for.
struct Late {
    worker: Claim,
    registry: Registry,
    id: String,
    puts: Vec<Json>,
    written: Mutex<Option<bool>>,
}

struct Counted {
    inner: Embedded,
    calls: AtomicU32,
    late: Mutex<Option<Arc<Late>>>,
}

impl Store for Counted {
    fn call(&self, operation: Operation, body: Bytes) -> BoxFuture<'_, Result<Bytes, Error>> {
        assert!(self.calls.fetch_add(1, Ordering::SeqCst) < MANY, "the run does not end");
        let looks = operation == Operation::Query && body.windows(16).any(|part| part == b"heatsink.buckets");
        let late = if looks { self.late.lock().unwrap().clone() } else { None };
        Box::pin(async move {
            let answer = self.inner.call(operation, body).await;
            if let Some(late) = late
                && late.registry.key_record(&late.id, b"game", KeyType::S).await?.is_some()
                && late.written.lock().unwrap().is_none()
            {
                let done = late.worker.write(late.puts.clone()).await.is_ok();
                *late.written.lock().unwrap() = Some(done);
            }
            answer
        })
    }
}

/// A table whose keys lie in buckets of an hour.
struct Place {
    store: Arc<Counted>,
    env: Arc<dyn Env>,
    rules: Rules,
    registry: Registry,
    record: Record,
}

fn layout() -> Layout {
    let time = Time { granularity: Granularity::Hour, prefix: String::new(), epoch: Epoch::Seconds };
    let strategy = Strategy::Bucket { time, by: By::SortKey, earlier: Vec::new() };
    Layout { strategy, shards: 1, hash: Hash::JumpXxh3, version: 1 }
}

impl Place {
    fn new() -> Self {
        let inner = Embedded::memory().unwrap();
        let store = Arc::new(Counted { inner, calls: AtomicU32::new(0), late: Mutex::new(None) });
        let env: Arc<dyn Env> = Arc::new(HastyEnv(ManualEnv::seeded(1)));
        let rules = Rules::read("rules", "").unwrap();
        let registry = Registry::new(store.clone(), env.clone(), &rules.fence().registry);
        let table = json!({
            "TableName": "Scores", "BillingMode": "PAY_PER_REQUEST",
            "KeySchema": [{ "AttributeName": "pk", "KeyType": "HASH" }, { "AttributeName": "sk", "KeyType": "RANGE" }],
            "AttributeDefinitions": [{ "AttributeName": "pk", "AttributeType": "S" }, { "AttributeName": "sk", "AttributeType": "S" }],
        });
        let record = block_on(async {
            store.call(Operation::CreateTable, Bytes::from(table.to_string())).await.unwrap();
            let described = registry.describe("Scores").await.unwrap().unwrap();
            let layouts = TableLayouts::new(vec![KeyLayout::new(Glob::new("*"), layout())]);
            registry.make_directory(&layouts).await.unwrap();
            let first = registry.first_record(&described, layouts, false);
            let entry = registry.entry(&first.name).await.unwrap();
            registry.create(entry.as_ref(), &first).await.unwrap()
        });
        Place { store, env, rules, registry, record }
    }

    /// The hour that begins so many hours after this one.
    fn hour(&self, ahead: i64) -> Bucket {
        let now = i64::try_from(self.env.unix_millis() / 1_000).unwrap();
        Bucket::at(now + ahead * 3_600, Granularity::Hour).unwrap()
    }

    fn reshard(&self, shards: u16) -> Result<ReshardReport, WorkerError> {
        block_on(async {
            let (store, env) = (self.store.clone(), self.env.clone());
            let prepared = Reshard::prepare(store, env, &self.rules, "Scores", b"game", shards, false);
            prepared.await?.run(ReshardOptions { exclusive: false, rate: u32::MAX }, &Unwatched).await
        })
    }

    fn key(&self) -> Option<KeyRecord> {
        block_on(self.registry.key_record(&self.record.id, b"game", KeyType::S)).unwrap()
    }
}

/// A run died in RESERVE, and nobody went on until the first bucket had begun. The next run goes
/// back, and gives the number to a later bucket.
#[test]
fn a_change_that_lay_until_its_bucket_began_is_made_with_a_later_one() {
    let place = Place::new();
    let to = layout().stepped(place.hour(0), 4).unwrap();
    let moves = Move {
        to,
        phase: Phase::Reserve,
        reserved_before: 1,
        closing: false,
        expires: None,
        marks: false,
        high_water: None,
    };
    let left = KeyRecord {
        key: b"game".to_vec(),
        key_type: KeyType::S,
        layout: layout(),
        moves: Some(moves),
        settled: false,
        reserved: 4,
        version: 1,
        changed: 0,
        since: 0,
    };
    block_on(place.registry.replace_key(&place.record, None, &left)).unwrap().unwrap();
    let begun = place.hour(0);
    assert_eq!(place.reshard(4).unwrap().to, 4);
    let record = place.key().unwrap();
    assert!(
        record.settled && record.moves.is_none() && record.layout.newest_from() > Some(begun),
        "{record:?}"
    );
}

/// `verify --repair` that began before the change may bring an item into a bucket to come, by the
/// number that it knows.
#[test]
fn a_worker_of_before_puts_nothing_into_buckets_that_were_found_empty() {
    let place = Place::new();
    let later = place.hour(5);
    let sorts: Vec<String> = (0..8).map(|number| format!("{later}:{number}")).collect();
    let put = |sort: &String| {
        let item = json!({ "pk": { "S": format!("game#~{later}") }, "sk": { "S": sort } });
        json!({ "Put": { "TableName": "Scores", "Item": item } })
    };
    let late = Arc::new(Late {
        worker: block_on(Claim::take(&place.registry, &place.record, 1))
            .unwrap_or_else(|_| panic!("no claim")),
        registry: place.registry.clone(),
        id: place.record.id.clone(),
        puts: sorts.iter().map(put).collect(),
        written: Mutex::new(None),
    });
    *place.store.late.lock().unwrap() = Some(late.clone());
    let changed = place.reshard(4);
    *place.store.late.lock().unwrap() = None;
    let written =
        late.written.lock().unwrap().unwrap_or_else(|| panic!("it never came to that: {changed:?}"));
    let layout = place.key().unwrap().layout;
    let hidden = sorts.iter().any(|sort| layout.slot_of(Some(SortKey::S(sort))).unwrap().shard > 0);
    assert!(!(written && hidden), "{changed:?} {layout:?}");
}
