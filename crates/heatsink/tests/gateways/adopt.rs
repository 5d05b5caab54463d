//! An index that has items already is brought under a rule, to other numbers of shards, and back,
//! and values of it by themselves, while clients write and read through two gateways that notice
//! each step at different moments, and acknowledge it. Every write means what it says, every Query
//! is exact.
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use fastrand::Rng;
use futures::executor::block_on;
use futures::future::BoxFuture;
use heatsink_control::{Changer, Control, Fencing, Rules};
use heatsink_dynamo::{Code, Error, Operation};
use heatsink_env::RealEnv;
use heatsink_gateway::{Limits, Service};
use heatsink_store::Store;
use heatsink_store::embedded::Embedded;
use heatsink_workers::{
    Adoption, AdoptionOptions, AdoptionReport, Direction, Unwatched, ValueAsked, ValueOptions, ValueReshard,
};
use serde_json::{Value as Json, json};
use tokio::runtime::{Builder, Runtime};

/// The rules, with so many shards for each of the two attributes.
fn rules(shards: [u16; 2]) -> Rules {
    let [status, kind] = shards;
    let text = format!(
        r#"rule = [
            {{ table = "Tasks", index = "by-status", strategy = "calculated", shards = {status} }},
            {{ table = "Tasks", index = "unsorted", strategy = "calculated", shards = {kind} }},
        ]
        [fence]
        lease = "20s"
        heartbeat = "1s"
        poll = "100ms"
        straggler = "2s"
        "#
    );
    Rules::read("rules", &text).unwrap()
}
/// Items that no client writes to: in every Query of their keys exactly once, whatever else goes
/// on.
const STILL: usize = 120;

/// What becomes of index keys while clients use them.
#[derive(Clone, Copy, Debug)]
enum Change {
    /// Both attributes get what rules with so many shards say, or go back.
    Rules([u16; 2], Direction),
    /// One value of an index gets so many shards.
    Value(&'static str, &'static str, u16),
}

/// Two gateways on one store.
struct Town {
    raw: Arc<dyn Store>,
    gateways: [Service; 2],
    /// Keeps the gateways' leases, and everybody's time.
    runtime: Runtime,
    /// How many Queries were read to their end and found exact.
    exact: AtomicU64,
}

impl Town {
    fn new() -> Arc<Town> {
        let raw: Arc<dyn Store> = Arc::new(Embedded::memory().unwrap());
        let attribute = |name: &str, kind: &str| json!({ "AttributeName": name, "AttributeType": kind });
        let key = |names: &[&str]| -> Json {
            let kinds = ["HASH", "RANGE"];
            names
                .iter()
                .zip(kinds)
                .map(|(name, kind)| json!({ "AttributeName": name, "KeyType": kind }))
                .collect()
        };
        let index = |name: &str, names: &[&str]| json!({ "IndexName": name, "KeySchema": key(names), "Projection": { "ProjectionType": "ALL" } });
        let mut both = index("both", &["status", "at"]);
        let kind = json!({ "AttributeName": "kind", "KeyType": "HASH" });
        both["KeySchema"].as_array_mut().unwrap().insert(0, kind);
        let table = json!({
            "TableName": "Tasks", "BillingMode": "PAY_PER_REQUEST", "KeySchema": key(&["pk", "sk"]),
            "AttributeDefinitions": [attribute("pk", "S"), attribute("sk", "S"), attribute("status", "S"), attribute("kind", "S"), attribute("at", "N")],
            "GlobalSecondaryIndexes": [index("by-status", &["status", "at"]), index("unsorted", &["kind"]), both],
        });
        block_on(raw.call(Operation::CreateTable, Bytes::from(table.to_string()))).unwrap();
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_time().build().unwrap();
        let entered = runtime.enter();
        let fence = rules([4, 3]).fence().clone();
        // The registry is there, and nobody is left who has not noticed it.
        let first = Changer::beside(raw.clone(), Arc::new(RealEnv), Fencing::exclusive(&fence));
        block_on(first.freeze(false)).unwrap();
        let gateways = ["one", "other"].map(|name| {
            let joined = Control::join(
                raw.clone(),
                Arc::new(RealEnv),
                Rules::default(),
                Fencing::shared(&fence, name),
            );
            let control = block_on(joined).unwrap();
            let kept = control.clone();
            runtime.spawn(async move { kept.keep().await });
            Service::new(raw.clone(), control, Arc::new(RealEnv), Limits::default(), "us-east-1")
        });
        drop(entered);
        Arc::new(Town { raw, gateways, runtime, exact: AtomicU64::new(0) })
    }

    fn call(&self, gateway: usize, operation: Operation, body: &Json) -> Result<Json, Error> {
        let _time = self.runtime.enter();
        let answer = block_on(self.gateways[gateway].call(operation, Bytes::from(body.to_string())))?;
        Ok(serde_json::from_slice(&answer).unwrap())
    }

