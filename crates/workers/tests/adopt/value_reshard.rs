//! One value of an index by itself: every item in its form and every other value byte for byte as
//! it was, killed at every call and run again, and what is refused.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::adoption::adopt_index::{filled, rules_with, step_by};
use crate::adoption::support::{Mortal, call, items, kills};
use heatsink_control::registry::Registry;
use heatsink_control::{Control, REGISTRY, Rules};
use heatsink_dynamo::Operation;
use heatsink_env::{ManualEnv, RealEnv};
use heatsink_layout::{LayoutSource, hash};
use heatsink_store::Store;
use heatsink_workers::{
    Direction, ReshardReport, Unwatched, ValueAsked, ValueOptions, ValueReshard, WorkerError,
};
use serde_json::{Value as Json, json};

const OPTIONS: ValueOptions =
    ValueOptions { concurrency: 1, exclusive: true, delay: Duration::ZERO, rate: u32::MAX };

async fn prepared(
    store: &Arc<dyn Store>,
    rules: &Rules,
    asked: ValueAsked<'_>,
) -> Result<ValueReshard, WorkerError> {
    ValueReshard::prepare(Arc::clone(store), Arc::new(RealEnv), rules, asked).await
}

async fn reshard(
    store: &Arc<dyn Store>,
    index: &str,
    value: &str,
    shards: u16,
) -> Result<ReshardReport, WorkerError> {
    let asked = ValueAsked { table: "Tasks", index, value, shards };
    let reshard = prepared(store, &Rules::default(), asked).await?;
    reshard.may_go(true).await?;
    reshard.run(OPTIONS, &Unwatched).await
}

async fn spread(store: &Arc<dyn Store>, shards: u16) -> Result<ReshardReport, WorkerError> {
    reshard(store, "by-status", "open", shards).await
}

/// The table of adoptions, with values that nobody may change: written like shards of another
/// value, of none, and like what is escaped elsewhere.
async fn with_others() -> Arc<dyn Store> {
    let store = filled().await;
    for (at, status) in ["done#~1", "open#~0", "open#~99", "open#~1#~0", "open#"].iter().enumerate() {
        let at = (100 + at).to_string();
        let item =
            json!({ "pk": { "S": "p" }, "sk": { "S": at }, "name": { "N": at }, "status": { "S": status } });
        call(store.as_ref(), Operation::PutItem, json!({ "TableName": "Tasks", "Item": item })).await;
    }
    store
}

/// The statuses by primary key.
async fn statuses(store: &Arc<dyn Store>) -> BTreeMap<(String, String), Option<String>> {
    let text = |item: &Json, name: &str| item[name]["S"].as_str().map(str::to_owned);
    let read = |text: &String| serde_json::from_str::<Json>(text).unwrap();
    let items: Vec<Json> = items(store.as_ref(), "Tasks").await.iter().map(read).collect();
    items
        .iter()
        .map(|item| ((text(item, "pk").unwrap(), text(item, "sk").unwrap()), text(item, "status")))
        .collect()
}

/// Where the hash puts `open`; everything else as it was. How many are not where they were.
async fn assert_spread(
    store: &Arc<dyn Store>,
    original: &BTreeMap<(String, String), Option<String>>,
    shards: u16,
) -> usize {
    let mut moved = 0;
    for ((pk, sk), status) in statuses(store).await {
        let mut expected = original[&(pk.clone(), sk.clone())].clone();
        if expected.as_deref() == Some("open") {
            let length = u32::try_from(pk.len()).unwrap().to_be_bytes();
            let shard = hash::jump_xxh3(&[&length[..], pk.as_bytes(), sk.as_bytes()].concat(), shards);
            if shard > 0 {
                expected = Some(format!("open#~{shard}"));
                moved += 1;
            }
        }
        assert_eq!(status, expected, "{pk} {sk}, {shards} shards");
    }
    moved
}

async fn record(store: &Arc<dyn Store>) -> Option<heatsink_control::Record> {
    let registry = Registry::new(Arc::clone(store), Arc::new(RealEnv), REGISTRY);
    registry.named("Tasks").await.unwrap().pop()
}

