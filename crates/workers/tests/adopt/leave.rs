//! The way out: whatever of a table is sharded, afterwards every item is as its client wrote it, and
//! nothing of the table is on record. Killed at every call and run again.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::Semaphore;

use crate::adoption::adopt_index::filled as tasks;
use crate::adoption::support::{Mortal, call, items, kills, memory};
use crate::adoption::value_reshard::sparse;
use heatsink_control::registry::Registry;
use heatsink_control::reshard_intent::{Request, WantedLayout};
use heatsink_control::{Changer, Dismantled, Fencing, REGISTRY, Rules, missed_record};
use heatsink_dynamo::{Error, Operation, Outcome};
use heatsink_env::{Env, ManualEnv, RealEnv};
use heatsink_store::Store;
use heatsink_workers::{
    Adoption, AdoptionOptions, Direction, InTheWay, Leave, LeaveOptions, Reshard, ReshardOptions, Sharded,
    Step, Unwatched, ValueAsked, ValueOptions, ValueReshard, WorkerError,
};
use serde_json::{Value as Json, json};

/// A table, and the rules that it comes under.
struct Case {
    name: &'static str,
    key: &'static str,
    rules: &'static str,
    keys: &'static [(&'static str, u16, Option<&'static str>)],
    /// Parts of counters as a gateway writes them: physical key, sort key, what it adds to `n`.
    parts: &'static [(&'static str, &'static str, u32)],
}

const CALCULATED: &str =
    "[[rule]]\ntable = \"Mine\"\nkeys = \"game*\"\nstrategy = \"calculated\"\nshards = 3\n";
const COUNTERS: &str =
    "[[rule]]\ntable = \"Mine\"\nstrategy = \"counter\"\nattributes = [\"n\"]\nshards = 3\n";

const CASES: [Case; 4] = [
    Case {
        name: "single keys",
        key: "S",
        rules: "",
        keys: &[("game", 4, None), ("votes", 3, Some("n")), ("other", 2, None), ("other", 1, None)],
        parts: &[("votes#~1", "1", 20), ("votes#~2", "1", 300), ("votes#~2", "2", 7)],
    },
    Case { name: "numbers", key: "N", rules: "", keys: &[("-12.5", 4, None), ("100", 3, None)], parts: &[] },
    Case {
        name: "a rule beside single keys",
        key: "S",
        rules: CALCULATED,
        keys: &[("game", 5, None), ("other", 4, None), ("votes", 3, Some("n"))],
        parts: &[("votes#~1", "1", 20)],
    },
    Case {
        name: "counters by a rule",
        key: "S",
        rules: COUNTERS,
        keys: &[],
        parts: &[("votes#~1", "1", 20), ("game#~2", "3", 300), ("other#~1", "2", 4)],
    },
];

fn rules(text: &str) -> Rules {
    Rules::read("rules", text).unwrap()
}

fn key(kind: &str, text: &str) -> Json {
    json!({ kind: text })
}

/// The table as its clients wrote it.
async fn written(case: &Case) -> Arc<dyn Store> {
    let store = memory();
    let table = json!({
        "TableName": "Mine", "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [{ "AttributeName": "pk", "AttributeType": case.key }, { "AttributeName": "sk", "AttributeType": "S" }],
        "KeySchema": [{ "AttributeName": "pk", "KeyType": "HASH" }, { "AttributeName": "sk", "KeyType": "RANGE" }],
    });
    call(&*store, Operation::CreateTable, table).await;
    let keys: &[&str] =
        if case.key == "N" { &["-12.5", "100", "0"] } else { &["game", "game#~7", "votes", "other", "calm"] };
    for name in keys {
        for sort in ["1", "2", "3", "4", "5"] {
            let item = json!({
                "pk": key(case.key, name), "sk": { "S": sort }, "n": { "N": "1000" }, "tags": { "SS": ["a", "b"] }, "of": { "S": name },
            });
            call(&*store, Operation::PutItem, json!({ "TableName": "Mine", "Item": item })).await;
        }
    }
    store
}

async fn reshard(store: &Arc<dyn Store>, name: &str, wanted: WantedLayout) {
    let (store, rules) = (Arc::clone(store), Rules::default());
    let prepared = Reshard::prepare(store, Arc::new(RealEnv), &rules, "Mine", name.as_bytes(), wanted, false);
    let options = ReshardOptions { exclusive: true, rate: u32::MAX };
    prepared.await.unwrap().run(options, &Unwatched).await.unwrap();
}

