//! Adoption of tables under templates: in, back to logical keys, in again with another shard count,
//! off the record with every item where it lies; killed at every call.

use std::sync::Arc;

use crate::adoption::support::{Adopting, calculated, call, items, killed_everywhere, memory, table};
use heatsink_control::{Control, Rules};
use heatsink_dynamo::Operation;
use heatsink_env::{Env, RealEnv};
use heatsink_store::Store;
use heatsink_workers::{
    Adoption, AdoptionOptions, AdoptionReport, Direction, RecipeObserver, Unwatched, WorkerError,
};
use serde_json::{Value as Json, json};

const OPTIONS: AdoptionOptions = AdoptionOptions { concurrency: 1, exclusive: true };
const TABLE: &str = "Events";

/// What Python's `zlib.crc32(f"e-{at}".encode()) % 10` gave.
const PYTHON_CRC32: [u16; 34] =
    [2, 6, 0, 0, 3, 9, 5, 7, 0, 4, 2, 0, 0, 4, 9, 1, 1, 5, 2, 6, 9, 3, 7, 1, 4, 6, 2, 6, 5, 7, 2, 2, 0, 0];

/// What Python's `int(hashlib.md5(event.encode()).hexdigest(), 16) % 10` gave for these; modulo 5
/// and 2 follow from it.
const PYTHON: [(&str, u16); 5] =
    [("event-67890", 9), ("player_7", 5), ("a", 7), ("1718000000", 2), ("12.5", 3)];

fn rules(hash: &str, shards: u16) -> Rules {
    let text = format!(
        "[[rule]]\ntable = \"{TABLE}\"\nkeys = \"user-*\"\nstrategy = \"template\"\ntemplate = \"{{pk}}#{{shard}}\"\nhash = \"{hash}\"\nshards = {shards}\n"
    );
    Rules::read("rules", &text).unwrap()
}

async fn adopt(
    store: &Arc<dyn Store>,
    rules: &Rules,
    direction: Direction,
) -> Result<AdoptionReport, WorkerError> {
    let adoption = Adoption::prepare(Arc::clone(store), Arc::new(RealEnv), rules, TABLE, direction).await?;
    adoption.run(OPTIONS, &Unwatched).await
}

async fn put(store: &Arc<dyn Store>, pk: &str, sk: &str) {
    let item =
        json!({ "pk": { "S": pk }, "sk": { "S": sk }, "of": { "S": pk }, "tags": { "SS": ["a", "b"] } });
    call(store, Operation::PutItem, json!({ "TableName": TABLE, "Item": item })).await;
}

async fn filled() -> Arc<dyn Store> {
    let store = memory();
    call(&store, Operation::CreateTable, table(TABLE, "S")).await;
    for key in ["user-1", "user-2"] {
        for (sort, _) in PYTHON {
            put(&store, key, sort).await;
        }
    }
    // No rule names it, and no shard of one of the others is written so.
    put(&store, "config#3", "x").await;
    put(&store, "user-1#77", "y").await;
    store
}