#[tokio::test]
async fn only_that_value_is_spread() {
    let store = with_others().await;
    let before = items(store.as_ref(), "Tasks").await;
    let original = statuses(&store).await;
    for shards in [4, 16, 7, 2] {
        let report = spread(&store, shards).await.unwrap();
        assert_eq!(report.to, shards);
        let moved = assert_spread(&store, &original, shards).await;
        assert!(moved > 1 && report.moved > 0, "{report:?}");
        let known = record(&store).await.unwrap();
        assert_eq!(
            (known.values.len(), known.values[0].shards, &known.values[0].former[..]),
            (1, shards, &[][..])
        );
        assert_eq!(spread(&store, shards).await.unwrap().moved, 0);
    }
    // Another one beside it.
    reshard(&store, "by-status", "open#", 3).await.unwrap();
    reshard(&store, "by-status", "open#", 1).await.unwrap();
    assert_spread(&store, &original, 2).await;
    spread(&store, 1).await.unwrap();
    assert_eq!(items(store.as_ref(), "Tasks").await, before);
    assert_eq!(record(&store).await, None, "nothing is left on record");
}

/// Killed at any call, it is taken over by a run that wants the same, by one that wants what was
/// before, and by one that wants something else.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_anywhere_it_is_taken_over() {
    for (from, to, then) in
        [(1, 4, 4), (1, 4, 1), (4, 9, 9), (4, 9, 2), (9, 4, 4), (9, 4, 1), (3, 1, 1), (3, 1, 5)]
    {
        for acts in [false, true] {
            for at in kills(acts) {
                let store = with_others().await;
                let original = statuses(&store).await;
                spread(&store, from).await.unwrap();
                let dying: Arc<dyn Store> = Mortal::new(Arc::clone(&store), at, acts);
                let killed = spread(&dying, to).await;
                // What a gateway shows in between is logical.
                let gateway =
                    Control::start(Arc::clone(&store), Arc::new(ManualEnv::seeded(1)), Rules::default());
                let gateway = gateway.await.unwrap();
                gateway.resolve(&["Tasks"]).await.unwrap();
                if let Some(table) = gateway.table("Tasks") {
                    let key = table.index_key("status").unwrap();
                    for (item, stored) in statuses(&store).await {
                        let logical = stored.as_deref().map(|stored| key.logical(stored.as_bytes()).to_vec());
                        assert_eq!(
                            logical,
                            original[&item].clone().map(String::into_bytes),
                            "{from} {to} {at}"
                        );
                    }
                }
                spread(&store, then)
                    .await
                    .unwrap_or_else(|error| panic!("{from} {to} {then}, killed at {at} ({acts}): {error}"));
                assert_spread(&store, &original, then).await;
                let known = record(&store).await;
                assert_eq!(known.is_none(), then == 1, "{from} {to} {then}, killed at {at} ({acts})");
                if killed.is_ok() {
                    assert!(at > 12, "the run makes {at} calls");
                    break;
                }
            }
        }
    }
}

/// An index with a sort key does not show items without it.
pub async fn sparse() -> Arc<dyn Store> {
    let store = crate::adoption::support::memory();
    let define = |(name, kind): (&str, &str)| json!({ "AttributeName": name, "AttributeType": kind });
    let key = |(name, kind): (&str, &str)| json!({ "AttributeName": name, "KeyType": kind });
    let table = json!({
        "TableName": "Tasks", "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": ([("pk", "S"), ("sk", "S"), ("status", "S"), ("at", "N"), ("count", "N"), ("raw", "B"), ("kind", "S")].map(define)),
        "KeySchema": ([("pk", "HASH"), ("sk", "RANGE")].map(key)),
        "GlobalSecondaryIndexes": [
            { "IndexName": "by-status", "Projection": { "ProjectionType": "KEYS_ONLY" }, "KeySchema": ([("status", "HASH"), ("at", "RANGE")].map(key)) },
            { "IndexName": "by-count", "Projection": { "ProjectionType": "ALL" }, "KeySchema": ([("count", "HASH")].map(key)) },
            { "IndexName": "by-raw", "Projection": { "ProjectionType": "ALL" }, "KeySchema": ([("raw", "HASH")].map(key)) },
            { "IndexName": "by-kind", "Projection": { "ProjectionType": "ALL" }, "KeySchema": ([("kind", "HASH")].map(key)) },
            { "IndexName": "inverted", "Projection": { "ProjectionType": "ALL" }, "KeySchema": ([("sk", "HASH"), ("kind", "RANGE")].map(key)) },
        ],
        "LocalSecondaryIndexes": [
            { "IndexName": "local", "Projection": { "ProjectionType": "ALL" }, "KeySchema": ([("pk", "HASH"), ("at", "RANGE")].map(key)) },
        ],
    });
    call(store.as_ref(), Operation::CreateTable, table).await;
    for at in 0..20 {
        let mut item = json!({ "pk": { "S": "p" }, "sk": { "S": at.to_string() }, "status": { "S": "open" }, "raw": { "B": "YQ==" } });
        if at % 2 == 0 {
            item["at"] = json!({ "N": at.to_string() });
        }
        call(store.as_ref(), Operation::PutItem, json!({ "TableName": "Tasks", "Item": item })).await;
    }
    store
}

