//! A key with items is sharded, grown, made smaller and brought back while clients write and read it through three gateways, which notice each phase
//! at different moments. Every client keeps account of its own items: each read shows exactly them, in order, none twice.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use fastrand::Rng;
use futures::executor::block_on;
use heatsink_control::{Changer, Control, Fencing, Rules};
use heatsink_dynamo::{Code, Error, Operation, Outcome};
use heatsink_env::{Env, RealEnv};
use heatsink_gateway::{Limits, Service};
use heatsink_mover::{Options, Progress, Report, Reshard, ReshardError};
use heatsink_store::Store;
use heatsink_store::embedded::Embedded;
use serde_json::{Value as Json, json};
use tokio::runtime::{Builder, Runtime};

const RULES: &str = r#"rule = []
[fence]
lease = "20s"
heartbeat = "1s"
poll = "100ms"
straggler = "2s"
"#;

/// What one item may hold, as far as its client knows: one value, or one of several after answers that leave it open. `None`: it is not there.
type Known = BTreeSet<Option<u64>>;

struct Town {
    raw: Arc<dyn Store>,
    gateways: Vec<Service>,
    rules: Rules,
    /// Keeps the gateways' leases, and everybody's time.
    runtime: Runtime,
    /// The longest that a request took, in milliseconds.
    longest: AtomicU64,
    requests: AtomicU64,
    open: AtomicU64,
}

struct Silent;

impl Progress for Silent {
    fn phase(&self, _: heatsink_reshard::State) {}
    fn moved(&self, _: u64) {}
}

impl Town {
    fn new(rules: &str) -> Arc<Town> {
        let raw: Arc<dyn Store> = Arc::new(Embedded::memory().unwrap());
        let table = json!({
            "TableName": "Scores", "BillingMode": "PAY_PER_REQUEST",
            "KeySchema": [{ "AttributeName": "pk", "KeyType": "HASH" }, { "AttributeName": "sk", "KeyType": "RANGE" }],
            "AttributeDefinitions": [
                { "AttributeName": "pk", "AttributeType": "S" }, { "AttributeName": "sk", "AttributeType": "S" },
            ],
        });
        block_on(raw.call(Operation::CreateTable, Bytes::from(table.to_string()))).unwrap();
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap();
        let entered = runtime.enter();
        let rules = Rules::read("rules", rules).unwrap();
        // The registry is there, and nobody is left who has not noticed it.
        let first = Changer::beside(raw.clone(), Arc::new(RealEnv), Fencing::exclusive(rules.fence()));
        block_on(first.freeze(false)).unwrap();
        let gateways = ["one", "two", "three"].map(|name| {
            let fencing = Fencing::shared(rules.fence(), name);
            let joined = Control::join(raw.clone(), Arc::new(RealEnv), rules.clone(), fencing);
            let control = block_on(joined).unwrap();
            let kept = control.clone();
            runtime.spawn(async move { kept.keep().await });
            Service::new(raw.clone(), control, Arc::new(RealEnv), Limits::default(), "us-east-1")
        });
        drop(entered);
        let gateways = gateways.into();
        let (longest, requests, open) = Default::default();
        Arc::new(Town { raw, gateways, rules, runtime, longest, requests, open })
    }

    fn call(&self, gateway: usize, operation: Operation, body: &Json) -> Result<Json, Error> {
        let _time = self.runtime.enter();
        let begun = RealEnv.now();
        let answer = block_on(self.gateways[gateway].call(operation, Bytes::from(body.to_string())));
        self.longest
            .fetch_max(u64::try_from(RealEnv.now().since(begun).as_millis()).unwrap(), Ordering::Relaxed);
        self.requests.fetch_add(1, Ordering::Relaxed);
        serde_json::from_slice(&answer?).map_err(|_| panic!("an answer is not JSON"))
    }

    /// The same, sent again while the answer says that nothing was done and that it can be tried again.
    fn insist(&self, rng: &mut Rng, operation: Operation, body: &Json) -> Result<Json, Error> {
        for _ in 0..1_000 {
            match self.call(rng.usize(..self.gateways.len()), operation, body) {
                Err(error) if error.retryable() && error.outcome == Outcome::NotDone => {
                    self.pause(Duration::from_millis(5));
                }
                answer => return answer,
            }
        }
        panic!("{operation:?} was refused a thousand times");
    }