fn parts(item: &str) -> (String, String) {
    let item: Json = serde_json::from_str(item).unwrap();
    (item["pk"]["S"].as_str().unwrap().to_owned(), item["sk"]["S"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn under_one_shard_count_back_and_under_another() {
    let store = filled().await;
    let original = items(&store, TABLE).await;
    let mut checksum = None;
    for shards in [10, 5, 2] {
        let report = adopt(&store, &rules("md5", shards), Direction::Adopt).await.unwrap();
        assert_eq!((report.items, report.moved), (12, 11));
        for item in items(&store, TABLE).await {
            let (pk, sk) = parts(&item);
            if let Some((_, shard)) = PYTHON.iter().find(|(sort, _)| *sort == sk) {
                assert!(pk.ends_with(&format!("#{}", shard % shards)), "{pk} {sk}");
            }
        }
        let back = adopt(&store, &Rules::default(), Direction::Back).await.unwrap();
        assert_eq!((back.items, back.moved, &back.checksum), (12, 11, &report.checksum));
        assert_eq!(items(&store, TABLE).await, original);
        assert_eq!(*checksum.get_or_insert(report.checksum.clone()), report.checksum);
    }
}

#[tokio::test]
async fn released_it_stays_as_its_own_code_wrote_it() {
    let store = filled().await;
    adopt(&store, &rules("md5", 10), Direction::Adopt).await.unwrap();
    let sharded = items(&store, TABLE).await;
    let report = adopt(&store, &Rules::default(), Direction::Release).await.unwrap();
    assert_eq!((report.items, report.moved), (12, 0));
    assert_eq!(items(&store, TABLE).await, sharded);
    let Err(WorkerError::Usage(said)) = adopt(&store, &Rules::default(), Direction::Release).await else {
        panic!("it is on record")
    };
    assert!(said.contains("not on record"), "{said}");
    // What its own code wrote is adopted where it lies.
    assert_eq!(adopt(&store, &rules("md5", 10), Direction::Adopt).await.unwrap().moved, 0);
}

#[tokio::test]
async fn only_templates_can_be_released() {
    let store = filled().await;
    adopt(&store, &calculated(TABLE, "user*", 3), Direction::Adopt).await.unwrap();
    let Err(WorkerError::Usage(said)) = adopt(&store, &Rules::default(), Direction::Release).await else {
        panic!("released")
    };
    assert!(said.contains("--back alone"), "{said}");
}

/// Two items that would meet, or one that would be taken for another's shard, are found before
/// anything moves.
#[tokio::test]
async fn what_cannot_go_back_is_found_before_anything_moves() {
    for (random, pk, sk, why) in [
        (true, "user-1#8", "a", "another item with its sort key goes to \"user-1\" too"),
        (false, "user-1#2#7", "a", "\"user-1#2\" would be read as a shard of another key"),
    ] {
        let rules = rules(if random { "random" } else { "md5" }, 10);
        let store = filled().await;
        adopt(&store, &rules, Direction::Adopt).await.unwrap();
        for shard in [3, 7] {
            put(&store, &format!("user-1#{shard}"), "a").await;
        }
        put(&store, pk, sk).await;
        let before = items(&store, TABLE).await;
        let Err(WorkerError::Stopped(said)) = adopt(&store, &rules, Direction::Back).await else {
            panic!("moved")
        };
        assert!(said.contains(why) && said.contains("nothing was moved"), "{said}");
        assert_eq!(items(&store, TABLE).await, before);
    }
}

/// The plain key and the shard that its item belongs to both hold it: from before and after the
/// table's own code began to shard.
#[tokio::test]
async fn two_items_for_one_place_are_found_before_anything_moves() {
    let store = filled().await;
    put(&store, "user-1#7", "a").await;
    let before = items(&store, TABLE).await;
    let Err(WorkerError::Stopped(said)) = adopt(&store, &rules("md5", 10), Direction::Adopt).await else {
        panic!("adopted")
    };
    assert!(said.contains("another item with its sort key goes to \"user-1#7\" too"), "{said}");
    assert_eq!(items(&store, TABLE).await, before);
}

/// Shards that the rule says are assigned at random, and that follow from the sort key: the recipe
/// is named, with the number of items. It is not where one item contradicts, nor where there are
/// too few.
#[tokio::test]
async fn assigned_shards_that_follow_from_the_key_are_found_out() {
    for (items, contradicts, found) in [(34, false, true), (34, true, false), (29, false, false)] {
        let store = memory();
        call(&store, Operation::CreateTable, table(TABLE, "S")).await;
        for (at, shard) in PYTHON_CRC32.iter().enumerate().take(items) {
            put(&store, &format!("user-1#{shard}"), &format!("e-{at}")).await;
        }
        if contradicts {
            put(&store, "user-1#0", "e-40").await;
        }
        let said = adopt(&store, &rules("random", 10), Direction::Adopt).await.unwrap().recipe;
        assert_eq!(said.is_some(), found, "{said:?}");
        if let Some(said) = said {
            assert!(said.contains("hash = \"crc32\"") && said.contains("each of 34 items"), "{said}");
        }
    }
}

/// The same of a table that is on record already, by its Scans: of that table, and of no other.
#[tokio::test]
async fn assigned_shards_that_follow_from_the_key_are_found_out_in_scans() {
    for (scanned, contradicts, found) in [(TABLE, false, true), (TABLE, true, false), ("Other", false, false)]
    {
        let store = memory();
        for name in [TABLE, "Other"] {
            call(&store, Operation::CreateTable, table(name, "S")).await;
        }
        for (at, shard) in PYTHON_CRC32.iter().enumerate() {
            put(&store, &format!("user-1#{shard}"), &format!("e-{at}")).await;
        }
        adopt(&store, &rules("random", 10), Direction::Adopt).await.unwrap();
        if contradicts {
            put(&store, "user-1#0", "e-40").await;
        }
        let env: Arc<dyn Env> = Arc::new(RealEnv);
        let control = Control::start(store.clone(), env, Rules::default()).await.unwrap();
        let observer = RecipeObserver::before(store);
        observer.observe(&control, TABLE).await.unwrap();
        assert_eq!(observer.advice(), None);
        let scan = json!({ "TableName": scanned, "Limit": 20 });
        let page = call(&(observer.clone() as Arc<dyn Store>), Operation::Scan, scan.clone()).await;
        if let Some(last) = page.get("LastEvaluatedKey") {
            let mut rest = scan;
            rest["ExclusiveStartKey"] = last.clone();
            call(&(observer.clone() as Arc<dyn Store>), Operation::Scan, rest).await;
        }
        let said = observer.advice();
        assert_eq!(said.is_some(), found, "{scanned}, {contradicts}: {said:?}");
        if let Some(said) = said {
            assert!(said.contains("hash = \"crc32\"") && said.contains("each of 34 items"), "{said}");
        }
    }
}

/// With a hash that follows from the sort key.
struct Computed;
/// With shards that other code draws.
struct Assigned;

impl Adopting for Computed {
    const TABLE: &'static str = TABLE;

    async fn filled() -> Arc<dyn Store> {
        filled().await
    }

    async fn adopt(store: &Arc<dyn Store>, direction: Direction) -> Result<AdoptionReport, WorkerError> {
        adopt(store, &rules("md5", 5), direction).await
    }
}

impl Adopting for Assigned {
    const TABLE: &'static str = TABLE;

    async fn filled() -> Arc<dyn Store> {
        filled().await
    }

    async fn adopt(store: &Arc<dyn Store>, direction: Direction) -> Result<AdoptionReport, WorkerError> {
        adopt(store, &rules("random", 5), direction).await
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_anywhere_it_goes_on() {
    killed_everywhere::<Computed>(Direction::Adopt, Direction::Adopt, 20).await;
    killed_everywhere::<Assigned>(Direction::Adopt, Direction::Adopt, 20).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_anywhere_it_turns_back() {
    killed_everywhere::<Computed>(Direction::Adopt, Direction::Back, 20).await;
    killed_everywhere::<Assigned>(Direction::Adopt, Direction::Back, 20).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_on_the_way_back_it_goes_on() {
    killed_everywhere::<Computed>(Direction::Back, Direction::Back, 20).await;
    killed_everywhere::<Assigned>(Direction::Back, Direction::Back, 20).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_on_the_way_back_it_turns_again() {
    killed_everywhere::<Computed>(Direction::Back, Direction::Adopt, 20).await;
    killed_everywhere::<Assigned>(Direction::Back, Direction::Adopt, 20).await;
}