#[tokio::test]
async fn what_the_index_does_not_show_keeps_its_form_and_is_known_by_it() {
    let store = sparse().await;
    let original = statuses(&store).await;
    for shards in [4, 9, 1] {
        spread(&store, shards).await.unwrap();
        let known = record(&store).await.unwrap();
        let former = &known.values[0].former;
        assert_eq!(
            former,
            &[1, 4, 9]
                .into_iter()
                .filter(|count| *count != shards && (*count < 9 || shards == 1))
                .collect::<Vec<_>>()
        );
        let gateway = Control::start(Arc::clone(&store), Arc::new(ManualEnv::seeded(1)), Rules::default())
            .await
            .unwrap();
        gateway.resolve(&["Tasks"]).await.unwrap();
        let table = gateway.table("Tasks").unwrap();
        let key = table.index_key("status").unwrap();
        assert!(key.is_mixed() && !key.is_migrating());
        for ((pk, sk), stored) in statuses(&store).await {
            let stored = stored.unwrap();
            if sk.parse::<u32>().unwrap() % 2 == 1 {
                assert_eq!(stored, "open", "it is in no index");
            }
            let primary = heatsink_layout::PrimaryKey {
                partition: heatsink_layout::SortKey::S(&pk),
                sort: Some(heatsink_layout::SortKey::S(&sk)),
            };
            assert!(key.forms(b"open", primary).contains(&stored.clone().into_bytes()), "{stored}");
            assert_eq!(key.logical(stored.as_bytes()), b"open");
        }
    }
    assert_eq!(statuses(&store).await, original);
    reshard(&store, "by-raw", "YQ==", 3).await.unwrap();
    reshard(&store, "by-raw", "YQ==", 1).await.unwrap();
}

#[tokio::test]
async fn a_clients_own_value_in_the_way_is_found_before_anything_is_rewritten() {
    let store = with_others().await;
    spread(&store, 2).await.unwrap();
    for (pk, status) in [("x", "open#~5"), ("y", "done#~1")] {
        let item =
            json!({ "pk": { "S": pk }, "sk": { "S": "0" }, "name": { "N": "0" }, "status": { "S": status } });
        call(store.as_ref(), Operation::PutItem, json!({ "TableName": "Tasks", "Item": item })).await;
    }
    let (before, known) = (items(store.as_ref(), "Tasks").await, record(&store).await);
    for (value, shards, own) in [("open", 6, "open#~5"), ("done", 2, "done#~1")] {
        let WorkerError::Stopped(said) = reshard(&store, "by-status", value, shards).await.unwrap_err()
        else {
            panic!("it is no failure of the store")
        };
        assert!(said.contains(own), "{said}");
    }
    assert_eq!((items(store.as_ref(), "Tasks").await, record(&store).await), (before, known));
    spread(&store, 5).await.unwrap();
}