    fn pause(&self, time: Duration) {
        let _time = self.runtime.enter();
        block_on(RealEnv.sleep(time));
    }

    async fn reshard(&self, key: &str, shards: u16) -> Result<Report, ReshardError> {
        let prepared = Reshard::prepare(
            self.raw.clone(),
            Arc::new(RealEnv),
            &self.rules,
            "Scores",
            key.as_bytes(),
            shards,
            false,
        );
        prepared.await?.run(Options { exclusive: false, rate: u32::MAX }, &Silent).await
    }
}

/// A client, and its own items.
struct Client {
    name: usize,
    rng: Rng,
    items: BTreeMap<String, Known>,
    next: u64,
}

impl Client {
    fn key(&self, sort: &str) -> Json {
        json!({ "pk": { "S": "game" }, "sk": { "S": sort } })
    }

    /// One request, and what follows from its answer.
    fn act(&mut self, town: &Town) {
        let sort = format!("{:02}-{}", self.rng.u32(..40), self.name);
        let known = self.items.entry(sort.clone()).or_insert_with(|| [None].into()).clone();
        self.next += 1;
        let value = self.next;
        let mut item = self.key(&sort);
        item["v"] = json!({ "N": value.to_string() });
        let key = self.key(&sort);
        let new: Known = [Some(value)].into();
        let gone: Known = [None].into();
        let (operation, body, done, failed): (Operation, Json, Known, Known) = match self.rng.u32(..9) {
            0 | 1 => (Operation::PutItem, json!({ "TableName": "Scores", "Item": item }), new, Known::new()),
            2 => {
                let body = json!({ "TableName": "Scores", "Item": item, "ConditionExpression": "attribute_not_exists(pk)" });
                let there = known.iter().copied().filter(Option::is_some).collect();
                (Operation::PutItem, body, new, there)
            }
            3 => (Operation::DeleteItem, json!({ "TableName": "Scores", "Key": key }), gone, Known::new()),
            4 => {
                let body = json!({
                    "TableName": "Scores", "Key": key, "UpdateExpression": "ADD v :one",
                    "ExpressionAttributeValues": { ":one": { "N": "1000000" } },
                });
                let done = known.iter().map(|value| Some(value.unwrap_or(0) + 1_000_000)).collect();
                (Operation::UpdateItem, body, done, Known::new())
            }
            5 => {
                let writes = json!([{ "PutRequest": { "Item": item } }]);
                (
                    Operation::BatchWriteItem,
                    json!({ "RequestItems": { "Scores": writes } }),
                    new,
                    Known::new(),
                )
            }
            6 => {
                let put = json!({ "TableName": "Scores", "Item": item });
                (
                    Operation::TransactWriteItems,
                    json!({ "TransactItems": [{ "Put": put }] }),
                    new,
                    Known::new(),
                )
            }
            7 => return self.get(town, &sort),
            _ => return self.query(town),
        };
        match town.insist(&mut self.rng, operation, &body) {
            Ok(_) => {
                self.items.insert(sort, done);
            }
            Err(error) if error.code == Code::ConditionalCheckFailedException => {
                assert!(
                    !failed.is_empty(),
                    "{operation:?} of {sort} found an item where {known:?} was known"
                );
                self.items.insert(sort, failed);
            }
            Err(error) if error.outcome == Outcome::Unknown => {
                town.open.fetch_add(1, Ordering::Relaxed);
                self.items.entry(sort).or_default().extend(done);
            }
            Err(error) => panic!("{operation:?}: {error}"),
        }
    }

    fn get(&mut self, town: &Town, sort: &str) {
        let body = json!({ "TableName": "Scores", "Key": self.key(sort), "ConsistentRead": true });
        let answer = town.insist(&mut self.rng, Operation::GetItem, &body).unwrap();
        self.saw(sort, value(&answer["Item"]), "GetItem");
    }

