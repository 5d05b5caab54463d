//! Verification: every kind of fault is found by its name, nothing else is, and a repair brings
//! back what it can without a loss.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::adoption::support::{Mortal, calculated, call, items, kills, memory, table};
use heatsink_control::registry::Registry;
use heatsink_control::{Control, KeyRecord, Move, REGISTRY, Rules, TableLayouts};
use heatsink_dynamo::Operation;
use heatsink_env::{Env, HastyEnv, ManualEnv, RealEnv};
use heatsink_layout::{
    Bucket, By, DIRECTORY, Granularity, Hash, Layout, Phase as Travelled, SortKey, Strategy,
};
use heatsink_store::Store;
use heatsink_workers::verify::{Class, Findings, Repaired, Verification, VerifyError};
use heatsink_workers::{Adoption, AdoptionOptions, Direction, Unwatched};
use serde_json::{Value as Json, json};

const OPTIONS: AdoptionOptions = AdoptionOptions { concurrency: 4, exclusive: true };
const TABLE: &str = "Board";

async fn verification(store: &Arc<dyn Store>, key: Option<&str>) -> Result<Verification, VerifyError> {
    Verification::prepare(Arc::clone(store), Arc::new(RealEnv), TABLE, key, REGISTRY).await
}

async fn look(store: &Arc<dyn Store>, key: Option<&str>) -> Findings {
    verification(store, key).await.unwrap().look(None, &Unwatched).await.unwrap()
}

async fn repair(store: &Arc<dyn Store>) -> (Repaired, Findings) {
    verification(store, None).await.unwrap().repair(None, &Unwatched).await.unwrap()
}

async fn put(store: &Arc<dyn Store>, item: Json) {
    call(store, Operation::PutItem, json!({ "TableName": TABLE, "Item": item })).await;
}

fn counts(findings: &Findings) -> Vec<(Class, u64)> {
    let counted = Class::ALL.into_iter().map(|class| (class, findings.counts.of(class)));
    counted.filter(|(_, count)| *count > 0).collect()
}

/// A table on record under rules, with an item for each sort key of a day and one of no rule.
async fn recorded(rules: &str) -> Arc<dyn Store> {
    let store = memory();
    call(&store, Operation::CreateTable, table(TABLE, "S")).await;
    for at in 0..24 {
        put(&store, json!({ "pk": { "S": "game" }, "sk": { "S": format!("2026-06-22T{at:02}") }, "at": { "N": at.to_string() } })).await;
    }
    put(&store, json!({ "pk": { "S": "other" }, "sk": { "S": "x" } })).await;
    let rules = Rules::read("rules", rules).unwrap();
    let adoption = Adoption::prepare(Arc::clone(&store), Arc::new(RealEnv), &rules, TABLE, Direction::Adopt)
        .await
        .unwrap();
    adoption.run(OPTIONS, &Unwatched).await.unwrap();
    store
}

fn rule(strategy: &str) -> String {
    format!("[[rule]]\ntable = \"{TABLE}\"\nkeys = \"game*\"\n{strategy}\n")
}

const CALCULATED: &str = "strategy = \"calculated\"\nshards = 4";

/// An item under a physical key that is not its own: the key, and its place.
async fn misplaced_one(store: &Arc<dyn Store>) -> (Json, Json) {
    let moved: Json = items(store, TABLE)
        .await
        .iter()
        .map(|text| serde_json::from_str::<Json>(text).unwrap())
        .find(|item| item["pk"]["S"].as_str().unwrap().starts_with("game#~"))
        .unwrap();
    let mut raw = moved.clone();
    raw["pk"] = json!({ "S": "game" });
    (raw, moved)
}

async fn delete(store: &Arc<dyn Store>, item: &Json) {
    let key = json!({ "pk": item["pk"], "sk": item["sk"] });
    call(store, Operation::DeleteItem, json!({ "TableName": TABLE, "Key": key })).await;
}