#[tokio::test]
async fn what_cannot_be_resharded_is_refused_by_name() {
    let store = sparse().await;
    for (index, value, says) in [
        ("nowhere", "open", "no index nowhere"),
        ("local", "open", "is local"),
        ("by-count", "7", "is a number"),
        ("by-kind", "open", "sort key of the index inverted"),
        ("inverted", "open", "the table's sort key"),
        ("by-raw", "no base64!", "in base64"),
        ("by-status", "", "no empty value"),
        ("by-status", &"x".repeat(2046), "with its shard suffix 2049"),
    ] {
        match reshard(&store, index, value, 4).await {
            Err(WorkerError::Usage(said)) => assert!(said.contains(says), "{index}: {said}"),
            other => panic!("{index} {value:?}: {other:?}"),
        }
    }
    let asked = ValueAsked { table: "Other", index: "by-status", value: "open", shards: 4 };
    assert!(
        matches!(prepared(&store, &Rules::default(), asked).await, Err(WorkerError::Usage(said)) if said.contains("no table Other"))
    );

    // What rules spread rules change, and what is on record by value they leave alone.
    let store = with_others().await;
    let asked = ValueAsked { table: "Tasks", index: "by-status", value: "open", shards: 4 };
    let rules = rules_with(false, 3);
    assert!(
        matches!(prepared(&store, &rules, asked).await, Err(WorkerError::Usage(said)) if said.contains("heatsink adopt Tasks"))
    );
    spread(&store, 4).await.unwrap();
    for direction in [Direction::Adopt, Direction::Back] {
        let refused = step_by(&store, &rules, direction).await.unwrap_err().to_string();
        assert!(refused.contains("--index by-status --shards 1"), "{refused}");
    }
    // Its index goes: another one on the attribute brings it back.
    let drop_index = json!({ "TableName": "Tasks", "GlobalSecondaryIndexUpdates": [{ "Delete": { "IndexName": "by-status" } }] });
    call(store.as_ref(), Operation::UpdateTable, drop_index).await;
    let refused = spread(&store, 1).await.unwrap_err().to_string();
    assert!(refused.contains("the partition key status, under any name"), "{refused}");
    let index = json!({ "IndexName": "again", "Projection": { "ProjectionType": "ALL" }, "KeySchema": [{ "AttributeName": "status", "KeyType": "HASH" }] });
    let attributes = json!([{ "AttributeName": "status", "AttributeType": "S" }]);
    let update = json!({ "TableName": "Tasks", "AttributeDefinitions": attributes, "GlobalSecondaryIndexUpdates": [{ "Create": index }] });
    call(store.as_ref(), Operation::UpdateTable, update).await;
    reshard(&store, "again", "open", 3).await.unwrap();
    // One at a time.
    for at in 1..60 {
        let dying: Arc<dyn Store> = Mortal::new(Arc::clone(&store), at, true);
        let _ = reshard(&dying, "again", "open", 7).await;
        if record(&store).await.unwrap().values[0].migration.is_some() {
            break;
        }
    }
    let refused = reshard(&store, "again", "done", 2).await.unwrap_err().to_string();
    assert!(refused.contains("\"open\" of the index again is being resharded"), "{refused}");
    reshard(&store, "again", "open", 3).await.unwrap();
    let refused = reshard(&store, "again", "open#~2", 3).await.unwrap_err().to_string();
    assert!(refused.contains("is a shard of the value"), "{refused}");
}

#[tokio::test]
async fn so_many_values_are_on_record_and_no_more() {
    let store = with_others().await;
    for at in 0..heatsink_layout::MAX_VALUE_LAYOUTS {
        reshard(&store, "by-status", &format!("value {at}"), 2).await.unwrap();
    }
    let refused = reshard(&store, "by-status", "one more", 2).await.unwrap_err();
    assert!(matches!(&refused, WorkerError::Usage(said) if said.contains("100 values")), "{refused}");
    reshard(&store, "by-status", "value 7", 3).await.unwrap();
    reshard(&store, "by-status", "value 7", 1).await.unwrap();
    reshard(&store, "by-status", "one more", 2).await.unwrap();
}

/// The record has a form that older builds refuse, and says so where it cannot be read.
#[tokio::test]
async fn older_builds_do_not_read_the_record() {
    let store = with_others().await;
    spread(&store, 4).await.unwrap();
    let found = items(store.as_ref(), REGISTRY).await;
    let text = found.iter().find(|item| item.contains("by-status")).unwrap();
    let good: Json = serde_json::from_str(text).unwrap();
    assert_eq!(good["form"]["N"], "5");
    for (change, says) in [
        ("form", "written by another version"),
        ("values", "damaged"),
        ("shards", "another version"),
        ("keys", "damaged"),
    ] {
        let mut bad = good.clone();
        bad.as_object_mut().unwrap().remove("seal");
        match change {
            "form" => bad["form"]["N"] = json!("6"),
            "shards" => {
                bad["values"]["S"] = json!(bad["values"]["S"].as_str().unwrap().replace("shards", "parts"))
            }
            name => drop(bad.as_object_mut().unwrap().remove(name)),
        }
        call(store.as_ref(), Operation::PutItem, json!({ "TableName": REGISTRY, "Item": bad })).await;
        let registry = Registry::new(Arc::clone(&store), Arc::new(RealEnv), REGISTRY);
        let refused = registry.read(good["pk"]["S"].as_str().unwrap()).await.unwrap_err().to_string();
        assert!(refused.contains(says), "{change}: {refused}");
    }
}
