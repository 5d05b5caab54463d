//! Adoption of index keys: every value in its form, killed at every call and run again, and back to
//! what it was.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;

use crate::adoption::support::{Adopting, Mortal, call, items, killed_everywhere, memory};
use heatsink_control::{Control, MAX_AGE, REGISTRY, Rules};
use heatsink_control::{Verdict, check};
use heatsink_dynamo::{AttributeDefinition, Error, KeyType, Operation};
use heatsink_env::{ManualEnv, RealEnv};
use heatsink_layout::{LayoutSource, MigrationPhase, PrimaryKey, SortKey, codec, hash};
use heatsink_store::Store;
use heatsink_workers::{Adoption, AdoptionOptions, AdoptionReport, Direction, Unwatched, WorkerError};
use serde_json::{Value as Json, json};

const OPTIONS: AdoptionOptions = AdoptionOptions { concurrency: 1, exclusive: true };
const SHARDS: u16 = 3;

/// Spreads the index, and the table's own keys if `own`.
fn rules(own: bool) -> Rules {
    rules_with(own, SHARDS)
}

pub fn rules_with(own: bool, shards: u16) -> Rules {
    let own = if own { "[[rule]]\ntable = \"Tasks\"\nstrategy = \"calculated\"\nshards = 2\n" } else { "" };
    let index = format!(
        "[[rule]]\ntable = \"Tasks\"\nindex = \"by-status\"\nstrategy = \"calculated\"\nshards = {shards}\n"
    );
    Rules::read("rules", &format!("{own}{index}")).unwrap()
}

pub async fn step(
    store: &Arc<dyn Store>,
    own: bool,
    direction: Direction,
) -> Result<AdoptionReport, WorkerError> {
    step_by(store, &rules(own), direction).await
}

pub async fn step_by(
    store: &Arc<dyn Store>,
    rules: &Rules,
    direction: Direction,
) -> Result<AdoptionReport, WorkerError> {
    let (store, env) = (Arc::clone(store), Arc::new(RealEnv));
    let adoption = Adoption::prepare(store, env, rules, "Tasks", direction).await?;
    adoption.run(OPTIONS, &Unwatched).await
}

pub async fn filled() -> Arc<dyn Store> {
    let store = memory();
    let table = json!({
        "TableName": "Tasks", "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [
            { "AttributeName": "pk", "AttributeType": "S" }, { "AttributeName": "sk", "AttributeType": "S" },
            { "AttributeName": "status", "AttributeType": "S" },
        ],
        "KeySchema": [{ "AttributeName": "pk", "KeyType": "HASH" }, { "AttributeName": "sk", "KeyType": "RANGE" }],
        "GlobalSecondaryIndexes": [{
            "IndexName": "by-status", "Projection": { "ProjectionType": "ALL" },
            "KeySchema": [{ "AttributeName": "status", "KeyType": "HASH" }],
        }],
    });
    call(&store, Operation::CreateTable, table).await;
    let mut puts = Vec::new();
    for at in 0..18 {
        let mut item = json!({ "pk": { "S": format!("p{}", at % 5) }, "sk": { "S": at.to_string() }, "name": { "N": at.to_string() } });
        // Sparse: some items are in no index.
        if at % 6 != 5 {
            item["status"] = json!({ "S": if at % 2 == 0 { "open" } else { "done" } });
        }
        puts.push(json!({ "PutRequest": { "Item": item } }));
    }
    call(&*store, Operation::BatchWriteItem, json!({ "RequestItems": { "Tasks": puts } })).await;
    store
}

/// Independent of adoption's own verification: every value is stored where the codec and the hash
/// put it. How many are spread.
fn assert_spread(items: &[String]) -> usize {
    assert_spread_over(items, SHARDS)
}

