//! Adoption: every item at home, killed at every call and run again, and back to what it was.

use std::sync::{Arc, Mutex};

use crate::adoption::support::{Adopting, Mortal, calculated, call, items, killed_everywhere, memory, table};
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use heatsink_control::{Changer, Control, Fencing, MAX_AGE, Rules};
use heatsink_dynamo::{Code, Number, Operation};
use heatsink_env::{ManualEnv, RealEnv};
use heatsink_layout::{By, Hash, Layout, SortKey, Strategy, codec, number_codec};
use heatsink_store::Store;
use heatsink_workers::{Adoption, AdoptionOptions, AdoptionReport, Direction, Phase, Progress, WorkerError};
use serde_json::{Value as Json, json};

#[derive(Default)]
struct Phases(Mutex<Vec<Phase>>);

impl Progress for Phases {
    fn phase(&self, phase: Phase, _: Option<u64>) {
        self.0.lock().unwrap().push(phase);
    }
}

const OPTIONS: AdoptionOptions = AdoptionOptions { concurrency: 1, exclusive: true };
const TABLE: &str = "Board";
const SHARDS: u16 = 3;

fn rules() -> Rules {
    calculated("*", "game*", SHARDS)
}

async fn adopt(store: &Arc<dyn Store>, direction: Direction) -> Result<AdoptionReport, WorkerError> {
    adopt_with(store, direction, OPTIONS).await
}

async fn adopt_with(
    store: &Arc<dyn Store>,
    direction: Direction,
    options: AdoptionOptions,
) -> Result<AdoptionReport, WorkerError> {
    let adoption =
        Adoption::prepare(Arc::clone(store), Arc::new(RealEnv), &rules(), TABLE, direction).await?;
    adoption.run(options, &Phases::default()).await
}

/// Logical keys: plain, in the reserved form over one another so that homes and unmoved items
/// compete for the same keys, and keys that no rule names.
const KEYS: [&str; 7] = ["game", "game#~1", "game#~2", "game#~1#~0", "game#~1#~0#~2", "other", "other#~1"];
/// Together they fall into all shards.
const SORTS: [&str; 6] = ["1", "2", "3", "4", "5", "6"];

fn key(partition: &str, text: &str) -> Json {
    if partition == "B" { json!({ "B": BASE64.encode(text) }) } else { json!({ "S": text }) }
}

async fn filled(partition: &str) -> Arc<dyn Store> {
    let store = memory();
    call(&store, Operation::CreateTable, table(TABLE, partition)).await;
    let mut puts = Vec::new();
    for (at, name) in KEYS.iter().enumerate() {
        let sorts = [6, 3, 3, 3, 3].get(at).copied().unwrap_or(1);
        for sort in &SORTS[..sorts] {
            let item = json!({
                "pk": key(partition, name), "sk": { "S": sort }, "at": { "N": at.to_string() }, "name": { "S": name },
                "tags": { "SS": ["a", "b"] }, "more": { "M": { "list": { "L": [{ "NULL": true }, { "N": "1.5" }] } } },
            });
            puts.push(json!({ "PutRequest": { "Item": item } }));
        }
    }
    call(&*store, Operation::BatchWriteItem, json!({ "RequestItems": { TABLE: puts } })).await;
    store
}

/// Independent of adoption's own verification: every item lies where the codec and the hash put it.
fn assert_at_home(items: &[String]) {
    let layout = Layout {
        strategy: Strategy::calculated(By::SortKey),
        shards: SHARDS,
        hash: Hash::JumpXxh3,
        version: 1,
    };
    for text in items {
        let item: Json = serde_json::from_str(text).unwrap();
        let physical = match item["pk"]["B"].as_str() {
            Some(binary) => BASE64.decode(binary).unwrap(),
            None => item["pk"]["S"].as_str().unwrap().as_bytes().to_vec(),
        };
        let logical = item["name"]["S"].as_str().unwrap();
        let sort = item["sk"]["S"].as_str().unwrap();
        let shard = if logical.starts_with("game") { layout.shard_of(Some(SortKey::S(sort))) } else { 0 };
        assert_eq!(physical, codec::encode(logical.as_bytes(), shard).unwrap(), "{text}");
    }
}

