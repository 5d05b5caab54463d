//! Three gateways of one store in this process, what operators do with them, and what lies in the
//! store.
//!
//! Not here: clients that keep account of their items (`online`).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use fastrand::Rng;
use futures::executor::block_on;
use heatsink_control::registry::Registry;
use heatsink_control::reshard_intent::{EndedAs, Request, ReshardIntent, Subject, WantedLayout};
use heatsink_control::rules::FenceSettings;
use heatsink_control::{Changer, Control, Fencing, KeyRecord, Rules};
use heatsink_dynamo::{Error, KeyType, Operation, Outcome};
use heatsink_env::{Env, RealEnv};
use heatsink_gateway::{Limits, Service};
use heatsink_store::Store;
use heatsink_store::embedded::Embedded;
use heatsink_workers::{Pace, Reshard, ReshardOptions, ReshardReport, Runner, Unwatched, WorkerError};
use serde_json::{Value as Json, json};
use tokio::runtime::{Builder, Runtime};

pub(super) const RULES: &str = r#"rule = []
[fence]
lease = "20s"
heartbeat = "1s"
poll = "100ms"
straggler = "2s"
"#;

pub(super) struct Town {
    pub(super) raw: Arc<dyn Store>,
    pub(super) gateways: Vec<Service>,
    pub(super) controls: Vec<Control>,
    pub(super) rules: Rules,
    /// Keeps the gateways' leases, and everybody's time.
    pub(super) runtime: Runtime,
    /// The longest that a request took, in milliseconds.
    pub(super) longest: AtomicU64,
    pub(super) requests: AtomicU64,
    pub(super) open: AtomicU64,
}

/// The index of values that are resharded.
pub(super) const INDEX: &str = "by-status";

/// A value of it.
pub(super) fn value(value: &str) -> Subject<'_> {
    Subject { index: Some(INDEX), key: value.as_bytes(), key_type: KeyType::S }
}

/// A table with these global indexes.
pub(super) fn table(indexes: &[(&str, &[&str])]) -> Json {
    let key = |names: &[&str]| -> Json {
        let kinds = names.iter().zip(["HASH", "RANGE"]);
        kinds.map(|(name, kind)| json!({ "AttributeName": name, "KeyType": kind })).collect()
    };
    let mut names: Vec<&str> = indexes.iter().flat_map(|(_, names)| names.iter().copied()).collect();
    names.extend(["pk", "sk"]);
    names.sort_unstable();
    names.dedup();
    let define = |name: &&str| json!({ "AttributeName": name, "AttributeType": "S" });
    let mut table = json!({
        "TableName": "Scores", "BillingMode": "PAY_PER_REQUEST", "KeySchema": key(&["pk", "sk"]),
        "AttributeDefinitions": names.iter().map(define).collect::<Vec<_>>(),
    });
    let index = |(name, names): &(&str, &[&str])| json!({ "IndexName": name, "KeySchema": key(names), "Projection": { "ProjectionType": "ALL" } });
    if !indexes.is_empty() {
        table["GlobalSecondaryIndexes"] = indexes.iter().map(index).collect();
    }
    table
}

fn memory() -> Arc<dyn Store> {
    Arc::new(Embedded::memory().unwrap())
}

impl Town {
    pub(super) fn new(rules: &str) -> Arc<Town> {
        Town::of(&["one", "two", "three"], rules, Fencing::shared)
    }

    /// A town whose gateways take part in the fence so.
    pub(super) fn of(names: &[&str], rules: &str, fencing: fn(&FenceSettings, &str) -> Fencing) -> Arc<Town> {
        Town::over(memory(), &table(&[]), names, rules, fencing)
    }

    /// A town whose table has an index by status, without a sort key.
    pub(super) fn indexed(rules: &str) -> Arc<Town> {
        Town::indexed_of(&["one", "two", "three"], rules, Fencing::shared)
    }

    pub(super) fn indexed_of(
        names: &[&str],
        rules: &str,
        fencing: fn(&FenceSettings, &str) -> Fencing,
    ) -> Arc<Town> {
        Town::over(memory(), &table(&[(INDEX, &["status"])]), names, rules, fencing)
    }