    /// Waits until clients have read so many keys more; not for ever, should one of them have
    /// failed.
    fn let_clients_read(&self, queries: u64) {
        let until = self.exact.load(Ordering::SeqCst) + queries;
        for _ in 0..2_000 {
            if self.exact.load(Ordering::SeqCst) >= until {
                return;
            }
            std::thread::park_timeout(Duration::from_millis(5));
        }
    }

    fn adopt(self: &Arc<Self>, rules: &Rules, direction: Direction) -> AdoptionReport {
        let store = Arc::new(Slow(Arc::clone(self), AtomicU64::new(0)));
        let _time = self.runtime.enter();
        block_on(async {
            let env = Arc::new(RealEnv);
            let adoption = Adoption::prepare(store, env, rules, "Tasks", direction).await.unwrap();
            adoption.run(AdoptionOptions { concurrency: 2, exclusive: false }, &Unwatched).await.unwrap()
        })
    }

    /// Carries the change out; returns how many items it rewrote.
    fn change(self: &Arc<Self>, change: Change) -> u64 {
        let (index, value, shards) = match change {
            Change::Rules(shards, direction) => {
                let report = self.adopt(&rules(shards), direction);
                assert_eq!(report.indexes, ["status", "kind"]);
                return report.moved;
            }
            Change::Value(index, value, shards) => (index, value, shards),
        };
        let store = Arc::new(Slow(Arc::clone(self), AtomicU64::new(0)));
        let _time = self.runtime.enter();
        block_on(async {
            let asked = ValueAsked { table: "Tasks", index, value, shards };
            // Of the rules the fence alone.
            let rules = rules([1, 1]).without_rules();
            let reshard = ValueReshard::prepare(store, Arc::new(RealEnv), &rules, asked).await.unwrap();
            let delay = Duration::from_millis(50);
            let options = ValueOptions { concurrency: 2, exclusive: false, delay, rate: u32::MAX };
            reshard.run(options, &Unwatched).await.unwrap().moved
        })
    }

    /// The names of all items of a key, page by page; `None` if it has to begin again because of a
    /// step of the adoption.
    fn query(
        &self,
        gateway: usize,
        rng: &mut Rng,
        index: &str,
        value: &str,
    ) -> Option<Vec<(String, String)>> {
        let forward = rng.bool();
        let attribute = if index == "unsorted" { "kind" } else { "status" };
        let mut body = json!({
            "TableName": "Tasks", "IndexName": index, "KeyConditionExpression": "#k = :k", "ScanIndexForward": forward,
            "ExpressionAttributeNames": { "#k": attribute }, "ExpressionAttributeValues": { ":k": { "S": value } },
            "Limit": rng.usize(3..40),
        });
        if index == "both" {
            body["KeyConditionExpression"] = json!("#k = :k AND kind = :task");
            body["ExpressionAttributeValues"][":task"] = json!({ "S": "task" });
        }
        let (mut found, mut last) = (Vec::new(), None);
        loop {
            let page = match self.call(gateway, Operation::Query, &body) {
                Ok(page) => page,
                Err(error) => {
                    assert!(body.get("ExclusiveStartKey").is_some(), "{error}");
                    assert_eq!(error.code, Code::ValidationException);
                    return None;
                }
            };
            for item in page["Items"].as_array().unwrap() {
                assert_eq!(item[attribute]["S"], value, "values are logical");
                let at: i64 = item["at"]["N"].as_str().unwrap().parse().unwrap();
                let at = if forward { at } else { -at };
                assert!(index == "unsorted" || last <= Some(at), "rows are in order");
                last = Some(at);
                found.push((
                    item["pk"]["S"].as_str().unwrap().to_owned(),
                    item["sk"]["S"].as_str().unwrap().to_owned(),
                ));
            }
            match page.get("LastEvaluatedKey") {
                Some(start) => body["ExclusiveStartKey"] = start.clone(),
                None => break,
            }
        }
        Some(found)
    }

    /// The names of all items of an index, by Scan or by SELECT, page by page; `None` if it has to
    /// begin again because of a step of the adoption.
    fn scan(&self, gateway: usize, rng: &mut Rng, index: &str) -> Option<Vec<(String, String)>> {
        // An index with several key attributes is none for PartiQL.
        let (operation, mut body, start, last) = if rng.bool() || index == "both" {
            let body = json!({ "TableName": "Tasks", "IndexName": index });
            (Operation::Scan, body, "ExclusiveStartKey", "LastEvaluatedKey")
        } else {
            let body = json!({ "Statement": format!("SELECT * FROM Tasks.\"{index}\"") });
            (Operation::ExecuteStatement, body, "NextToken", "NextToken")
        };
        body["Limit"] = json!(rng.usize(10..60));
        let mut found = Vec::new();
        loop {
            let page = match self.call(gateway, operation, &body) {
                Ok(page) => page,
                Err(error) => {
                    assert!(body.get(start).is_some(), "{error}");
                    assert_eq!(error.code, Code::ValidationException);
                    return None;
                }
            };
            for item in page["Items"].as_array().unwrap() {
                assert!(!item["status"]["S"].as_str().is_some_and(|status| status.contains('#')), "{item}");
                let text = |name: &str| item[name]["S"].as_str().unwrap().to_owned();
                found.push((text("pk"), text("sk")));
            }
            match page.get(last) {
                Some(next) => body[start] = next.clone(),
                None => return Some(found),
            }
        }
    }
}