#[tokio::test]
async fn every_item_comes_home_and_back_again() {
    for partition in ["S", "B"] {
        let store = filled(partition).await;
        let original = items(&store, TABLE).await;
        let report = adopt(&store, Direction::Adopt).await.unwrap();
        assert_eq!(report.items, u64::try_from(original.len()).unwrap());
        let adopted = items(&store, TABLE).await;
        assert_at_home(&adopted);
        let unmoved = adopted.iter().filter(|item| original.contains(item)).count();
        assert!(unmoved > 1 && unmoved < original.len(), "some homes are shard 0, others are not");

        let control = Control::start(Arc::clone(&store), Arc::new(RealEnv), rules()).await.unwrap();
        control.resolve(&[TABLE]).await.unwrap();
        assert!(adopt(&store, Direction::Adopt).await.unwrap().already);

        let back = adopt(&store, Direction::Back).await.unwrap();
        assert_eq!((back.items, &back.checksum), (report.items, &report.checksum));
        assert_eq!(items(&store, TABLE).await, original);
        assert!(matches!(adopt(&store, Direction::Back).await, Err(WorkerError::Usage(_))));
    }
}

/// A number in shard k has k in its last four digits; those without room stay where they are.
#[tokio::test]
async fn numbers_come_home_and_back_again() {
    const NUMBERS: [&str; 5] = ["0", "-12.5", "100", "0.0000001", "1E+20"];
    let rules = calculated("*", "*", SHARDS);
    let adopt = async |store: &Arc<dyn Store>, direction| {
        let adoption = Adoption::prepare(Arc::clone(store), Arc::new(RealEnv), &rules, TABLE, direction);
        adoption.await?.run(OPTIONS, &Phases::default()).await
    };
    let put = async |store: &Arc<dyn Store>, number: &str, sort: &str| {
        let item = json!({ "pk": { "N": number }, "sk": { "S": sort }, "name": { "S": number } });
        call(store, Operation::PutItem, json!({ "TableName": TABLE, "Item": item })).await;
    };
    let store = memory();
    call(&store, Operation::CreateTable, table(TABLE, "N")).await;
    for number in NUMBERS {
        for sort in SORTS {
            put(&store, number, sort).await;
        }
    }
    // A client's own number of that form has no place: nothing is moved.
    put(&store, "100.0000007095510009", "1").await;
    let original = items(&store, TABLE).await;
    let refused = adopt(&store, Direction::Adopt).await.unwrap_err().to_string();
    assert!(refused.contains("a number cannot be escaped"), "{refused}");
    assert_eq!(items(&store, TABLE).await, original);
    let own = json!({ "pk": { "N": "100.0000007095510009" }, "sk": { "S": "1" } });
    call(&store, Operation::DeleteItem, json!({ "TableName": TABLE, "Key": own })).await;

    let original = items(&store, TABLE).await;
    let report = adopt(&store, Direction::Adopt).await.unwrap();
    assert_eq!(report.items, 30);
    let adopted = items(&store, TABLE).await;
    let layout = Layout {
        strategy: Strategy::calculated(By::SortKey),
        shards: SHARDS,
        hash: Hash::JumpXxh3,
        version: 1,
    };
    let mut moved = 0;
    for text in &adopted {
        let item: Json = serde_json::from_str(text).unwrap();
        let name = Number::parse(item["name"]["S"].as_str().unwrap()).unwrap();
        let sort = item["sk"]["S"].as_str().unwrap();
        let has_room = number_codec::has_room(name.to_string().as_bytes());
        let shard = if has_room { layout.shard_of(Some(SortKey::S(sort))) } else { 0 };
        let suffix = number_codec::suffix(name.to_string().as_bytes(), shard).unwrap();
        let physical = Number::parse(item["pk"]["N"].as_str().unwrap()).unwrap();
        assert_eq!(physical.to_string(), format!("{name}{suffix}"), "{text}");
        moved += usize::from(shard > 0);
    }
    assert!(moved > 5, "{moved}");
    assert!(adopt(&store, Direction::Adopt).await.unwrap().already);
    let back = adopt(&store, Direction::Back).await.unwrap();
    assert_eq!((back.items, &back.checksum), (report.items, &report.checksum));
    assert_eq!(items(&store, TABLE).await, original);
}

/// The table's own keys.
struct Own;

impl Adopting for Own {
    const TABLE: &'static str = TABLE;

    async fn filled() -> Arc<dyn Store> {
        filled("S").await
    }

