//! Keys whose shards get slots by name, on the embedded store: what moves, what is read for it, what
//! stays in the way, and what the items tell once the registry is lost.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, its helpers too")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures::executor::block_on;
use futures::future::{BoxFuture, FutureExt};
use heatsink_control::registry::Registry;
use heatsink_control::reshard_intent::WantedLayout;
use heatsink_control::{Fencing, KeyRecord, Rules};
use heatsink_dynamo::{Error, KeyType, KeyValue, Operation};
use heatsink_env::{Env, HastyEnv, ManualEnv};
use heatsink_reshard::{Phase, State};
use heatsink_store::Store;
use heatsink_store::embedded::Embedded;
use heatsink_workers::{Progress, Rebuild, Reshard, ReshardOptions, ReshardReport, Unwatched, WorkerError};
use serde_json::{Value as Json, json};

const ITEMS: usize = 200;

/// A store that answers at once, and knows which partition keys of `game` were read.
struct Noted {
    inner: Arc<Embedded>,
    read: Mutex<BTreeSet<String>>,
}

impl Store for Noted {
    fn call(&self, operation: Operation, body: Bytes) -> BoxFuture<'_, Result<Bytes, Error>> {
        let request: Json = serde_json::from_slice(&body).unwrap();
        let of = [&request["ExpressionAttributeValues"][":p"]["S"], &request["Key"]["pk"]["S"]];
        let read = [Operation::Query, Operation::GetItem].contains(&operation);
        let named = of.into_iter().filter_map(Json::as_str).filter(|key| read && key.starts_with("game"));
        self.read.lock().unwrap().extend(named.map(str::to_owned));
        let call = || block_on(self.inner.call(operation, body));
        let answer = std::thread::scope(|scope| scope.spawn(call).join().unwrap());
        async { answer }.boxed()
    }
}