/// The same table, sharded; what its clients see of it has the parts added.
async fn sharded(case: &Case) -> (Arc<dyn Store>, Vec<String>) {
    let store = written(case).await;
    let mut seen = items(&*store, "Mine").await;
    for (physical, sort, more) in case.parts {
        let logical = physical.split("#~").next().unwrap();
        for text in &mut seen {
            let mut item: Json = serde_json::from_str(text).unwrap();
            if item["pk"]["S"] == logical && item["sk"]["S"] == *sort {
                let sum: u32 = item["n"]["N"].as_str().unwrap().parse::<u32>().unwrap() + more;
                item["n"]["N"] = json!(sum.to_string());
                *text = item.to_string();
            }
        }
    }
    seen.sort();
    if !case.rules.is_empty() {
        let rules = rules(case.rules);
        let direction = Direction::Adopt;
        let adoption = Adoption::prepare(Arc::clone(&store), Arc::new(RealEnv), &rules, "Mine", direction)
            .await
            .unwrap();
        let options = AdoptionOptions { concurrency: 4, exclusive: true };
        adoption.run(options, &Unwatched).await.unwrap();
    }
    for (name, shards, counter) in case.keys {
        let counter = counter.map(|attribute| vec![attribute.to_owned()]);
        reshard(&store, name, WantedLayout { counter, ..(*shards).into() }).await;
    }
    for (physical, sort, more) in case.parts {
        let part = json!({ "pk": { "S": physical }, "sk": { "S": sort }, "n": { "N": more.to_string() } });
        call(&*store, Operation::PutItem, json!({ "TableName": "Mine", "Item": part })).await;
    }
    assert_ne!(items(&*store, "Mine").await, seen, "{}", case.name);
    (store, seen)
}

fn leaving(store: &Arc<dyn Store>, table: &str, env: Arc<dyn Env>) -> Leave {
    let options = LeaveOptions {
        alone: true,
        rate: u32::MAX,
        read_rate: None,
        streams_confirmed: false,
        by: "ann".to_owned(),
    };
    Leave::new(Arc::clone(store), env, &rules("[fence]\nstraggler = \"200ms\"\n"), table, options)
}

/// The same in virtual time: whoever takes over waits for calls that may land late.
async fn leave_at_once(store: &Arc<dyn Store>, table: &str) -> Result<Vec<Step>, WorkerError> {
    // Each run draws its own numbers: by them the store knows a transaction again.
    static SEED: AtomicU64 = AtomicU64::new(0);
    let env = ManualEnv::seeded(SEED.fetch_add(1, Ordering::Relaxed));
    let passes = async {
        loop {
            for _ in 0..20 {
                tokio::task::yield_now().await;
            }
            // Little: whoever carries out a reshard writes every second that it lives.
            env.advance(Duration::from_micros(200));
        }
    };
    tokio::select! {
        left = leave_by(leaving(store, table, Arc::new(env.clone()))) => left,
        () = passes => unreachable!(),
    }
}

/// Takes the table out; which steps that took.
async fn leave(store: &Arc<dyn Store>, table: &str) -> Result<Vec<Step>, WorkerError> {
    leave_by(leaving(store, table, Arc::new(RealEnv))).await
}

async fn leave_by(mut leave: Leave) -> Result<Vec<Step>, WorkerError> {
    let mut steps = Vec::new();
    while let Some(step) = leave.next().await? {
        leave.carry_out(&step, Arc::new(Unwatched)).await?;
        steps.push(step);
        assert!(steps.len() < 10, "{steps:?}");
    }
    Ok(steps)
}

fn registry(store: &Arc<dyn Store>) -> Registry {
    Registry::new(Arc::clone(store), Arc::new(RealEnv), REGISTRY)
}

async fn dismantle(store: &Arc<dyn Store>) -> Dismantled {
    let rules = Rules::default();
    let changer = Changer::beside(Arc::clone(store), Arc::new(RealEnv), Fencing::exclusive(rules.fence()));
    registry(store).dismantle(&changer).await.unwrap()
}

async fn tables(store: &Arc<dyn Store>) -> Vec<String> {
    let listed = call(&**store, Operation::ListTables, json!({})).await;
    serde_json::from_value(listed["TableNames"].clone()).unwrap()
}