/// Makes the adoption slow enough for clients to be in its way.
struct Slow(Arc<Town>, AtomicU64);

impl Store for Slow {
    fn call(&self, operation: Operation, body: Bytes) -> BoxFuture<'_, Result<Bytes, Error>> {
        if operation == Operation::TransactWriteItems && self.1.fetch_add(1, Ordering::SeqCst) % 8 == 4 {
            self.0.let_clients_read(2);
        }
        self.0.raw.call(operation, body)
    }
}

fn item(pk: &str, sk: &str, status: Option<&str>, at: usize) -> Json {
    let mut item = json!({ "pk": { "S": pk }, "sk": { "S": sk }, "kind": { "S": "task" }, "at": { "N": (at % 4).to_string() } });
    if let Some(status) = status {
        item["status"] = json!({ "S": status });
    }
    item
}

/// A client that writes its own items, and knows what they must be. Returns their statuses.
fn write(town: &Town, pk: &str, mut rng: Rng, done: &AtomicBool) -> BTreeMap<String, Option<String>> {
    let mut model: BTreeMap<String, Option<String>> = BTreeMap::new();
    while !done.load(Ordering::SeqCst) {
        let (sk, gateway) = (format!("s{:02}", rng.usize(..20)), rng.usize(..2));
        let new = ["open", "done", "opened"][rng.usize(..3)];
        let key = json!({ "pk": { "S": pk }, "sk": { "S": sk } });
        let Some(old) = model.get(&sk).cloned() else {
            let body = json!({ "TableName": "Tasks", "Item": item(pk, &sk, Some(new), rng.usize(..9)) });
            town.call(gateway, Operation::PutItem, &body).unwrap();
            model.insert(sk, Some(new.to_owned()));
            continue;
        };
        let update = |expression: &str, condition: &str, value: &str| {
            let mut body = json!({
                "TableName": "Tasks", "Key": key, "UpdateExpression": expression, "ConditionExpression": condition,
                "ExpressionAttributeNames": { "#s": "status" }, "ExpressionAttributeValues": { ":v": { "S": value } },
            });
            if expression.contains(":new") {
                body["ExpressionAttributeValues"][":new"] = json!({ "S": new });
            }
            town.call(gateway, Operation::UpdateItem, &body)
        };
        let now = match (&old, rng.u32(..6)) {
            (None, _) => {
                update("SET #s = if_not_exists(#s, :new)", "attribute_not_exists(#s) OR #s = :v", "no")
                    .unwrap();
                Some(new.to_owned())
            }
            (Some(old), 0) => {
                update("SET #s = :new", "#s = :v", old).unwrap();
                Some(new.to_owned())
            }
            (Some(old), 1) => {
                update("REMOVE #s", "#s >= :v", old).unwrap();
                None
            }
            (Some(old), 2) => {
                let error = update("SET #s = :new", "#s <> :v", old).unwrap_err();
                assert_eq!(error.code, Code::ConditionalCheckFailedException);
                Some(old.clone())
            }
            (Some(old), 3) => {
                let error = update("REMOVE #s", "NOT begins_with(#s, :v)", &old[..2]).unwrap_err();
                assert_eq!(error.code, Code::ConditionalCheckFailedException);
                Some(old.clone())
            }
            (Some(old), 4) => {
                let text = format!(
                    "UPDATE Tasks SET status = '{new}' WHERE pk = '{pk}' AND sk = '{sk}' AND status = '{old}'"
                );
                town.call(gateway, Operation::ExecuteStatement, &json!({ "Statement": text })).unwrap();
                Some(new.to_owned())
            }
            (Some(old), _) => {
                let expected = json!({ "status": { "Value": { "S": old } } });
                let body = json!({ "TableName": "Tasks", "Item": item(pk, &sk, Some(new), rng.usize(..9)), "Expected": expected });
                town.call(gateway, Operation::PutItem, &body).unwrap();
                Some(new.to_owned())
            }
        };
        model.insert(sk, now.clone());
        let get = json!({ "TableName": "Tasks", "Key": key, "ConsistentRead": true });
        let found = town.call(rng.usize(..2), Operation::GetItem, &get).unwrap();
        assert_eq!(found["Item"]["status"]["S"].as_str(), now.as_deref());
    }
    model
}

