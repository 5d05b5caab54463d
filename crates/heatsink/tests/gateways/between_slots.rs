//! A key moves. A client's Query of an index reads its rows, and looks where the items of old slots
//! lie; in between, the mover takes them to their new slots. Each item is there all the time, so it
//! is in the answer.
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures::FutureExt;
use futures::executor::block_on;
use futures::future::BoxFuture;
use heatsink_control::registry::Registry;
use heatsink_control::{Changer, Control, Fencing, KeyRecord, Move, REGISTRY, Rules, TableLayouts};
use heatsink_dynamo::{Error, KeyType, Operation};
use heatsink_env::{ManualEnv, RealEnv};
use heatsink_gateway::{Limits, Service};
use heatsink_layout::{By, Hash, Layout, Phase, SortKey, Strategy};
use heatsink_store::Store;
use heatsink_store::embedded::Embedded;
use serde_json::{Value as Json, json};

const ITEMS: usize = 12;

fn call(store: &dyn Store, operation: Operation, body: &Json) -> Json {
    let answer = block_on(store.call(operation, Bytes::from(body.to_string()))).unwrap();
    serde_json::from_slice(&answer).unwrap()
}

fn four() -> Layout {
    let (strategy, hash) = (Strategy::calculated(By::SortKey), Hash::JumpXxh3);
    Layout { strategy, shards: 4, hash, version: 1 }
}

/// What a mover does with one item, and clients after it.
type Deed = fn(&dyn Store, &Json);

/// A store at which a deed is done to each item right before one of the calls on items: the first
/// look at both slots is the first BatchGetItem.
struct Interrupted {
    raw: Arc<dyn Store>,
    deed: Mutex<Option<(Operation, usize, Deed)>>,
}

impl Interrupted {
    /// What is to be done before this call.
    fn due(&self, operation: Operation) -> Option<Deed> {
        let mut deed = self.deed.lock().unwrap();
        let (_, left, _) = deed.as_mut().filter(|(before, ..)| *before == operation)?;
        *left -= 1;
        if *left > 0 {
            return None;
        }
        deed.take().map(|(.., deed)| deed)
    }
}

impl Store for Interrupted {
    fn call(&self, operation: Operation, body: Bytes) -> BoxFuture<'_, Result<Bytes, Error>> {
        let of_items = !body.windows(REGISTRY.len()).any(|part| part == REGISTRY.as_bytes());
        async move {
            if of_items && let Some(deed) = self.due(operation) {
                let raw = Arc::clone(&self.raw);
                let each = move || (0..ITEMS).for_each(|number| deed(&*raw, &item(number)));
                std::thread::spawn(each).join().unwrap();
            }
            self.raw.call(operation, body).await
        }
        .boxed()
    }
}

fn item(number: usize) -> Json {
    json!({
        "pk": { "S": "hot" }, "sk": { "S": format!("s{number:02}") }, "status": { "S": "open" }, "due": { "N": (number / 3).to_string() },
        "note": { "S": "before" },
    })
}

/// The item where the key's new layout has it.
fn in_new_slot(item: &Json) -> Json {
    let slot = four().shard_of(Some(SortKey::S(item["sk"]["S"].as_str().unwrap())));
    let mut moved = item.clone();
    if slot > 0 {
        moved["pk"]["S"] = json!(format!("hot#~{slot}"));
    }
    moved
}

fn put(store: &dyn Store, item: &Json) {
    call(store, Operation::PutItem, &json!({ "TableName": "Tasks", "Item": item }));
}

fn moves(store: &dyn Store, item: &Json) {
    let moved = in_new_slot(item);
    if moved != *item {
        put(store, &moved);
        let key = json!({ "pk": item["pk"], "sk": item["sk"] });
        call(store, Operation::DeleteItem, &json!({ "TableName": "Tasks", "Key": key }));
    }
}

/// The store, in which the key `hot` of the table is in MOVE; and a gateway before it. The deed is
/// done right before so manieth such call.
fn world(deed: Option<(Operation, usize, Deed)>) -> (Arc<dyn Store>, Service) {
    let raw: Arc<dyn Store> = Arc::new(Embedded::memory().unwrap());
    let env = Arc::new(ManualEnv::seeded(1));
    let define = |name: &str, kind: &str| json!({ "AttributeName": name, "AttributeType": kind });
    let key = |name: &str, kind: &str| json!({ "AttributeName": name, "KeyType": kind });
    let index = |name: &str, partition: &str| {
        json!({
            "IndexName": name, "Projection": { "ProjectionType": "ALL" }, "KeySchema": [key(partition, "HASH"), key("due", "RANGE")],
        })
    };
    let table = json!({
        "TableName": "Tasks", "BillingMode": "PAY_PER_REQUEST", "KeySchema": [key("pk", "HASH"), key("sk", "RANGE")],
        "AttributeDefinitions": [define("pk", "S"), define("sk", "S"), define("status", "S"), define("due", "N")],
        "GlobalSecondaryIndexes": [index("by-status", "status")], "LocalSecondaryIndexes": [index("by-due", "pk")],
    });
    call(&*raw, Operation::CreateTable, &table);
    let fencing = Fencing::exclusive(Rules::default().fence());
    block_on(Changer::beside(Arc::clone(&raw), env.clone(), fencing).make_registry()).unwrap();
    let registry = Registry::new(Arc::clone(&raw), env.clone(), REGISTRY);
    let described = block_on(registry.describe("Tasks")).unwrap().unwrap();
    let first = registry.first_record(&described, TableLayouts::default(), true);
    let record = block_on(registry.create(None, &first)).unwrap();
    let moving = Move {
        to: four(),
        phase: Phase::Move,
        reserved_before: 1,
        closing: false,
        expires: None,
        marks: false,
        high_water: None,
    };
    let key = KeyRecord {
        key: b"hot".to_vec(),
        key_type: KeyType::S,
        layout: Layout::none(),
        moves: Some(moving),
        settled: false,
        reserved: 4,
        version: 1,
        changed: 0,
        since: 0,
    };
    block_on(registry.replace_key(&record, None, &key)).unwrap().unwrap();
    (0..ITEMS).for_each(|number| put(&*raw, &item(number)));
    let through: Arc<dyn Store> = Arc::new(Interrupted { raw: Arc::clone(&raw), deed: Mutex::new(deed) });
    let control = block_on(Control::start(Arc::clone(&through), env, Rules::default())).unwrap();
    let gateway = Service::new(through, control, Arc::new(RealEnv), Limits::default(), "us-east-1");
    (raw, gateway)
}

