//! An index key gets another number of shards. A client's Query reads the one form of its values
//! and then the other; meanwhile other clients write items, through gateways of which one knows the
//! step before and one the step after: an item goes from either form to the other.
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures::FutureExt;
use futures::executor::block_on;
use futures::future::BoxFuture;
use heatsink_control::{Control, REGISTRY, Rules};
use heatsink_dynamo::{Error, Operation};
use heatsink_env::{ManualEnv, RealEnv};
use heatsink_gateway::{Limits, Service};
use heatsink_store::Store;
use heatsink_store::embedded::Embedded;
use serde_json::{Value as Json, json};

const ITEMS: usize = 12;

fn call(store: &dyn Store, operation: Operation, body: &Json) -> Json {
    let answer = block_on(store.call(operation, Bytes::from(body.to_string()))).unwrap();
    serde_json::from_slice(&answer).unwrap()
}

fn ask(gateway: &Service, operation: Operation, body: &Json) -> Json {
    let answer = block_on(gateway.call(operation, Bytes::from(body.to_string()))).unwrap();
    serde_json::from_slice(&answer).unwrap()
}

type Deed = Box<dyn FnOnce() + Send>;

/// A store at which something happens right before the n-th Query of a table of clients.
struct Interrupted {
    raw: Arc<dyn Store>,
    left: AtomicUsize,
    deed: Mutex<Option<Deed>>,
}

impl Store for Interrupted {
    fn call(&self, operation: Operation, body: Bytes) -> BoxFuture<'_, Result<Bytes, Error>> {
        async move {
            let of_clients = !body.windows(REGISTRY.len()).any(|part| part == REGISTRY.as_bytes());
            if operation == Operation::Query && of_clients && self.left.fetch_sub(1, Ordering::SeqCst) == 0 {
                let deed = self.deed.lock().unwrap().take();
                if let Some(deed) = deed {
                    std::thread::spawn(deed).join().unwrap();
                }
            }
            self.raw.call(operation, body).await
        }
        .boxed()
    }
}

fn rules(shards: u16) -> Rules {
    let text = format!(
        "rule = [{{ table = \"Tasks\", index = \"by-status\", strategy = \"calculated\", shards = {shards} }}]"
    );
    Rules::read("rules", &text).unwrap()
}

/// A gateway whose clock stands still: what it knows of the table it does not look up again.
fn gateway(store: &Arc<dyn Store>) -> Service {
    let env = Arc::new(ManualEnv::seeded(1));
    let control = block_on(Control::start(Arc::clone(store), env, Rules::default())).unwrap();
    block_on(control.resolve(&["Tasks"])).unwrap();
    Service::new(Arc::clone(store), control, Arc::new(RealEnv), Limits::default(), "us-east-1")
}

/// A table whose index goes from four shards to nine, or on the way back to four.
fn migrating(forward: bool) -> (Arc<dyn Store>, impl Fn(bool)) {
    let raw: Arc<dyn Store> = Arc::new(Embedded::memory().unwrap());
    let define = |name: &str, kind: &str| json!({ "AttributeName": name, "AttributeType": kind });
    let key = |name: &str, kind: &str| json!({ "AttributeName": name, "KeyType": kind });
    let table = json!({
        "TableName": "Tasks", "BillingMode": "PAY_PER_REQUEST", "KeySchema": [key("pk", "HASH")],
        "AttributeDefinitions": [define("pk", "S"), define("status", "S"), define("at", "N")],
        "GlobalSecondaryIndexes": [{
            "IndexName": "by-status", "Projection": { "ProjectionType": "ALL" }, "KeySchema": [key("status", "HASH"), key("at", "RANGE")],
        }],
    });
    call(&*raw, Operation::CreateTable, &table);
    let control = Control::start(Arc::clone(&raw), Arc::new(ManualEnv::seeded(1)), rules(9));
    block_on(block_on(control).unwrap().resolve(&["Tasks"])).unwrap();
    let found = call(&*raw, Operation::Scan, &json!({ "TableName": REGISTRY }));
    let record = found["Items"]
        .as_array()
        .unwrap()
        .iter()
        .find(|item| item["name"]["S"] == "Tasks" && item.get("layouts").is_some());
    let record = record.unwrap().clone();
    let mut before: Json = serde_json::from_str(record["layouts"]["S"].as_str().unwrap()).unwrap();
    before[0]["layout"]["shards"] = json!(4);
    let on_record = Arc::clone(&raw);
    let step = move |writes_new: bool| {
        let state = json!({
            "state": "TURNING", "attributes": ["status"], "spreads": forward, "writes_new": writes_new, "touched": true, "items": 0, "run": 1,
            "before": before,
        });
        let mut record = record.clone();
        record["state"]["S"] = json!(state.to_string());
        // As somebody writes it who means it so.
        record.as_object_mut().unwrap().remove("seal");
        call(&*on_record, Operation::PutItem, &json!({ "TableName": REGISTRY, "Item": record }));
    };
    (raw, step)
}