    /// A town over that store, which is empty, and gets that table.
    pub(super) fn over(
        raw: Arc<dyn Store>,
        table: &Json,
        names: &[&str],
        rules: &str,
        fencing: fn(&FenceSettings, &str) -> Fencing,
    ) -> Arc<Town> {
        block_on(raw.call(Operation::CreateTable, Bytes::from(table.to_string()))).unwrap();
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap();
        let entered = runtime.enter();
        let rules = Rules::read("rules", rules).unwrap();
        // The registry is there, and nobody is left who has not noticed it.
        let first = Changer::beside(raw.clone(), Arc::new(RealEnv), Fencing::exclusive(rules.fence()));
        block_on(first.freeze(false)).unwrap();
        let mut controls = Vec::new();
        let gateways = names.iter().map(|name| {
            let fencing = fencing(rules.fence(), name);
            let joined = Control::join(raw.clone(), Arc::new(RealEnv), rules.clone(), fencing);
            let control = block_on(joined).unwrap();
            let kept = control.clone();
            runtime.spawn(async move { kept.keep().await });
            controls.push(control.clone());
            Service::new(raw.clone(), control, Arc::new(RealEnv), Limits::default(), "us-east-1")
        });
        let gateways = gateways.collect();
        drop(entered);
        let (longest, requests, open) = Default::default();
        Arc::new(Town { raw, gateways, controls, rules, runtime, longest, requests, open })
    }

    pub(super) fn call(&self, gateway: usize, operation: Operation, body: &Json) -> Result<Json, Error> {
        let _time = self.runtime.enter();
        let begun = RealEnv.now();
        let answer = block_on(self.gateways[gateway].call(operation, Bytes::from(body.to_string())));
        self.longest
            .fetch_max(u64::try_from(RealEnv.now().since(begun).as_millis()).unwrap(), Ordering::Relaxed);
        self.requests.fetch_add(1, Ordering::Relaxed);
        serde_json::from_slice(&answer?).map_err(|_| panic!("an answer is not JSON"))
    }

    /// The same, sent again while the answer says that nothing was done and that it can be tried
    /// again.
    pub(super) fn insist(&self, rng: &mut Rng, operation: Operation, body: &Json) -> Result<Json, Error> {
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

    pub(super) fn pause(&self, time: Duration) {
        let _time = self.runtime.enter();
        block_on(RealEnv.sleep(time));
    }

    pub(super) async fn reshard(&self, key: &str, shards: u16) -> Result<ReshardReport, WorkerError> {
        self.reshard_by(self.raw.clone(), key, shards).await
    }

    /// By a process that reaches the store so.
    pub(super) async fn reshard_by(
        &self,
        store: Arc<dyn Store>,
        key: &str,
        shards: u16,
    ) -> Result<ReshardReport, WorkerError> {
        let prepared =
            Reshard::prepare(store, Arc::new(RealEnv), &self.rules, "Scores", key.as_bytes(), shards, false);
        prepared.await?.run(ReshardOptions { exclusive: false, rate: u32::MAX }, &Unwatched).await
    }
}

/// What operators and gateways do with intents.
impl Town {
    pub(super) fn registry(&self) -> Registry {
        Registry::new(self.raw.clone(), Arc::new(RealEnv), &self.rules.fence().registry)
    }

    pub(super) fn changer(&self) -> Changer {
        Changer::beside(self.raw.clone(), Arc::new(RealEnv), Fencing::shared(self.rules.fence(), "operator"))
    }

    pub(super) fn freeze(&self, frozen: bool) {
        block_on(self.changer().freeze(frozen)).unwrap();
    }

    /// How many changes of layouts have been published.
    pub(super) fn epoch(&self) -> u64 {
        block_on(self.changer().gateways()).unwrap().unwrap().0
    }

    pub(super) fn table_id(&self) -> String {
        block_on(self.registry().describe("Scores")).unwrap().unwrap().schema.id
    }

    pub(super) fn intent(&self, key: &str) -> Option<ReshardIntent> {
        self.intent_for((key.as_bytes(), KeyType::S).into())
    }

    pub(super) fn intent_for(&self, subject: Subject<'_>) -> Option<ReshardIntent> {
        block_on(self.registry().intent_for(&self.table_id(), subject)).unwrap()
    }

    pub(super) fn record(&self, key: &str) -> Option<KeyRecord> {
        block_on(self.registry().key_record(&self.table_id(), key.as_bytes(), KeyType::S)).unwrap()
    }

    /// Asks for a layout of a key that has no open intent.
    pub(super) fn ask(&self, key: &str, layout: WantedLayout, asked: u64) {
        self.ask_at(key, layout, asked, u32::MAX);
    }

    pub(super) fn ask_at(&self, key: &str, layout: WantedLayout, asked: u64, rate: u32) {
        self.ask_for((key.as_bytes(), KeyType::S).into(), layout, asked, rate);
    }