    fn query(&mut self, town: &Town) {
        let mut body = json!({
            "TableName": "Scores", "KeyConditionExpression": "pk = :p", "ExpressionAttributeValues": { ":p": { "S": "game" } },
            "ConsistentRead": true, "ScanIndexForward": self.rng.bool(), "Limit": self.rng.u32(3..30),
        });
        let mut found: Vec<(String, Option<u64>)> = Vec::new();
        loop {
            let page = town.insist(&mut self.rng, Operation::Query, &body).unwrap();
            let items = page["Items"].as_array().unwrap();
            found
                .extend(items.iter().map(|item| (item["sk"]["S"].as_str().unwrap().to_owned(), value(item))));
            match page.get("LastEvaluatedKey") {
                Some(last) => body["ExclusiveStartKey"] = last.clone(),
                None => break,
            }
        }
        let mut sorts: Vec<&String> = found.iter().map(|(sort, _)| sort).collect();
        if body["ScanIndexForward"] == false {
            sorts.reverse();
        }
        assert!(sorts.windows(2).all(|two| two[0] < two[1]), "out of order, or twice: {sorts:?}");
        let mut own: BTreeMap<String, Option<u64>> = found.into_iter().collect();
        own.retain(|sort, _| sort.ends_with(&format!("-{}", self.name)));
        for sort in self.items.keys().cloned().collect::<Vec<_>>() {
            self.saw(&sort, own.remove(&sort).flatten(), "Query");
        }
        assert!(own.is_empty(), "a Query shows what was never written: {own:?}");
    }

    /// A read settles what was open: nobody else writes the item, and every answer is in.
    fn saw(&mut self, sort: &str, found: Option<u64>, by: &str) {
        let known = self.items.get(sort).unwrap();
        assert!(known.contains(&found), "{by} shows {found:?} of {sort}, and {known:?} is known");
        if known.len() > 1 && found.is_some() {
            // A request whose outcome was open may still take effect; only what was seen is certain now.
            self.items.get_mut(sort).unwrap().insert(found);
        }
    }
}

fn value(item: &Json) -> Option<u64> {
    item["v"]["N"].as_str().map(|text| text.parse().unwrap())
}

/// Clients write and read while the key gets so many shards, one count after the other.
fn under_load(rules: &str, counts: &[u16]) {
    let town = Town::new(rules);
    let over = Arc::new(AtomicBool::new(false));
    let clients: Vec<_> = (0..4)
        .map(|name| {
            let (town, over) = (Arc::clone(&town), Arc::clone(&over));
            std::thread::spawn(move || {
                let rng = Rng::with_seed(name as u64);
                let mut client = Client { name, rng, items: BTreeMap::new(), next: 0 };
                while !over.load(Ordering::Relaxed) {
                    client.act(&town);
                }
                client.query(&town);
            })
        })
        .collect();
    town.pause(Duration::from_millis(300));
    for shards in counts {
        let before = town.requests.load(Ordering::Relaxed);
        town.longest.store(0, Ordering::Relaxed);
        let begun = RealEnv.now();
        let report = town.runtime.block_on(town.reshard("game", *shards));
        let report = report.unwrap_or_else(|error| panic!("to {shards} shards: {error}"));
        assert_eq!(report.to, *shards);
        println!(
            "{} to {shards} shards: {} items in {:?}; {} requests meanwhile, the longest took {} ms",
            report.from,
            report.moved,
            RealEnv.now().since(begun),
            town.requests.load(Ordering::Relaxed) - before,
            town.longest.load(Ordering::Relaxed),
        );
        town.pause(Duration::from_millis(200));
    }
    over.store(true, Ordering::Relaxed);
    for client in clients {
        client.join().unwrap();
    }
    println!("{} outcomes were left open", town.open.load(Ordering::Relaxed));
    let scanned =
        block_on(town.raw.call(Operation::Scan, Bytes::from_static(b"{\"TableName\":\"Scores\"}"))).unwrap();
    let scanned: Json = serde_json::from_slice(&scanned).unwrap();
    let keys: BTreeSet<&str> =
        scanned["Items"].as_array().unwrap().iter().map(|item| item["pk"]["S"].as_str().unwrap()).collect();
    assert_eq!(keys.len(), usize::from(*counts.last().unwrap()), "{keys:?}");
}

#[test]
fn a_key_without_a_rule_is_sharded_while_clients_use_it() {
    under_load(RULES, &[4, 16, 7, 1]);
}

#[test]
fn a_key_of_a_rule_gets_another_count_while_clients_use_it() {
    let rules = RULES.replace(
        "rule = []",
        "rule = [{ table = \"Scores\", keys = \"g*\", strategy = \"calculated\", shards = 3 }]",
    );
    under_load(&rules, &[5, 2, 8]);
}