#[tokio::test]
async fn a_table_in_order_has_no_findings_whatever_its_rule() {
    for strategy in [
        CALCULATED,
        "strategy = \"bucket\"\nbucket = \"hour\"\nshards = 2",
        "strategy = \"template\"\ntemplate = \"{pk}#{shard}\"\nhash = \"md5\"\nshards = 5",
        "strategy = \"random\"\nshards = 3",
    ] {
        let store = recorded(&rule(strategy)).await;
        let found = look(&store, None).await;
        assert_eq!(
            (found.items, found.in_order, counts(&found)),
            (25, 25, Vec::new()),
            "{strategy}: {found:?}"
        );
        // One key has the same items, in all its shards and buckets.
        let of_key = look(&store, Some("game")).await;
        assert_eq!((of_key.items, of_key.in_order, counts(&of_key)), (24, 24, Vec::new()), "{strategy}");
        let before = items(&store, TABLE).await;
        let (repaired, _) = repair(&store).await;
        assert_eq!(repaired, Repaired::default());
        assert_eq!(items(&store, TABLE).await, before);
    }
}

#[tokio::test]
async fn misplaced_items_are_found_and_moved() {
    let store = recorded(&rule(CALCULATED)).await;
    let before = items(&store, TABLE).await;
    let (raw, moved) = misplaced_one(&store).await;
    delete(&store, &moved).await;
    put(&store, raw.clone()).await;
    let found = look(&store, None).await;
    assert_eq!(counts(&found), [(Class::Misplaced, 1)]);
    assert_eq!((found.items, found.in_order), (25, 24));
    let [finding] = &found.findings[..] else { panic!("one is listed") };
    assert_eq!(finding.item, json!({ "pk": raw["pk"], "sk": raw["sk"] }));
    assert_eq!(finding.place, Some(json!({ "pk": moved["pk"], "sk": moved["sk"] })));
    assert_eq!(counts(&look(&store, Some("game")).await), [(Class::Misplaced, 1)]);
    let (repaired, left) = repair(&store).await;
    assert_eq!((repaired.moved, counts(&left)), (1, Vec::new()));
    assert_eq!(items(&store, TABLE).await, before);
}

#[tokio::test]
async fn equal_doubles_are_deleted_and_different_ones_never_touched() {
    let store = recorded(&rule(CALCULATED)).await;
    let before = items(&store, TABLE).await;
    let (raw, _) = misplaced_one(&store).await;
    put(&store, raw.clone()).await;
    assert_eq!(counts(&look(&store, None).await), [(Class::DoubledEqual, 1)]);
    let (repaired, left) = repair(&store).await;
    assert_eq!((repaired.deleted, counts(&left)), (1, Vec::new()));
    assert_eq!(items(&store, TABLE).await, before);

    let mut other = raw;
    other["at"] = json!({ "N": "-1" });
    other["name"] = json!({ "S": "x" });
    put(&store, other).await;
    let with_both = items(&store, TABLE).await;
    let found = look(&store, None).await;
    assert_eq!(counts(&found), [(Class::DoubledDifferent, 1)]);
    assert!(found.findings[0].detail.contains("differs in at, name"), "{found:?}");
    let (repaired, left) = repair(&store).await;
    assert_eq!((repaired, counts(&left)), (Repaired::default(), vec![(Class::DoubledDifferent, 1)]));
    assert_eq!(items(&store, TABLE).await, with_both);
}

#[tokio::test]
async fn foreign_keys_are_listed_and_left() {
    let store = recorded(&rule(CALCULATED)).await;
    for key in ["game#~4", "game#~77", "other#~1"] {
        put(&store, json!({ "pk": { "S": key }, "sk": { "S": "x" } })).await;
    }
    let before = items(&store, TABLE).await;
    let (repaired, left) = repair(&store).await;
    assert_eq!((repaired.wrote(), counts(&left)), (0, vec![(Class::Foreign, 3)]));
    assert_eq!(items(&store, TABLE).await, before);
}