    async fn adopt(store: &Arc<dyn Store>, direction: Direction) -> Result<AdoptionReport, WorkerError> {
        adopt(store, direction).await
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_anywhere_it_goes_on() {
    killed_everywhere::<Own>(Direction::Adopt, Direction::Adopt, 40).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_anywhere_it_turns_back() {
    killed_everywhere::<Own>(Direction::Adopt, Direction::Back, 40).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_on_the_way_back_it_goes_on() {
    killed_everywhere::<Own>(Direction::Back, Direction::Back, 40).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_on_the_way_back_it_turns_again() {
    killed_everywhere::<Own>(Direction::Back, Direction::Adopt, 40).await;
}

/// The same where gateways may use the table, so that the items are counted once all have
/// acknowledged.
struct InUse;

impl Adopting for InUse {
    const TABLE: &'static str = TABLE;

    async fn filled() -> Arc<dyn Store> {
        let store = filled("S").await;
        let fencing = Fencing::exclusive(rules().fence());
        Changer::beside(Arc::clone(&store), Arc::new(RealEnv), fencing).freeze(false).await.unwrap();
        store
    }

    async fn adopt(store: &Arc<dyn Store>, direction: Direction) -> Result<AdoptionReport, WorkerError> {
        adopt_with(store, direction, AdoptionOptions { exclusive: false, ..OPTIONS }).await
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_anywhere_beside_gateways_it_turns_back() {
    killed_everywhere::<InUse>(Direction::Adopt, Direction::Back, 40).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_beside_gateways_on_the_way_back_it_turns_again() {
    killed_everywhere::<InUse>(Direction::Back, Direction::Adopt, 40).await;
}

#[tokio::test]
async fn a_table_half_moved_is_refused_and_one_adopted_is_served() {
    let store = filled("S").await;
    let env = ManualEnv::seeded(1);
    let control = Control::start(Arc::clone(&store), Arc::new(env.clone()), rules()).await.unwrap();
    assert_eq!(control.resolve(&[TABLE]).await.unwrap_err().code, Code::ValidationException);
    let dying: Arc<dyn Store> = Mortal::new(Arc::clone(&store), 20, false);
    adopt(&dying, Direction::Adopt).await.unwrap_err();
    env.advance(MAX_AGE);
    let error = control.resolve(&[TABLE]).await.unwrap_err();
    assert!(error.retryable(), "{error}");
    assert!(error.message.unwrap().starts_with("Table Board is being brought under its rules"));
    adopt(&store, Direction::Adopt).await.unwrap();
    env.advance(MAX_AGE);
    control.resolve(&[TABLE]).await.unwrap();
}

#[tokio::test]
async fn what_cannot_move_is_found_before_anything_moves() {
    let store = filled("S").await;
    let long = format!("game{}", "x".repeat(2_044));
    // Those in shard 0 can stay as they are; the others cannot move.
    for sort in SORTS {
        let big = json!({ "pk": { "S": "game_big" }, "sk": { "S": sort }, "name": { "S": "b".repeat(400 * 1024 - 17) } });
        call(&store, Operation::PutItem, json!({ "TableName": TABLE, "Item": big })).await;
        call(
            &store,
            Operation::PutItem,
            json!({ "TableName": TABLE, "Item": { "pk": { "S": long }, "sk": { "S": sort } } }),
        )
        .await;
    }
    let adoption =
        Adoption::prepare(Arc::clone(&store), Arc::new(RealEnv), &rules(), TABLE, Direction::Adopt)
            .await
            .unwrap();
    let progress = Phases::default();
    let error = adoption.run(OPTIONS, &progress).await.unwrap_err().to_string();
    assert!(
        error.contains("cannot be moved; nothing was moved")
            && error.contains("2048 bytes")
            && error.contains("of at most 409600"),
        "{error}"
    );
    assert_eq!(*progress.0.lock().unwrap(), [Phase::Looking]);
    assert!(
        matches!(adopt(&store, Direction::Back).await, Err(WorkerError::Usage(_))),
        "nothing is on record"
    );
}

#[tokio::test]
async fn somebody_else_who_writes_is_found_out() {
    let store = filled("S").await;
    let dying: Arc<dyn Store> = Mortal::new(Arc::clone(&store), 30, false);
    adopt(&dying, Direction::Adopt).await.unwrap_err();
    call(&store, Operation::PutItem, json!({ "TableName": TABLE, "Item": { "pk": { "S": "game" }, "sk": { "S": "new" }, "name": { "S": "game" } } })).await;
    let WorkerError::Stopped(said) = adopt(&store, Direction::Adopt).await.unwrap_err() else {
        panic!("it is no failure of the store")
    };
    assert!(said.contains("Somebody else wrote to the table meanwhile"), "{said}");
    adopt(&store, Direction::Adopt).await.unwrap();
    assert_at_home(&items(&store, TABLE).await);
}