fn put(gateway: &Service, number: usize, at: usize) {
    let item = json!({ "pk": { "S": format!("p{number}") }, "status": { "S": "open" }, "at": { "N": at.to_string() } });
    ask(gateway, Operation::PutItem, &json!({ "TableName": "Tasks", "Item": item }));
}

/// What a Query finds before whose n-th call each item is written again, by the other gateway;
/// nothing if there are fewer calls.
fn found(
    forward: bool,
    reader: bool,
    first: bool,
    calls: usize,
    at: impl Fn(usize) -> usize + Send + 'static,
) -> Option<Vec<String>> {
    let (raw, step) = migrating(forward);
    let hooked = Arc::new(Interrupted {
        raw: Arc::clone(&raw),
        left: AtomicUsize::new(calls),
        deed: Mutex::new(None),
    });
    let [old, new] = [false, true].map(|writes_new| {
        step(writes_new);
        gateway(&raw)
    });
    step(reader);
    let reading: Arc<dyn Store> = hooked.clone();
    let reader = gateway(&reading);
    let (then, writer) = if first { (old, new) } else { (new, old) };
    (0..ITEMS).for_each(|number| put(&writer, number, number));
    *hooked.deed.lock().unwrap() =
        Some(Box::new(move || (0..ITEMS).for_each(|number| put(&then, number, at(number)))));
    let query = json!({
        "TableName": "Tasks", "IndexName": "by-status", "KeyConditionExpression": "#s = :s", "ExpressionAttributeNames": { "#s": "status" },
        "ExpressionAttributeValues": { ":s": { "S": "open" } },
    });
    let answer = ask(&reader, Operation::Query, &query);
    if hooked.deed.lock().unwrap().is_some() {
        return None;
    }
    let name = |item: &Json| item["pk"]["S"].as_str().unwrap().to_owned();
    Some(answer["Items"].as_array().unwrap().iter().map(name).collect())
}

/// Every way to go between the forms, and every call at which it can happen.
fn each(at: impl Fn(usize) -> usize + Send + Copy + 'static, check: impl Fn(Vec<String>, &str)) {
    for way in 0..8 {
        let [forward, reader, first] = [way & 1, way & 2, way & 4].map(|bit| bit > 0);
        for calls in 0.. {
            let Some(names) = found(forward, reader, first, calls, at) else {
                assert!(calls > 8, "the Query makes {calls} calls");
                break;
            };
            check(
                names,
                &format!(
                    "forward {forward}, the reader writes the new form {reader}, items leave it {first}, call {calls}"
                ),
            );
        }
    }
}

#[test]
fn an_item_that_changes_its_form_while_a_page_is_read_is_on_it() {
    each(
        |number| number,
        |mut names, way| {
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), ITEMS, "{way}: {names:?}");
        },
    );
}

#[test]
fn an_item_that_changes_its_form_and_its_place_while_a_page_is_read_is_on_it_once() {
    each(
        |number| ITEMS - number,
        |mut names, way| {
            let shown = names.len();
            names.sort_unstable();
            names.dedup();
            assert_eq!((shown, names.len()), (ITEMS, ITEMS), "{way}: {names:?}");
        },
    );
}