#[tokio::test]
async fn index_keys_in_another_form_are_rewritten() {
    let index = format!(
        "[[rule]]\ntable = \"{TABLE}\"\nindex = \"by-kind\"\nstrategy = \"calculated\"\nshards = 4\n"
    );
    let store = memory();
    let mut definition = table(TABLE, "S");
    definition["AttributeDefinitions"]
        .as_array_mut()
        .unwrap()
        .push(json!({ "AttributeName": "kind", "AttributeType": "S" }));
    definition["GlobalSecondaryIndexes"] = json!([{
        "IndexName": "by-kind", "Projection": { "ProjectionType": "ALL" },
        "KeySchema": [{ "AttributeName": "kind", "KeyType": "HASH" }],
    }]);
    call(&store, Operation::CreateTable, definition).await;
    for at in 0..20 {
        put(&store, json!({ "pk": { "S": "game" }, "sk": { "S": at.to_string() }, "kind": { "S": "open" } }))
            .await;
    }
    let rules = Rules::read("rules", &format!("{}{index}", rule(CALCULATED))).unwrap();
    for _ in 0..2 {
        let adoption =
            Adoption::prepare(Arc::clone(&store), Arc::new(RealEnv), &rules, TABLE, Direction::Adopt)
                .await
                .unwrap();
        adoption.run(OPTIONS, &Unwatched).await.unwrap();
    }
    let before = items(&store, TABLE).await;
    assert_eq!(counts(&look(&store, None).await), []);
    // Written by a client that bypasses Heatsink: one at its place, one elsewhere, both with plain
    // values; and a shard that there is not.
    let all: Vec<Json> = before.iter().map(|text| serde_json::from_str(text).unwrap()).collect();
    let spread: Vec<&Json> =
        all.iter().filter(|item| item["kind"]["S"] != "open" && item["pk"]["S"] != "game").take(3).collect();
    for (at, item) in spread.iter().enumerate() {
        let mut raw = (*item).clone();
        raw["kind"] = json!({ "S": if at == 2 { "open#~9" } else { "open" } });
        if at == 1 {
            delete(&store, item).await;
            raw["pk"] = json!({ "S": "game" });
        }
        put(&store, raw).await;
    }
    assert_eq!(
        counts(&look(&store, None).await),
        [(Class::Misplaced, 1), (Class::Foreign, 1), (Class::IndexKey, 1)]
    );
    let (repaired, left) = repair(&store).await;
    assert_eq!((repaired.moved, repaired.rewritten), (1, 2), "what was moved is looked at again");
    assert_eq!(counts(&left), [(Class::Foreign, 1)]);
    put(&store, spread[2].clone()).await;
    assert_eq!(items(&store, TABLE).await, before);
}

#[tokio::test]
async fn a_bucket_that_is_not_listed_is_entered() {
    let store = recorded(&rule("strategy = \"bucket\"\nbucket = \"hour\"\nshards = 2")).await;
    let rows = items(&store, DIRECTORY).await;
    let row: Json = serde_json::from_str(&rows[3]).unwrap();
    call(&store, Operation::DeleteItem, json!({ "TableName": DIRECTORY, "Key": row })).await;
    assert_eq!(counts(&look(&store, None).await), [(Class::UnlistedBucket, 1)]);
    let (repaired, left) = repair(&store).await;
    assert_eq!((repaired.entered, counts(&left)), (1, Vec::new()));
    assert_eq!(items(&store, DIRECTORY).await, rows);
}

#[tokio::test]
async fn parts_of_counters_belong_to_their_base_fragment() {
    let store = memory();
    call(&store, Operation::CreateTable, table(TABLE, "S")).await;
    let rules =
        Rules::read("rules", &rule("strategy = \"counter\"\nattributes = [\"votes\"]\nshards = 3")).unwrap();
    let control = Control::start(Arc::clone(&store), Arc::new(RealEnv), rules).await.unwrap();
    control.resolve(&[TABLE]).await.unwrap();
    for (key, sort) in [("game", "a"), ("game#~1", "a"), ("game#~2", "a"), ("game#~2", "gone")] {
        put(&store, json!({ "pk": { "S": key }, "sk": { "S": sort }, "votes": { "N": "1" } })).await;
    }
    let found = look(&store, None).await;
    assert_eq!((found.items, found.parts, found.in_order), (1, 3, 3));
    assert_eq!(counts(&found), [(Class::OrphanedPart, 1)]);
    assert_eq!(found.findings[0].place, Some(json!({ "pk": { "S": "game" }, "sk": { "S": "gone" } })));
}