pub fn assert_spread_over(items: &[String], shards: u16) -> usize {
    let mut spread = 0;
    for text in items {
        let item: Json = serde_json::from_str(text).unwrap();
        let Some(stored) = item["status"]["S"].as_str() else { continue };
        let pk = codec::decode(item["pk"]["S"].as_str().unwrap().as_bytes()).logical.to_vec();
        let mut canonical = u32::try_from(pk.len()).unwrap().to_be_bytes().to_vec();
        canonical.extend_from_slice(&pk);
        canonical.extend_from_slice(item["sk"]["S"].as_str().unwrap().as_bytes());
        let at: u32 = item["name"]["N"].as_str().unwrap().parse().unwrap();
        let logical = if at.is_multiple_of(2) { "open" } else { "done" };
        let shard = hash::jump_xxh3(&canonical, shards);
        assert_eq!(stored.as_bytes(), codec::encode(logical.as_bytes(), shard).unwrap(), "{text}");
        spread += usize::from(shard > 0);
    }
    spread
}

/// The sort key of an item that lies in these shards, of so many.
pub fn sort_in(wanted: &[(u16, u16)]) -> String {
    let lies = |sort: &str, (shard, shards): (u16, u16)| {
        let canonical = [&2_u32.to_be_bytes()[..], b"p0", sort.as_bytes()].concat();
        hash::jump_xxh3(&canonical, shards) == shard
    };
    let mut sorts = (0..10_000).map(|sort| sort.to_string());
    sorts.find(|sort| wanted.iter().all(|wanted| lies(sort, *wanted))).unwrap()
}

#[tokio::test]
async fn every_value_is_spread_and_brought_back() {
    let store = filled().await;
    let original = items(&store, "Tasks").await;
    let report = step(&store, false, Direction::Adopt).await.unwrap();
    assert_eq!((report.items, &report.indexes[..]), (18, &["status".to_owned()][..]));
    let spread = assert_spread(&items(&store, "Tasks").await);
    assert_eq!(report.moved, u64::try_from(spread).unwrap());
    assert!(spread > 3);
    assert!(step(&store, false, Direction::Adopt).await.unwrap().already);
    let back = step(&store, false, Direction::Back).await.unwrap();
    assert_eq!(back.moved, report.moved);
    assert_eq!(items(&store, "Tasks").await, original);
    assert!(
        matches!(step(&store, false, Direction::Back).await, Err(WorkerError::Usage(_))),
        "nothing is on record"
    );
}

#[tokio::test]
async fn the_tables_own_keys_come_first_and_go_last() {
    let store = filled().await;
    let original = items(&store, "Tasks").await;
    let own = step(&store, true, Direction::Adopt).await.unwrap();
    assert!(own.indexes.is_empty() && own.moved > 0);
    let index = step(&store, true, Direction::Adopt).await.unwrap();
    assert_eq!(index.indexes, ["status"]);
    assert!(step(&store, true, Direction::Adopt).await.unwrap().already);
    assert_spread(&items(&store, "Tasks").await);
    assert_eq!(step(&store, true, Direction::Back).await.unwrap().indexes, ["status"]);
    assert!(step(&store, true, Direction::Back).await.unwrap().indexes.is_empty());
    assert_eq!(items(&store, "Tasks").await, original);
}

/// The index key, under rules for it alone.
struct Index;

impl Adopting for Index {
    const TABLE: &'static str = "Tasks";

    async fn filled() -> Arc<dyn Store> {
        filled().await
    }