/// What a Query of an index shows of each item, by sort key: its notes.
fn shown(gateway: &Service, index: &str, more: &Json) -> BTreeMap<String, Vec<String>> {
    let (name, value) = if index == "by-status" { ("status", "open") } else { ("pk", "hot") };
    let mut query = json!({
        "TableName": "Tasks", "IndexName": index, "KeyConditionExpression": "#k = :k", "ExpressionAttributeNames": { "#k": name },
        "ExpressionAttributeValues": { ":k": { "S": value } },
    });
    query.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let mut shown: BTreeMap<String, Vec<String>> = BTreeMap::new();
    loop {
        let answer = block_on(gateway.call(Operation::Query, Bytes::from(query.to_string()))).unwrap();
        let mut answer: Json = serde_json::from_slice(&answer).unwrap();
        for item in answer["Items"].as_array().unwrap() {
            assert_eq!(item["pk"]["S"], "hot");
            let [sort, note] = ["sk", "note"].map(|name| item[name]["S"].as_str().unwrap().to_owned());
            shown.entry(sort).or_default().push(note);
        }
        match answer["LastEvaluatedKey"].take() {
            Json::Null => return shown,
            last => query["ExclusiveStartKey"] = last,
        }
    }
}

#[test]
fn an_item_that_moves_between_its_row_and_the_look_at_its_slots_is_shown_once() {
    for (index, more) in [
        ("by-status", json!({})),
        ("by-status", json!({ "Limit": 5 })),
        ("by-status", json!({ "ScanIndexForward": false, "Limit": 1 })),
        ("by-due", json!({})),
        ("by-due", json!({ "Limit": 5 })),
        ("by-due", json!({ "ConsistentRead": true })),
    ] {
        let (_, gateway) = world(Some((Operation::BatchGetItem, 1, moves)));
        let found = shown(&gateway, index, &more);
        assert_eq!(found.len(), ITEMS, "{index} {more}: {found:?}");
        assert!(found.values().all(|notes| notes.len() == 1), "{index} {more}: {found:?}");
    }
}

/// A page may take several calls. An item that goes meanwhile from a key that was not read yet to
/// one that was has a row in none of them.
#[test]
fn an_item_that_moves_while_a_page_is_read_is_shown_once() {
    for before in 1..8 {
        for (index, more) in [
            ("by-status", json!({ "ScanIndexForward": false, "Limit": 1 })),
            ("by-status", json!({ "ScanIndexForward": false, "Limit": 3 })),
            ("by-status", json!({ "Limit": 2 })),
            ("by-due", json!({ "ScanIndexForward": false, "Limit": 1 })),
            ("by-due", json!({ "Limit": 2 })),
        ] {
            let (_, gateway) = world(Some((Operation::Query, before, moves)));
            let found = shown(&gateway, index, &more);
            assert_eq!(found.len(), ITEMS, "{index} {more}, before Query {before}: {found:?}");
            assert!(
                found.values().all(|notes| notes.len() == 1),
                "{index} {more}, before Query {before}: {found:?}"
            );
        }
    }
}

/// A put without condition in MOVE leaves the old copy where it is, and its row: it is not the item.
#[test]
fn an_old_copy_of_an_item_that_was_written_in_its_new_slot_is_not_shown() {
    for more in [json!({}), json!({ "Limit": 5 })] {
        let (raw, gateway) = world(None);
        let mut written: Vec<Json> = (0..ITEMS).map(item).filter(|item| in_new_slot(item) != *item).collect();
        written.truncate(4);
        written[0]["due"] = json!({ "N": "9" });
        written[1]["status"] = json!({ "S": "done" });
        for item in &mut written {
            item["note"] = json!({ "S": "after" });
            put(&*raw, &in_new_slot(item));
        }
        let found = shown(&gateway, "by-status", &more);
        let sort = |item: &Json| item["sk"]["S"].as_str().unwrap().to_owned();
        let expected = (0..ITEMS).map(|number| (sort(&item(number)), vec!["before".to_owned()]));
        let mut expected: BTreeMap<_, _> = expected.collect();
        expected.extend(written.iter().map(|item| (sort(item), vec!["after".to_owned()])));
        expected.remove(&sort(&written[1]));
        assert_eq!(found, expected, "{more}");
    }
}