#[tokio::test]
async fn every_item_is_as_its_client_wrote_it_and_nothing_is_on_record() {
    for case in &CASES {
        let (store, seen) = sharded(case).await;
        let found = Sharded::named(&registry(&store), "Mine").await.unwrap().remove(0);
        let planned = Step::all(&found);
        let steps = leave(&store, "Mine").await.unwrap();
        assert_eq!(items(&*store, "Mine").await, seen, "{}", case.name);
        assert_eq!(steps, planned, "{}", case.name);
        assert_eq!(registry(&store).all().await.unwrap(), [], "{}", case.name);
        assert!(matches!(dismantle(&store).await, Dismantled::Done { directory: false, .. }));
        assert_eq!(tables(&store).await, ["Mine"], "{}", case.name);
    }
}

/// At any call, before it takes effect and after: the same command goes on, and no item is lost.
async fn killed_anywhere(case: &Case) {
    // Each run is long: on each change one in eight of those that are killed each night.
    let every = if std::env::var_os("HEATSINK_KILLS").is_some() { 1 } else { 8 };
    for acts in [false, true] {
        for at in kills(acts).step_by(every) {
            let (store, seen) = sharded(case).await;
            let mortal = Mortal::new(Arc::clone(&store), at, acts);
            // A mover goes on asking a store that does not answer: its process ends here.
            let ended = async {
                while mortal.left.load(Ordering::SeqCst) > -20 {
                    tokio::task::yield_now().await;
                }
            };
            let dying: Arc<dyn Store> = Arc::<Mortal>::clone(&mortal);
            let left = tokio::select! {
                left = leave_at_once(&dying, "Mine") => left.is_ok(),
                () = ended => false,
            };
            leave_at_once(&store, "Mine")
                .await
                .unwrap_or_else(|error| panic!("{} {at} {acts}: {error}", case.name));
            assert_eq!(items(&*store, "Mine").await, seen, "{}: killed at call {at} ({acts})", case.name);
            assert_eq!(registry(&store).all().await.unwrap(), [], "{}: {at} ({acts})", case.name);
            if left {
                assert!(at > 40, "the run makes {at} calls");
                break;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_anywhere_single_keys_go_on() {
    killed_anywhere(&CASES[0]).await;
    killed_anywhere(&CASES[1]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_anywhere_a_table_under_a_rule_goes_on() {
    killed_anywhere(&CASES[2]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_anywhere_counters_of_a_rule_go_on() {
    killed_anywhere(&CASES[3]).await;
}

async fn spread(store: &Arc<dyn Store>, index: &str, value: &str, shards: u16) {
    let asked = ValueAsked { table: "Tasks", index, value, shards };
    let prepared =
        ValueReshard::prepare(Arc::clone(store), Arc::new(RealEnv), &Rules::default(), asked).await.unwrap();
    let options = ValueOptions { concurrency: 1, exclusive: true, delay: Duration::ZERO, rate: u32::MAX };
    prepared.run(options, &Unwatched).await.unwrap();
}

#[tokio::test]
async fn values_of_an_index_come_back() {
    let store = tasks().await;
    let before = items(&*store, "Tasks").await;
    spread(&store, "by-status", "open", 4).await;
    assert_ne!(items(&*store, "Tasks").await, before);
    let steps = leave(&store, "Tasks").await.unwrap();
    assert!(matches!(&*steps, [Step::Values(values)] if values.len() == 1), "{steps:?}");
    assert_eq!(items(&*store, "Tasks").await, before);
    assert_eq!(registry(&store).all().await.unwrap(), []);
}

/// Items that lost the sort key of the index while their value was spread: no index shows them.
#[tokio::test]
async fn items_that_no_index_shows_get_the_plain_value() {
    let store = sparse().await;
    spread(&store, "by-status", "open", 4).await;
    for at in (0..20).step_by(2) {
        let key = json!({ "pk": { "S": "p" }, "sk": { "S": at.to_string() } });
        let lost = json!({ "TableName": "Tasks", "Key": key, "UpdateExpression": "REMOVE #a", "ExpressionAttributeNames": { "#a": "at" } });
        call(&*store, Operation::UpdateItem, lost).await;
    }
    let spread_ones = async || {
        let items = items(&*store, "Tasks").await;
        items.iter().filter(|text| text.contains("open#~")).count()
    };
    assert!(spread_ones().await > 2);
    let steps = leave(&store, "Tasks").await.unwrap();
    assert!(matches!(&*steps, [Step::Values(_), Step::FormerForms, Step::OffRecord]), "{steps:?}");
    assert_eq!(spread_ones().await, 0);
    assert_eq!(registry(&store).all().await.unwrap(), []);
}

/// By itself `adopt --back` names the parts of counters, and what sums them.
#[tokio::test]
async fn parts_of_counters_are_summed_first() {
    let (store, _) = sharded(&CASES[3]).await;
    let before = items(&*store, "Mine").await;
    let (env, direction) = (Arc::new(RealEnv), Direction::Back);
    let rules = Rules::default();
    let back = Adoption::prepare(Arc::clone(&store), env, &rules, "Mine", direction).await.unwrap();
    let options = AdoptionOptions { concurrency: 4, exclusive: true };
    match back.run(options, &Unwatched).await {
        Err(WorkerError::Stopped(why)) => {
            assert!(why.contains("a part of the counter \"votes\"") && why.contains("--shards 1"), "{why}");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(items(&*store, "Mine").await, before);
    assert_eq!(registry(&store).all().await.unwrap()[0].state, heatsink_control::State::Active);
}

/// What is on its way is named, unless it comes back.
#[tokio::test]
async fn what_moves_is_in_the_way() {
    let (store, _) = sharded(&CASES[0]).await;
    let registry = registry(&store);
    let found = async || Sharded::named(&registry, "Mine").await.unwrap().remove(0);
    assert_eq!(found().await.in_the_way(&[]), []);
    let of = found().await;
    let request = |shards: u16| Request {
        layout: shards.into(),
        rate: 1,
        streams_confirmed: false,
        by: String::new(),
        asked: 0,
    };
    let key: (&[u8], _) = (b"game", heatsink_dynamo::KeyType::S);
    let intent = |shards| registry.new_intent((&of.record.id, "Mine"), key, request(shards));
    assert_eq!(of.in_the_way(&[intent(1)]), []);
    let other = intent(9);
    assert_eq!(of.in_the_way(std::slice::from_ref(&other)), [InTheWay::Asked(other)]);
    // A move that nobody asks for: killed in its middle.
    let mut moving = of.clone();
    for at in (20..).step_by(5) {
        let dying: Arc<dyn Store> = Mortal::new(Arc::clone(&store), at, false);
        let (env, rules) = (Arc::new(RealEnv), Rules::default());
        let options = ReshardOptions { exclusive: true, rate: u32::MAX };
        if let Ok(prepared) = Reshard::prepare(dying, env, &rules, "Mine", b"game", 9, false).await {
            assert!(prepared.run(options, &Unwatched).await.is_err(), "it ended within {at} calls");
        }
        moving.keys = registry.key_records(&of.record.id).await.unwrap();
        if moving.keys.iter().any(|one| one.moves.is_some()) {
            break;
        }
    }
    assert!(matches!(&*moving.in_the_way(&[]), [InTheWay::Key(one)] if one.key == b"game"), "{moving:?}");
}

/// The registry stays while a table is on record, and while a record is lost.
#[tokio::test]
async fn a_registry_that_is_needed_is_not_removed() {
    let (store, seen) = sharded(&CASES[0]).await;
    assert_eq!(dismantle(&store).await, Dismantled::OnRecord(vec!["Mine".to_owned()]));
    let record = registry(&store).all().await.unwrap().remove(0);
    let key = json!({ "pk": { "S": record.id }, "sk": { "S": "table" } });
    let there =
        call(&*store, Operation::GetItem, json!({ "TableName": REGISTRY, "Key": key })).await["Item"].clone();
    call(&*store, Operation::DeleteItem, json!({ "TableName": REGISTRY, "Key": key })).await;
    assert!(matches!(dismantle(&store).await, Dismantled::Lost(why) if why.contains("keys on record")));
    call(&*store, Operation::PutItem, json!({ "TableName": REGISTRY, "Item": there })).await;
    leave(&store, "Mine").await.unwrap();
    assert_eq!(items(&*store, "Mine").await, seen);
}

/// Killed at any call, the registry's removal is gone on with.
#[tokio::test]
async fn killed_anywhere_the_registry_goes() {
    for acts in [false, true] {
        for at in 0.. {
            let (store, _) = sharded(&CASES[1]).await;
            leave(&store, "Mine").await.unwrap();
            let dying: Arc<dyn Store> = Mortal::new(Arc::clone(&store), at, acts);
            let rules = Rules::default();
            let changer =
                Changer::beside(Arc::clone(&dying), Arc::new(RealEnv), Fencing::exclusive(rules.fence()));
            let killed = Registry::new(dying, Arc::new(RealEnv), REGISTRY).dismantle(&changer).await.is_err();
            assert!(matches!(dismantle(&store).await, Dismantled::Done { .. }), "{at} ({acts})");
            assert_eq!(tables(&store).await, ["Mine"], "{at} ({acts})");
            if !killed {
                assert!(at > 10, "it makes {at} calls");
                break;
            }
        }
    }
}

/// A store that carries something else out before it deletes a table.
struct Before<F>(Arc<dyn Store>, F);

impl<F: Fn() -> BoxFuture<'static, ()> + Send + Sync + 'static> Store for Before<F> {
    fn call(&self, operation: Operation, body: Bytes) -> BoxFuture<'_, Result<Bytes, Error>> {
        async move {
            if operation == Operation::DeleteTable {
                (self.1)().await;
            }
            self.0.call(operation, body).await
        }
        .boxed()
    }
}

/// A store whose Scans of the whole table wait.
struct Surveys(Arc<dyn Store>, Arc<Semaphore>, Arc<Semaphore>);

impl Store for Surveys {
    fn call(&self, operation: Operation, body: Bytes) -> BoxFuture<'_, Result<Bytes, Error>> {
        async move {
            let text = String::from_utf8_lossy(&body);
            // Not those of its first items, before it asks whether layouts are frozen.
            if operation == Operation::Scan && text.contains("Mine") && !text.contains("Limit") {
                self.1.add_permits(1);
                self.2.acquire().await.unwrap().forget();
                self.2.add_permits(1);
            }
            self.0.call(operation, body).await
        }
        .boxed()
    }
}

/// An adoption that asked whether layouts may change, and then reads the table for long, puts it on
/// record neither behind a freeze nor into a registry that goes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_surveyed_meanwhile_records_nothing_in_a_registry_that_goes() {
    let (store, _) = sharded(&CASES[0]).await;
    leave(&store, "Mine").await.unwrap();
    let before = items(&*store, "Mine").await;
    let (begun, goes_on) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let surveyed: Arc<dyn Store> = Arc::new(Surveys(Arc::clone(&store), begun.clone(), goes_on.clone()));
    let adopting = tokio::spawn(async move {
        let (rules, direction) = (rules(CALCULATED), Direction::Adopt);
        let adoption =
            Adoption::prepare(surveyed, Arc::new(RealEnv), &rules, "Mine", direction).await.unwrap();
        adoption.run(AdoptionOptions { concurrency: 1, exclusive: true }, &Unwatched).await
    });
    begun.acquire().await.unwrap().forget();
    let adopting = Arc::new(Mutex::new(Some(adopting)));
    let ended = Arc::new(Mutex::new(None));
    let goes = {
        let ended = Arc::clone(&ended);
        move || {
            let (adopting, ended, goes_on) = (Arc::clone(&adopting), Arc::clone(&ended), goes_on.clone());
            async move {
                goes_on.add_permits(1);
                let adopting = adopting.lock().unwrap().take();
                if let Some(adopting) = adopting {
                    let result = adopting.await.unwrap();
                    *ended.lock().unwrap() = Some(result);
                }
            }
            .boxed()
        }
    };
    let going: Arc<dyn Store> = Arc::new(Before(Arc::clone(&store), goes));
    assert!(matches!(dismantle(&going).await, Dismantled::Done { .. }));
    let ended = ended.lock().unwrap().take().unwrap();
    assert!(matches!(&ended, Err(why) if why.to_string().contains("frozen")), "{ended:?}");
    assert_eq!(items(&*store, "Mine").await, before);
    assert_eq!(tables(&store).await, ["Mine"]);
}

/// Buckets of another registry's tables are in the same directory.
#[tokio::test]
async fn a_directory_that_another_registry_uses_stays() {
    let store = written(&CASES[0]).await;
    let buckets = "[[rule]]\ntable = \"Mine\"\nstrategy = \"bucket\"\nbucket = \"day\"\n[fence]\nregistry = \"their.registry\"\n";
    let (rules, direction) = (rules(buckets), Direction::Adopt);
    let env = Arc::new(RealEnv);
    let adoption = Adoption::prepare(Arc::clone(&store), env, &rules, "Mine", direction).await.unwrap();
    adoption.run(AdoptionOptions { concurrency: 1, exclusive: true }, &Unwatched).await.unwrap();
    let changer =
        Changer::beside(Arc::clone(&store), Arc::new(RealEnv), Fencing::exclusive(Rules::default().fence()));
    changer.freeze(false).await.unwrap();
    assert_eq!(missed_record::of_any_table(&registry(&store)).await.unwrap(), None);
    assert!(matches!(dismantle(&store).await, Dismantled::Done { directory: false, .. }));
    assert_eq!(tables(&store).await, ["Mine", "heatsink.buckets", "their.registry"]);
    // Without the one that was asked, theirs is named.
    let missed = missed_record::of_any_table(&registry(&store)).await.unwrap();
    assert!(missed.is_some_and(|why| why.contains("their.registry")));
}

/// On a store without tags, too.
#[tokio::test]
async fn a_registry_that_was_made_anew_does_not_go_while_items_lie_in_shards() {
    let (store, _) = sharded(&CASES[0]).await;
    for at in 0..60 {
        let item = json!({ "pk": { "S": "more" }, "sk": { "S": at.to_string() } });
        call(&*store, Operation::PutItem, json!({ "TableName": "Mine", "Item": item })).await;
    }
    reshard(&store, "more", 4.into()).await;
    let described = call(&*store, Operation::DescribeTable, json!({ "TableName": "Mine" })).await;
    let untag = json!({ "ResourceArn": described["Table"]["TableArn"], "TagKeys": ["heatsink.registry"] });
    call(&*store, Operation::UntagResource, untag).await;
    let unprotected = json!({ "TableName": REGISTRY, "DeletionProtectionEnabled": false });
    call(&*store, Operation::UpdateTable, unprotected).await;
    call(&*store, Operation::DeleteTable, json!({ "TableName": REGISTRY })).await;
    for anew in [false, true] {
        let rules = Rules::default();
        let changer =
            Changer::beside(Arc::clone(&store), Arc::new(RealEnv), Fencing::exclusive(rules.fence()));
        if anew {
            changer.freeze(false).await.unwrap();
            assert!(matches!(dismantle(&store).await, Dismantled::Lost(why) if why.contains("Mine")));
        }
        let missed = missed_record::of_any_table(&registry(&store)).await.unwrap();
        assert!(missed.is_some_and(|why| why.contains("Mine")), "{anew}");
    }
}

/// A store that is down for transactions: what they came to is not told.
struct Silent(Arc<dyn Store>, AtomicU64);

impl Store for Silent {
    fn call(&self, operation: Operation, body: Bytes) -> BoxFuture<'_, Result<Bytes, Error>> {
        if operation == Operation::TransactWriteItems
            && String::from_utf8_lossy(&body).contains("\"TableName\":\"Mine\"")
        {
            self.1.fetch_add(1, Ordering::SeqCst);
            return async { Err(Error::unavailable("down", Outcome::Unknown)) }.boxed();
        }
        self.0.call(operation, body)
    }
}

/// Neither without a pause nor without an end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_does_not_tell_what_came_of_a_move_is_asked_with_pauses() {
    for case in [&CASES[0], &CASES[3]] {
        let (store, seen) = sharded(case).await;
        let silent = Arc::new(Silent(Arc::clone(&store), AtomicU64::new(0)));
        let env = ManualEnv::seeded(7);
        let passes = async {
            loop {
                for _ in 0..50 {
                    tokio::task::yield_now().await;
                }
                env.advance(Duration::from_millis(10));
            }
        };
        let down: Arc<dyn Store> = Arc::<Silent>::clone(&silent);
        let left = tokio::select! {
            left = leave_by(leaving(&down, "Mine", Arc::new(env.clone()))) => left,
            () = passes => unreachable!(),
        };
        assert!(matches!(&left, Err(WorkerError::Store(_))), "{}: {left:?}", case.name);
        let asked = silent.1.load(Ordering::SeqCst);
        assert!(asked < 5_000, "{}: {asked} transactions in some minutes", case.name);
        leave_at_once(&store, "Mine").await.unwrap();
        assert_eq!(items(&*store, "Mine").await, seen, "{}", case.name);
    }
}