    pub(super) fn ask_for(&self, subject: Subject<'_>, layout: WantedLayout, asked: u64, rate: u32) {
        let registry = self.registry();
        let request = Request { layout, rate, streams_confirmed: true, by: "test".to_owned(), asked };
        let before = self.intent_for(subject);
        let id = self.table_id();
        let mut intent = registry.new_intent((&id, "Scores"), subject, request);
        if let Some(before) = &before {
            assert!(!before.is_open(), "{before:?}");
            intent.version = before.version + 1;
        }
        assert!(block_on(registry.write_intent(before.as_ref(), &intent)).unwrap());
    }

    /// Changes an open intent beside its gateway. Says whether there was one.
    pub(super) fn change(&self, key: &str, change: impl Fn(&mut ReshardIntent)) -> bool {
        self.change_for((key.as_bytes(), KeyType::S).into(), change)
    }

    pub(super) fn change_for(&self, subject: Subject<'_>, change: impl Fn(&mut ReshardIntent)) -> bool {
        loop {
            let Some(intent) = self.intent_for(subject).filter(ReshardIntent::is_open) else { return false };
            let mut next = intent.next();
            change(&mut next);
            if block_on(self.registry().write_intent(Some(&intent), &next)).unwrap() {
                return true;
            }
        }
    }

    pub(super) fn until<T>(&self, what: &str, look: impl Fn() -> Option<T>) -> T {
        for _ in 0..6_000 {
            if let Some(found) = look() {
                return found;
            }
            self.pause(Duration::from_millis(10));
        }
        panic!("{what} did not come");
    }

    /// How an intent ended.
    pub(super) fn ended(&self, key: &str) -> (EndedAs, String) {
        self.ended_for((key.as_bytes(), KeyType::S).into())
    }

    pub(super) fn ended_for(&self, subject: Subject<'_>) -> (EndedAs, String) {
        self.until("the end", || self.intent_for(subject)?.ended.map(|ended| (ended.how, ended.text)))
    }

    pub(super) fn shards(&self, key: &str) -> u16 {
        self.record(key).map_or(1, |record| record.layout.shards)
    }

    /// A gateway carries intents out from now on, until its handle is aborted, or it is told to
    /// stop.
    pub(super) fn carries(&self, gateway: usize, store: Arc<dyn Store>) -> Carries {
        let pace = Pace { beat: Duration::from_millis(100), ..Pace::DEFAULT.faster(20) };
        self.carries_at(pace, gateway, store)
    }

    pub(super) fn carries_at(&self, pace: Pace, gateway: usize, store: Arc<dyn Store>) -> Carries {
        // The embedded store's indexes do not lag.
        let control = self.controls[gateway].clone();
        let runner = Runner::new(store, Arc::new(RealEnv), control)
            .with_index_delay(Duration::from_millis(10))
            .at(pace);
        let (stop, stopped) = futures::channel::oneshot::channel::<()>();
        let task = self.runtime.spawn(async move {
            runner
                .run(async {
                    let _ = stopped.await;
                })
                .await;
        });
        Carries { task, stop }
    }

    pub(super) fn carry(&self) -> Vec<Carries> {
        (0..self.controls.len()).map(|gateway| self.carries(gateway, self.raw.clone())).collect()
    }

    /// Items of nobody, which make a move last.
    pub(super) fn fill(&self, key: &str, items: usize) {
        for number in 0..items {
            let item = json!({ "pk": { "S": key }, "sk": { "S": format!("x{number:04}-old") } });
            let body = json!({ "TableName": "Scores", "Item": item });
            block_on(self.raw.call(Operation::PutItem, Bytes::from(body.to_string()))).unwrap();
        }
    }

    /// How many items of nobody there are.
    pub(super) fn old(&self) -> usize {
        self.scanned().iter().filter(|item| item["sk"]["S"].as_str().unwrap().ends_with("-old")).count()
    }

    pub(super) fn scanned(&self) -> Vec<Json> {
        let body = Bytes::from_static(b"{\"TableName\":\"Scores\",\"ConsistentRead\":true}");
        let scanned: Json =
            serde_json::from_slice(&block_on(self.raw.call(Operation::Scan, body)).unwrap()).unwrap();
        scanned["Items"].as_array().unwrap().clone()
    }

    /// The physical keys of a logical one, with how many items lie under each.
    pub(super) fn lies(&self, key: &str) -> BTreeMap<String, usize> {
        let mut found = BTreeMap::new();
        for item in self.scanned() {
            let physical = item["pk"]["S"].as_str().unwrap();
            if physical == key || physical.starts_with(&format!("{key}#~")) {
                *found.entry(physical.to_owned()).or_default() += 1;
            }
        }
        found
    }
}

/// A gateway that carries intents out.
pub(super) struct Carries {
    pub(super) task: tokio::task::JoinHandle<()>,
    pub(super) stop: futures::channel::oneshot::Sender<()>,
}