/// A client that reads, and must find every item that lies still exactly once. Returns how often it
/// looked.
fn read(town: &Town, mut rng: Rng, done: &AtomicBool) -> usize {
    let mut exact = 0;
    while !done.load(Ordering::SeqCst) {
        let (index, value) = [("by-status", "open"), ("unsorted", "task"), ("both", "open")][rng.usize(..3)];
        let found = if rng.u32(..3) == 0 {
            town.scan(rng.usize(..2), &mut rng, index)
        } else {
            town.query(rng.usize(..2), &mut rng, index, value)
        };
        let Some(found) = found else { continue };
        let mut still: Vec<&str> =
            found.iter().filter(|(pk, _)| pk == "still").map(|(_, sk)| sk.as_str()).collect();
        still.sort_unstable();
        let expected: Vec<String> = (0..STILL).map(|at| format!("s{at:03}")).collect();
        assert_eq!(still, expected, "{index}");
        exact += 1;
        town.exact.fetch_add(1, Ordering::SeqCst);
    }
    exact
}

#[test]
fn index_keys_are_given_other_shards_while_clients_go_on() {
    let town = Town::new();
    for at in 0..STILL {
        let body =
            json!({ "TableName": "Tasks", "Item": item("still", &format!("s{at:03}"), Some("open"), at) });
        town.call(0, Operation::PutItem, &body).unwrap();
    }
    let changes = [
        Change::Rules([4, 3], Direction::Adopt),
        // One of them grows while the other one shrinks.
        Change::Rules([9, 2], Direction::Adopt),
        Change::Rules([2, 5], Direction::Adopt),
        Change::Rules([2, 5], Direction::Back),
        Change::Value("by-status", "open", 4),
        Change::Value("unsorted", "task", 6),
        Change::Value("by-status", "open", 7),
        Change::Value("unsorted", "task", 1),
        Change::Value("by-status", "open", 1),
    ];
    for (seed, change) in (1..).zip(changes) {
        let (done, town_ref) = (AtomicBool::new(false), &*town);
        let models = Mutex::new(BTreeMap::new());
        std::thread::scope(|scope| {
            let readers: Vec<_> = (0..2)
                .map(|at| {
                    scope.spawn({
                        let done = &done;
                        move || read(town_ref, Rng::with_seed(seed * 10 + at), done)
                    })
                })
                .collect();
            for at in 0..2 {
                let (done, models) = (&done, &models);
                scope.spawn(move || {
                    let pk = format!("writer-{seed}-{at}");
                    let model = write(town_ref, &pk, Rng::with_seed(seed * 100 + at), done);
                    models.lock().unwrap().insert(pk, model);
                });
            }
            // Whatever fails, the others have to hear that it is over.
            let moved = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| town.change(change)));
            done.store(true, Ordering::SeqCst);
            let exact: usize = readers.into_iter().map(|reader| reader.join().unwrap()).sum();
            let moved = moved.unwrap();
            assert!(moved > 30, "{change:?}: {moved}");
            println!("{change:?}: {moved} items rewritten, {exact} exact reads");
            assert!(exact > 12, "the reads were in its way");
        });
        // All is as the writers know it, after the gateways have noticed the end too.
        std::thread::park_timeout(Duration::from_secs(1));
        for status in ["open", "done", "opened"] {
            let mut expected: Vec<(String, String)> = Vec::new();
            for (pk, model) in models.lock().unwrap().iter() {
                let held = model.iter().filter(|(_, held)| held.as_deref() == Some(status));
                expected.extend(held.map(|(sk, _)| (pk.clone(), sk.clone())));
            }
            for gateway in 0..2 {
                // It may begin again for as long as the gateway has not noticed the end.
                let mut rng = Rng::with_seed(7);
                let pages = (0..200).find_map(|_| town.query(gateway, &mut rng, "by-status", status));
                let mut found = pages.unwrap();
                found.retain(|(pk, _)| pk.starts_with(&format!("writer-{seed}-")));
                found.sort_unstable();
                assert_eq!(found, expected, "{change:?} {status}");
            }
        }
        let scan = Bytes::from(json!({ "TableName": "Tasks" }).to_string());
        let raw =
            String::from_utf8(block_on(town.raw.call(Operation::Scan, scan)).unwrap().to_vec()).unwrap();
        let spread = match change {
            Change::Rules(_, direction) => direction == Direction::Adopt,
            Change::Value("by-status", _, shards) => shards > 1,
            Change::Value(..) => true,
        };
        assert_eq!(raw.contains("open#~"), spread, "{change:?}");
        assert!(!matches!(change, Change::Value(..)) || !raw.contains("done#~") && !raw.contains("opened#~"));
    }
}