    async fn adopt(store: &Arc<dyn Store>, direction: Direction) -> Result<AdoptionReport, WorkerError> {
        step(store, false, direction).await
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_anywhere_it_goes_on() {
    killed_everywhere::<Index>(Direction::Adopt, Direction::Adopt, 15).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_anywhere_it_turns_back() {
    killed_everywhere::<Index>(Direction::Adopt, Direction::Back, 15).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_on_the_way_back_it_goes_on() {
    killed_everywhere::<Index>(Direction::Back, Direction::Back, 15).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_on_the_way_back_it_turns_again() {
    killed_everywhere::<Index>(Direction::Back, Direction::Adopt, 15).await;
}

#[tokio::test]
async fn values_that_look_spread_are_found_before_anything_is_written() {
    let store = filled().await;
    let item = json!({ "pk": { "S": "p" }, "sk": { "S": "99" }, "status": { "S": "open#~1" } });
    call(&store, Operation::PutItem, json!({ "TableName": "Tasks", "Item": item })).await;
    let before = items(&store, "Tasks").await;
    let WorkerError::Stopped(said) = step(&store, false, Direction::Adopt).await.unwrap_err() else {
        panic!("it is no failure of the store")
    };
    assert!(said.contains("1 items of table Tasks cannot be moved") && said.contains("open#~1"), "{said}");
    assert_eq!(items(&store, "Tasks").await, before);
    assert!(
        matches!(step(&store, false, Direction::Back).await, Err(WorkerError::Usage(_))),
        "nothing is on record"
    );
}

#[tokio::test]
async fn spread_values_are_found_before_the_tables_own_keys_are_adopted() {
    let sample = filled().await;
    step(&sample, false, Direction::Adopt).await.unwrap();
    let spread = items(&sample, "Tasks").await;
    assert!(assert_spread(&spread) > 0);
    // A table of that name that nobody has on record, filled from the sample.
    let store = filled().await;
    for item in &spread {
        let item: Json = serde_json::from_str(item).unwrap();
        call(&store, Operation::PutItem, json!({ "TableName": "Tasks", "Item": item })).await;
    }
    let WorkerError::Usage(said) = step(&store, true, Direction::Adopt).await.unwrap_err() else {
        panic!("it is no failure of the store")
    };
    assert!(said.contains("status") && said.contains("heatsink adopt Tasks --as-it-lies"), "{said}");
    assert_eq!(items(&store, "Tasks").await, spread);
    assert!(
        matches!(step(&store, true, Direction::Back).await, Err(WorkerError::Usage(_))),
        "nothing is on record"
    );
}

#[tokio::test]
async fn somebody_who_writes_past_the_gateways_is_found_out() {
    // Killed later and later, until it has begun to rewrite.
    let mut last = String::new();
    for calls in 10..60 {
        let store = filled().await;
        let dying: Arc<dyn Store> = Mortal::new(Arc::clone(&store), calls, false);
        step(&dying, false, Direction::Adopt).await.unwrap_err();
        let item = json!({ "pk": { "S": "p" }, "sk": { "S": "99" }, "status": { "S": "open#~77" } });
        call(&store, Operation::PutItem, json!({ "TableName": "Tasks", "Item": item })).await;
        last = step(&store, false, Direction::Adopt).await.unwrap_err().to_string();
        assert!(last.contains("sk = \"99\""), "{last}");
        if last.contains("nobody wrote through a gateway") {
            return;
        }
    }
    panic!("{last}");
}

#[tokio::test]
async fn a_gateway_serves_the_table_at_every_step() {
    let store = filled().await;
    // So that the registry is there, and every write to it is one call.
    step(&store, false, Direction::Adopt).await.unwrap();
    step(&store, false, Direction::Back).await.unwrap();
    let env = ManualEnv::seeded(1);
    let control = Control::start(Arc::clone(&store), Arc::new(env.clone()), rules(false)).await.unwrap();
    let silent = Control::start(Arc::clone(&store), Arc::new(env.clone()), Rules::default()).await.unwrap();
    control.resolve(&["Tasks"]).await.unwrap();
    assert!(control.table("Tasks").is_none(), "the rule waits");
    let verdicts = check(Arc::clone(&store), Arc::new(env.clone()), &rules(false)).await.unwrap().tables;
    assert!(
        matches!(&verdicts[..], [(_, Verdict::Waiting(on_record, indexes))] if on_record.is_empty() && indexes == &["by-status"])
    );
    let mut seen = Vec::new();
    let sort = sort_in(&[(1, SHARDS)]);
    let mut at = 0;
    loop {
        let dying: Arc<dyn Store> = Mortal::new(Arc::clone(&store), at, true);
        let done = step(&dying, false, Direction::Adopt).await.is_ok();
        for control in [&control, &silent] {
            env.advance(MAX_AGE);
            control.resolve(&["Tasks"]).await.unwrap();
            let key = PrimaryKey { partition: SortKey::S("p0"), sort: Some(SortKey::S(&sort)) };
            let turn = control.table("Tasks").map(|table| {
                let status = table.index_key("status").unwrap();
                (status.is_migrating(), status.suffixes(b"open", key))
            });
            if seen.last() != Some(&turn) {
                seen.push(turn);
            }
        }
        if done {
            break;
        }
        at += 1;
    }
    let known = |migrates: bool, forms: &[&str]| {
        Some((migrates, forms.iter().map(|form| (*form).to_owned()).collect()))
    };
    assert_eq!(
        seen,
        [None, known(true, &["", "#~1"]), known(true, &["#~1", ""]), known(false, &["#~1"])],
        "both are read before one is written"
    );
}

#[test]
fn a_turning_key_is_written_in_one_form_and_held_in_two() {
    let attribute = |name: &str, key_type| AttributeDefinition { name: name.to_owned(), key_type };
    let schema = heatsink_dynamo::TableSchema::from_create(
        br#"{"TableName":"Tasks","AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"S"},{"AttributeName":"status","AttributeType":"S"}],
            "KeySchema":[{"AttributeName":"pk","KeyType":"HASH"}],
            "GlobalSecondaryIndexes":[{"IndexName":"by-status","KeySchema":[{"AttributeName":"status","KeyType":"HASH"}],"Projection":{"ProjectionType":"ALL"}}]}"#,
    )
    .unwrap();
    let heatsink_control::DesiredLayout::Sharded(layouts) = rules(false).desired_layout(&schema) else {
        panic!("the rule fits")
    };
    let table = |turn: Option<(bool, bool)>| {
        let table = heatsink_layout::Table::new(schema.clone(), Arc::new(layouts.clone()));
        let Some((spreads, writes_new)) = turn else { return table };
        let spreading = MigrationPhase { writes_new, ..MigrationPhase::spreading(&layouts) };
        let back =
            MigrationPhase { from: spreading.to.clone(), to: spreading.from.clone(), ..spreading.clone() };
        table.migrating(if spreads { &spreading } else { &back })
    };
    assert_eq!(table(None).index_key("status").unwrap().attribute(), &attribute("status", KeyType::S));
    let (sort, mut spread) = (None, 0);
    for number in 0..50 {
        let name = format!("p{number}");
        let key = PrimaryKey { partition: SortKey::S(&name), sort };
        let steady = table(None);
        let [home] = &steady.index_key("status").unwrap().suffixes(b"open", key)[..] else {
            panic!("one form")
        };
        for (spreads, writes_new) in [(true, false), (true, true), (false, false), (false, true)] {
            let turning = table(Some((spreads, writes_new)));
            let status = turning.index_key("status").unwrap();
            let written = status.checked_suffix(b"open", key).unwrap();
            let held = status.suffixes(b"open", key);
            assert_eq!(held[0], written);
            assert_eq!(written == *home, spreads == writes_new || home.is_empty());
            assert_eq!(held.len(), if home.is_empty() { 1 } else { 2 });
            assert!(held.contains(home) && held.contains(&String::new()));
            status.checked_suffix(b"open#~1", key).unwrap_err();
        }
        spread += usize::from(!home.is_empty());
    }
    assert!(spread > 10);
}

/// The state of the table's record, as it is stored.
async fn state(store: &Arc<dyn Store>) -> Option<Json> {
    let records = items(store, REGISTRY).await;
    let record = records.iter().map(|text| serde_json::from_str::<Json>(text).unwrap());
    let mut record = record.filter(|item| item["name"]["S"] == "Tasks" && item.get("layouts").is_some());
    Some(serde_json::from_str(record.next()?["state"]["S"].as_str().unwrap()).unwrap())
}

/// Older builds, brought back in their first step, had gateways write spread values and said that
/// there were none.
#[tokio::test]
async fn what_older_builds_left_in_the_first_step_is_brought_back() {
    let mut turned = 0;
    for at in 14..44 {
        let store = filled().await;
        let original = items(&store, "Tasks").await;
        let dying: Arc<dyn Store> = Mortal::new(Arc::clone(&store), at, true);
        let _ = step(&dying, false, Direction::Adopt).await;
        let Some(mut left) = state(&store).await.filter(|left| left["state"] == "TURNING") else { continue };
        if left["touched"] == true {
            continue;
        }
        left["spreads"] = json!(false);
        let records = items(&store, REGISTRY).await;
        let mut records = records.iter().map(|text| serde_json::from_str::<Json>(text).unwrap());
        let mut record = records.find(|item| item.get("layouts").is_some()).unwrap();
        record["state"]["S"] = json!(left.to_string());
        record.as_object_mut().unwrap().remove("seal");
        call(&store, Operation::PutItem, json!({ "TableName": REGISTRY, "Item": record })).await;
        // What a gateway writes by that record.
        let env = Arc::new(ManualEnv::seeded(1));
        let control = Control::start(Arc::clone(&store), env, Rules::default()).await.unwrap();
        control.resolve(&["Tasks"]).await.unwrap();
        for text in &original {
            let mut item: Json = serde_json::from_str(text).unwrap();
            let Some(status) = item["status"]["S"].as_str() else { continue };
            let table = control.table("Tasks").unwrap();
            let [pk, sk] = ["pk", "sk"].map(|name| item[name]["S"].as_str().unwrap());
            let key = PrimaryKey { partition: SortKey::S(pk), sort: Some(SortKey::S(sk)) };
            let suffix = table.index_key("status").unwrap().checked_suffix(status.as_bytes(), key).unwrap();
            item["status"]["S"] = json!(format!("{status}{suffix}"));
            call(&store, Operation::PutItem, json!({ "TableName": "Tasks", "Item": item })).await;
        }
        assert!(assert_spread(&items(&store, "Tasks").await) > 3);
        step(&store, false, Direction::Back).await.unwrap();
        assert_eq!(items(&store, "Tasks").await, original, "killed at call {at}");
        turned += 1;
    }
    assert!(turned > 1, "{turned}");
}

/// A store in which, at its n-th call, a client writes a value in the reserved form through a
/// gateway that has not heard of the way back.
struct Busy {
    inner: Arc<dyn Store>,
    left: AtomicI64,
    item: Json,
}

impl Store for Busy {
    fn call(&self, operation: Operation, body: Bytes) -> BoxFuture<'_, Result<Bytes, Error>> {
        async move {
            if self.left.fetch_sub(1, Ordering::SeqCst) == 0
                && state(&self.inner).await.is_some_and(|state| state["state"] == "ACTIVE")
            {
                call(&self.inner, Operation::PutItem, json!({ "TableName": "Tasks", "Item": self.item }))
                    .await;
            }
            self.inner.call(operation, body).await
        }
        .boxed()
    }
}

#[tokio::test]
async fn values_that_look_spread_and_come_after_the_first_look_are_found_on_the_way_back() {
    let mut met = 0;
    for at in 0..60 {
        let store = filled().await;
        step(&store, false, Direction::Adopt).await.unwrap();
        // `open#~1`, as a gateway stores it in shard 0.
        let item = json!({ "pk": { "S": "p0" }, "sk": { "S": sort_in(&[(0, SHARDS)]) }, "status": { "S": "open#~1#~0" } });
        let busy: Arc<dyn Store> =
            Arc::new(Busy { inner: Arc::clone(&store), left: AtomicI64::new(at), item: item.clone() });
        let brought = step(&busy, false, Direction::Back).await;
        let stored = items(&store, "Tasks").await;
        if !stored.iter().any(|item| item.contains("open#~1")) {
            continue;
        }
        met += 1;
        let said = brought.map(drop).unwrap_err().to_string();
        assert!(said.contains("open#~1") && said.contains("change it first"), "at call {at}: {said}");
        // Another value of the client's ends it.
        let item = json!({ "pk": item["pk"], "sk": item["sk"], "status": { "S": "done" } });
        call(&store, Operation::PutItem, json!({ "TableName": "Tasks", "Item": item })).await;
        step(&store, false, Direction::Back).await.unwrap();
        assert!(!items(&store, "Tasks").await.iter().any(|item| item.contains("#~")));
    }
    assert!(met > 5, "{met}");
}