/// The high water of the move.
#[derive(Default)]
struct Watch(Mutex<Option<Arc<Place>>>, Mutex<Option<KeyValue<'static>>>);

impl Progress for Watch {
    fn state(&self, state: State) {
        if let (State::Moving { phase: Phase::Move, .. }, Some(place)) = (state, &*self.0.lock().unwrap()) {
            let read = || block_on(place.record());
            let record = std::thread::scope(|scope| scope.spawn(read).join().unwrap());
            *self.1.lock().unwrap() = record.unwrap().moves.unwrap().high_water;
        }
    }
}

struct Place {
    store: Arc<Noted>,
    env: Arc<dyn Env>,
    rules: Rules,
}

impl Place {
    /// A table whose items lie under the key `game`, whole.
    fn new() -> Arc<Place> {
        let inner = Arc::new(Embedded::memory().unwrap());
        let place = Place {
            store: Arc::new(Noted { inner, read: Mutex::default() }),
            env: Arc::new(HastyEnv(ManualEnv::seeded(1))),
            rules: Rules::read("rules", "").unwrap(),
        };
        place.call(
            Operation::CreateTable,
            json!({
                "TableName": "Scores", "BillingMode": "PAY_PER_REQUEST",
                "KeySchema": [{ "AttributeName": "pk", "KeyType": "HASH" }, { "AttributeName": "sk", "KeyType": "RANGE" }],
                "AttributeDefinitions": [{ "AttributeName": "pk", "AttributeType": "S" }, { "AttributeName": "sk", "AttributeType": "S" }],
            }),
        );
        (0..ITEMS).for_each(|at| place.put("game", &format!("{at:04}")));
        Arc::new(place)
    }

    fn call(&self, operation: Operation, body: Json) -> Json {
        let answer = block_on(self.store.inner.call(operation, Bytes::from(body.to_string()))).unwrap();
        serde_json::from_slice(&answer).unwrap()
    }

    fn put(&self, key: &str, sort: &str) {
        let item = json!({ "pk": { "S": key }, "sk": { "S": sort } });
        self.call(Operation::PutItem, json!({ "TableName": "Scores", "Item": item }));
    }

    fn registry(&self) -> Registry {
        Registry::new(self.store.inner.clone(), self.env.clone(), &self.rules.fence().registry)
    }

    async fn record(&self) -> Option<KeyRecord> {
        let registry = self.registry();
        let id = registry.describe("Scores").await.unwrap().unwrap().schema.id;
        registry.key_record(&id, b"game", KeyType::S).await.unwrap()
    }

    async fn prepared(&self, wanted: impl Into<WantedLayout>) -> Result<Reshard, WorkerError> {
        let (store, env) = (self.store.clone(), self.env.clone());
        Reshard::prepare(store, env, &self.rules, "Scores", b"game", wanted, false).await
    }

    fn reshard(&self, wanted: impl Into<WantedLayout>) -> Result<ReshardReport, WorkerError> {
        let options = ReshardOptions { exclusive: true, rate: u32::MAX };
        block_on(async { self.prepared(wanted).await?.run(options, &Unwatched).await })
    }

    /// The sort keys under each physical key.
    fn lies(&self) -> BTreeMap<String, BTreeSet<String>> {
        let page = self.call(Operation::Scan, json!({ "TableName": "Scores" }));
        let mut lies: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for item in page["Items"].as_array().unwrap() {
            let [key, sort] = ["pk", "sk"].map(|name| item[name]["S"].as_str().unwrap().to_owned());
            assert!(lies.entry(key).or_default().insert(sort));
        }
        lies
    }
}

fn named(slots: &[u16]) -> WantedLayout {
    WantedLayout { slots: Some(slots.to_vec()), ..u16::try_from(slots.len()).unwrap().into() }
}

#[test]
fn a_shard_that_gets_another_slot_takes_its_own_items_along_and_nothing_else_is_read() {
    let place = Place::new();
    place.reshard(4).unwrap();
    let before = place.lies();
    let of_two = &before["game#~2"];
    let plan =
        block_on(async { place.prepared(named(&[0, 1, 7, 3])).await.unwrap().plan(1_000).await }).unwrap();
    assert_eq!((plan.items, plan.to_move), (ITEMS as u64, of_two.len() as u64));
    assert_eq!((&plan.from_slots[..], &plan.to_slots[..]), (&[][..], &[0, 1, 7, 3][..]));

    place.store.read.lock().unwrap().clear();
    let watch = Watch(Mutex::new(Some(Arc::clone(&place))), Mutex::default());
    let options = ReshardOptions { exclusive: true, rate: u32::MAX };
    let report =
        block_on(async { place.prepared(named(&[0, 1, 7, 3])).await?.run(options, &watch).await }).unwrap();
    assert_eq!((report.moved, &report.slots[..]), (of_two.len() as u64, &[0, 1, 7, 3][..]));
    let mut expected = before.clone();
    let moved = expected.remove("game#~2").unwrap();
    expected.insert("game#~7".to_owned(), moved);
    assert_eq!(place.lies(), expected);
    // The highest item of the slot that is left, and not of all.
    let highest = of_two.last().unwrap().clone();
    assert_ne!(before.values().flatten().max(), Some(&highest), "another slot holds a higher one");
    assert_eq!(watch.1.lock().unwrap().take(), Some(KeyValue::S(highest.into())));
    // The names that become the key's own are looked at, and of its slots the old and the new one.
    let read = place.store.read.lock().unwrap().clone();
    let looked: BTreeSet<String> = [2, 4, 5, 6, 7].map(|slot| format!("game#~{slot}")).into();
    assert_eq!(read, looked);
    let record = block_on(place.record()).unwrap();
    assert_eq!((record.layout.slots(), record.reserved), (&[0, 1, 7, 3][..], 8));
}

#[test]
fn a_key_goes_from_list_to_list_and_between_counts() {
    let place = Place::new();
    let all: BTreeSet<String> = place.lies().remove("game").unwrap();
    let steps: [(WantedLayout, &[u16]); 8] = [
        (named(&[5]), &[5]),
        (3.into(), &[5, 0, 1]),
        (named(&[0, 1, 5]), &[0, 1, 5]),
        (named(&[1, 0, 9, 2]), &[1, 0, 9, 2]),
        (6.into(), &[1, 0, 9, 2, 3, 4]),
        (2.into(), &[1, 0]),
        (named(&[0, 1]), &[0, 1]),
        (1.into(), &[0]),
    ];
    for (wanted, slots) in steps {
        let before = place.lies();
        let report = place.reshard(wanted.clone()).unwrap();
        let layout = block_on(place.record()).unwrap().layout;
        assert_eq!(layout.slot_numbers().collect::<Vec<u16>>(), slots, "{wanted:?}");
        let lies = place.lies();
        assert_eq!(lies.values().flatten().cloned().collect::<BTreeSet<String>>(), all);
        for (physical, sorts) in &lies {
            for sort in sorts {
                let slot = layout.shard_of(Some(heatsink_layout::SortKey::S(sort)));
                let home = if slot == 0 { "game".to_owned() } else { format!("game#~{slot}") };
                assert_eq!(*physical, home, "{sort} under {layout}");
            }
        }
        let stayed: usize = lies
            .iter()
            .map(|(key, sorts)| before.get(key).map_or(0, |old| old.intersection(sorts).count()))
            .sum();
        assert_eq!(report.moved, (ITEMS - stayed) as u64, "{wanted:?}");
        assert!(block_on(place.prepared(wanted)).unwrap().is_done());
    }
    assert_eq!(block_on(place.record()).unwrap().reserved, 10, "the highest slot that it ever had was 9");
}

/// All names below the highest slot become the key's own, also those that no shard gets.
#[test]
fn an_item_of_a_client_under_a_name_between_the_slots_ends_the_move_with_nothing_changed() {
    let place = Place::new();
    place.put("game#~3", "a client's");
    let before = place.lies();
    let refused = place.reshard(named(&[0, 1, 5])).unwrap_err().to_string();
    assert!(refused.contains("game#~3"), "{refused}");
    assert_eq!(place.lies(), before);
    let record = block_on(place.record()).unwrap();
    assert_eq!((record.reserved, record.moves), (1, None));
    place.reshard(named(&[0, 2, 1])).unwrap();
}

#[test]
fn a_list_that_cannot_be_is_refused_by_name_before_anything_is_written() {
    let place = Place::new();
    let of = |slots: &[u16], shards: u16| WantedLayout { slots: Some(slots.to_vec()), ..shards.into() };
    let counter = WantedLayout { counter: Some(vec!["n".to_owned()]), ..named(&[1, 0]) };
    for (wanted, why) in [
        (of(&[0, 4, 4], 3), "slot 4 is named twice"),
        (of(&[0, 4], 3), "2 slots are named for 3 shards"),
        (of(&[0, 10_000], 2), "no slot 10000"),
        (counter, "a counter has none"),
    ] {
        let refused = block_on(place.prepared(wanted)).map(drop).unwrap_err();
        assert!(matches!(&refused, WorkerError::Usage(said) if said.contains(why)), "{refused}");
    }
    assert_eq!(
        place.call(Operation::ListTables, json!({}))["TableNames"],
        json!(["Scores"]),
        "no registry is made"
    );
}

#[test]
fn slots_by_name_are_read_off_the_items_once_the_registry_is_lost() {
    let place = Place::new();
    place.reshard(named(&[0, 1, 7, 3])).unwrap();
    let lose = || {
        let name = &place.rules.fence().registry;
        place.call(Operation::UpdateTable, json!({ "TableName": name, "DeletionProtectionEnabled": false }));
        place.call(Operation::DeleteTable, json!({ "TableName": name }));
    };
    lose();
    let rebuild = async || {
        let fencing = Fencing::exclusive(place.rules.fence());
        let (store, env) = (place.store.inner.clone(), place.env.clone());
        Rebuild::prepare(store, env, place.rules.fence(), "Scores", fencing).await.unwrap()
    };
    block_on(async {
        let ready = rebuild().await;
        let rebuilt = ready.look(None, &Unwatched).await.unwrap();
        assert_eq!((rebuilt.keys[0].shards, &rebuilt.keys[0].slots[..]), (4, &[0, 1, 7, 3][..]));
        ready.record(rebuilt, false).await.unwrap();
        let record = place.record().await.unwrap();
        assert_eq!((record.layout.slots(), record.reserved), (&[0, 1, 7, 3][..], 8));
    });
    // One item more, in the slot of another shard, and nothing is told.
    lose();
    let lies = place.lies();
    place.put("game#~7", lies["game#~3"].first().unwrap());
    block_on(async {
        let rebuilt = rebuild().await.look(None, &Unwatched).await.unwrap();
        assert_eq!((rebuilt.keys.len(), rebuilt.not_told.len()), (0, 1), "{rebuilt:?}");
    });
}