#[tokio::test]
async fn what_a_client_writes_meanwhile_wins() {
    // The client puts another item at the place just before the repair's write arrives, or deletes
    // the misplaced one.
    struct Client(Arc<dyn Store>, Json);
    impl Store for Client {
        fn call(
            &self,
            operation: Operation,
            body: bytes::Bytes,
        ) -> futures::future::BoxFuture<'_, Result<bytes::Bytes, heatsink_dynamo::Error>> {
            Box::pin(async move {
                let moves = operation == Operation::TransactWriteItems
                    && String::from_utf8_lossy(&body).contains("\"TableName\":\"Board\"");
                if moves {
                    put(&self.0, self.1.clone()).await;
                }
                self.0.call(operation, body).await
            })
        }
    }
    let store = recorded(&rule(CALCULATED)).await;
    let (raw, moved) = misplaced_one(&store).await;
    delete(&store, &moved).await;
    put(&store, raw).await;
    let mut newer = moved.clone();
    newer["at"] = json!({ "N": "99" });
    let client: Arc<dyn Store> = Arc::new(Client(store.clone(), newer.clone()));
    let (repaired, left) = repair(&client).await;
    assert_eq!((repaired.moved, repaired.left, counts(&left)), (0, 1, vec![(Class::DoubledDifferent, 1)]));
    assert!(items(&store, TABLE).await.contains(&newer.to_string()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_anywhere_a_repair_loses_and_doubles_nothing() {
    let spoilt = async || {
        let store = recorded(&rule(CALCULATED)).await;
        let good = items(&store, TABLE).await;
        let all: Vec<Json> = good.iter().map(|text| serde_json::from_str(text).unwrap()).collect();
        for (at, item) in
            all.iter().filter(|item| item["pk"]["S"].as_str().unwrap().contains("#~")).take(6).enumerate()
        {
            let mut raw = item.clone();
            raw["pk"] = json!({ "S": "game" });
            put(&store, raw).await;
            if at % 2 == 0 {
                delete(&store, item).await;
            }
        }
        (store, good)
    };
    for acts in [false, true] {
        for at in kills(acts) {
            let (store, good) = spoilt().await;
            let dying: Arc<dyn Store> = Mortal::new(Arc::clone(&store), at, acts);
            let killed = match verification(&dying, None).await {
                Ok(ready) => ready.repair(None, &Unwatched).await.map(|_| ()),
                Err(error) => Err(error),
            };
            let (_, left) = repair(&store).await;
            assert_eq!(counts(&left), [], "killed at call {at} ({acts})");
            assert_eq!(items(&store, TABLE).await, good, "killed at call {at} ({acts})");
            if killed.is_ok() {
                assert!(at > 20, "the run makes {at} calls");
                break;
            }
        }
    }
}

#[tokio::test]
async fn it_reads_no_faster_than_it_may() {
    let store = recorded(&rule(CALCULATED)).await;
    let env = ManualEnv::seeded(1);
    let counted = Mortal::immortal(store.clone());
    let counting: Arc<dyn Store> = counted.clone();
    let ready = Verification::prepare(counting, Arc::new(HastyEnv(env.clone())), TABLE, None, REGISTRY)
        .await
        .unwrap();
    let (began, before) = (env.now(), counted.calls.load(Ordering::SeqCst));
    let found = ready.look(Some(5), &Unwatched).await.unwrap();
    assert_eq!(found.in_order, 25);
    // 25 items at 5 a second: what comes last needs no wait after it.
    let took = env.now().since(began);
    assert!(took >= Duration::from_millis(4_800) && took <= Duration::from_secs(5), "{took:?}");
    assert!(counted.calls.load(Ordering::SeqCst) - before >= 25, "its pages are small");
}

#[tokio::test]
async fn what_cannot_be_verified_is_said() {
    let store = memory();
    assert!(
        matches!(verification(&store, None).await, Err(VerifyError::Usage(said)) if said.contains("no table"))
    );
    call(&store, Operation::CreateTable, table(TABLE, "S")).await;
    put(&store, json!({ "pk": { "S": "game" }, "sk": { "S": "1" } })).await;
    assert!(
        matches!(verification(&store, None).await, Err(VerifyError::NotRecorded(said)) if said.contains("not on record"))
    );
    for at in 2..9 {
        put(&store, json!({ "pk": { "S": "game" }, "sk": { "S": at.to_string() } })).await;
    }
    // In the middle of an adoption.
    let dying: Arc<dyn Store> = Mortal::new(Arc::clone(&store), 20, false);
    let adoption =
        Adoption::prepare(dying, Arc::new(RealEnv), &calculated(TABLE, "*", 4), TABLE, Direction::Adopt)
            .await
            .unwrap();
    adoption.run(OPTIONS, &Unwatched).await.unwrap_err();
    assert!(
        matches!(verification(&store, None).await, Err(VerifyError::Usage(said)) if said.contains("in the middle"))
    );
}

/// The record of the key `game`, which goes from one layout to another.
fn key_record(layout: Layout, to: Layout, phase: Travelled) -> KeyRecord {
    let (reserved_before, reserved) = (layout.shards, to.shards);
    let moves =
        Move { to, phase, reserved_before, closing: false, expires: None, marks: false, high_water: None };
    KeyRecord {
        key: b"game".to_vec(),
        key_type: heatsink_dynamo::KeyType::S,
        layout,
        moves: Some(moves),
        settled: false,
        reserved,
        version: 1,
        changed: 0,
        since: 0,
    }
}

/// A key on its way from one shard to four, in that phase: of its items some have moved, some have
/// not, and some have left a copy behind. Gives how many of each.
async fn on_its_way(phase: Travelled) -> (Arc<dyn Store>, [u64; 3]) {
    let store = memory();
    call(&store, Operation::CreateTable, table(TABLE, "S")).await;
    let registry = Registry::new(Arc::clone(&store), Arc::new(RealEnv), REGISTRY);
    let described = registry.describe(TABLE).await.unwrap().unwrap();
    let first = registry.first_record(&described, TableLayouts::default(), true);
    let record = registry.create(None, &first).await.unwrap();
    let layout = |shards| Layout {
        strategy: if shards == 1 { Strategy::None } else { Strategy::calculated(By::SortKey) },
        shards,
        hash: Hash::JumpXxh3,
        version: 1,
    };
    let key = key_record(layout(1), layout(4), phase);
    registry.replace_key(&record, None, &key).await.unwrap().unwrap();
    let mut counts = [0; 3];
    for nth in 0..90_u64 {
        let sort = format!("{nth:03}");
        let shard = layout(4).slot_of(Some(SortKey::S(&sort))).unwrap().shard;
        let item = |shard: u16| {
            let key = if shard == 0 { "game".to_owned() } else { format!("game#~{shard}") };
            json!({ "pk": { "S": key }, "sk": { "S": sort } })
        };
        let (old, new) = match nth % 3 {
            0 => (true, false),
            1 => (false, true),
            _ => (true, true),
        };
        if shard > 0 {
            counts[usize::try_from(nth % 3).unwrap()] += 1;
        }
        if old || shard == 0 {
            put(&store, item(0)).await;
        }
        if new {
            put(&store, item(shard)).await;
        }
    }
    put(&store, json!({ "pk": { "S": "other" }, "sk": { "S": "x" } })).await;
    (store, counts)
}

#[tokio::test]
async fn nothing_is_repaired_while_buckets_to_come_get_other_shards() {
    let store = recorded(&rule("strategy = \"bucket\"\nbucket = \"hour\"\nshards = 2")).await;
    let registry = Registry::new(Arc::clone(&store), Arc::new(RealEnv), REGISTRY);
    let described = registry.describe(TABLE).await.unwrap().unwrap();
    let record = registry.read(&described.schema.id).await.unwrap().unwrap();
    let layout = Layout::clone(record.layouts.of(b"game").unwrap());
    let later = Bucket::at(2_000_000_000, Granularity::Hour).unwrap();
    let stepped = layout.stepped(later, 4).unwrap();
    let key = key_record(layout, stepped, Travelled::Prepare);
    registry.replace_key(&record, None, &key).await.unwrap().unwrap();
    let before = items(&store, TABLE).await;
    let refused = verification(&store, None).await.unwrap().repair(None, &Unwatched).await.unwrap_err();
    assert!(
        matches!(&refused, VerifyError::Usage(why) if why.contains("Buckets to come of a key of table Board")),
        "{refused}"
    );
    assert_eq!(items(&store, TABLE).await, before);
    assert_eq!(look(&store, None).await.in_order, 25);
}

#[tokio::test]
async fn a_key_on_its_way_is_walked_in_both_layouts_and_each_item_counts_once() {
    let (store, [old, _, both]) = on_its_way(Travelled::Move).await;
    for (key, items) in [(None, 91), (Some("game"), 90)] {
        let found = look(&store, key).await;
        assert_eq!((found.items, found.in_order, found.wrong()), (items, items, 0), "{found:?}");
        assert_eq!((found.on_the_way, found.old_copies), (old, both));
    }
    let refused = verification(&store, None).await.unwrap().repair(None, &Unwatched).await.unwrap_err();
    assert!(refused.to_string().contains("is being moved"), "{refused}");
    // In a shard that neither layout gives it; once with a free place, once beside the item.
    let layout =
        Layout { strategy: Strategy::calculated(By::SortKey), shards: 4, hash: Hash::JumpXxh3, version: 1 };
    let slot = |sort: &str| layout.slot_of(Some(SortKey::S(sort))).unwrap().shard;
    let third = |sort: &str| (1..4).find(|shard| *shard != slot(sort)).unwrap();
    for sort in ["free", "001"] {
        put(&store, json!({ "pk": { "S": format!("game#~{}", third(sort)) }, "sk": { "S": sort } })).await;
    }
    for key in [None, Some("game")] {
        let found = look(&store, key).await;
        assert_eq!(counts(&found), [(Class::Misplaced, 1), (Class::DoubledEqual, 1)], "{found:?}");
    }
}

#[tokio::test]
async fn before_check_items_lie_where_the_old_layout_puts_them() {
    let (store, [_, new, both]) = on_its_way(Travelled::Prepare).await;
    let found = look(&store, None).await;
    assert_eq!((found.on_the_way, found.old_copies), (0, 0));
    assert_eq!(counts(&found), [(Class::Foreign, new + both)], "{found:?}");
}

#[tokio::test]
async fn binary_keys_are_told_in_base64() {
    let store = memory();
    call(&store, Operation::CreateTable, table(TABLE, "B")).await;
    let item = |at: u32| json!({ "pk": { "B": "gP8=" }, "sk": { "S": at.to_string() }, "at": { "N": at.to_string() } });
    for at in 0..24 {
        put(&store, item(at)).await;
    }
    let rules = calculated(TABLE, "*", 4);
    let adoption = Adoption::prepare(Arc::clone(&store), Arc::new(RealEnv), &rules, TABLE, Direction::Adopt);
    adoption.await.unwrap().run(OPTIONS, &Unwatched).await.unwrap();
    assert_eq!(look(&store, Some("gP8=")).await.key.as_deref(), Some("gP8="));

    // Items that were written without a gateway lie under the whole key.
    let spread = items(&store, TABLE).await;
    let spread = spread.iter().map(|text| serde_json::from_str::<Json>(text).unwrap());
    let away: Vec<Json> = spread.filter(|item| item["pk"]["B"] != "gP8=").collect();
    for there in &away {
        let key = json!({ "pk": there["pk"], "sk": there["sk"] });
        call(&store, Operation::DeleteItem, json!({ "TableName": TABLE, "Key": key })).await;
        put(&store, item(there["sk"]["S"].as_str().unwrap().parse().unwrap())).await;
    }
    let findings = look(&store, None).await;
    assert!(!away.is_empty() && findings.findings.len() == away.len(), "{findings:?}");
    for finding in &findings.findings {
        let place = away.iter().find(|there| finding.detail.contains(there["pk"]["B"].as_str().unwrap()));
        assert!(place.is_some(), "{finding:?}");
    }
}
