//! How much is not sent. Gateways in this process, before one store with partitions whose answers
//! take 5 ms.
//!
//! `cargo test --release -p heatsink-gateway --test gateway calls::measure -- --ignored --nocapture
//! --test-threads 1`

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::future::{BoxFuture, join_all};
use heatsink_control::{Fencing, Rules};
use heatsink_dynamo::{Error, Operation};
use heatsink_env::RealEnv;
use heatsink_gateway::Gateway;
use heatsink_store::Store;
use heatsink_store::embedded::Embedded;
use heatsink_store::partitioned::Partitioned;
use serde_json::{Value as Json, json};

use super::writes::{add, create};

const TAKES: Duration = Duration::from_millis(5);

/// Answers of items late, and counts.
struct Late<S> {
    store: S,
    calls: AtomicUsize,
    throttled: AtomicUsize,
}

impl<S: Store> Store for Late<S> {
    fn call(&self, operation: Operation, body: Bytes) -> BoxFuture<'_, Result<Bytes, Error>> {
        Box::pin(async move {
            let text = String::from_utf8_lossy(&body);
            if !operation.touches_items()
                || !["\"Votes\"", "\"Scores\""].iter().any(|name| text.contains(name))
            {
                return self.store.call(operation, body).await;
            }
            self.calls.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(TAKES).await;
            let answer = self.store.call(operation, body).await;
            if answer.as_ref().is_err_and(Error::is_throttled) {
                self.throttled.fetch_add(1, Ordering::Relaxed);
            }
            answer
        })
    }
}

async fn store() -> Arc<Late<Partitioned<Embedded>>> {
    let store = Embedded::memory().unwrap();
    create(&store).await;
    fill(&store).await;
    let store = Partitioned::start(store, Arc::new(RealEnv), Default::default()).await.unwrap();
    Arc::new(Late { store, calls: AtomicUsize::new(0), throttled: AtomicUsize::new(0) })
}

async fn gateways(store: &Arc<Late<Partitioned<Embedded>>>, rule: &str, count: usize) -> Vec<Arc<Gateway>> {
    let rules = format!("[[rule]]\ntable = \"*\"\nstrategy = \"none\"\n{rule}\n");
    let mut gateways = Vec::new();
    for _ in 0..count {
        let rules = Rules::read("rules", &rules).unwrap();
        let fencing = Fencing::exclusive(rules.fence());
        let gateway = Gateway::builder(Arc::clone(store) as _).rules(rules).fencing(fencing);
        gateways.push(Arc::new(gateway.start().await.unwrap()));
    }
    gateways
}

/// Each of so many clients sends one call after the other, at that rate in all; what they took.
async fn load(
    gateways: &[Arc<Gateway>],
    clients: usize,
    rate: u32,
    lasts: Duration,
    call: fn() -> (Operation, Json),
) -> (Vec<Duration>, usize) {
    let begun = Instant::now();
    let pause = match rate {
        0 => Duration::ZERO,
        rate => Duration::from_secs(1) * u32::try_from(clients).unwrap() / rate,
    };
    let client = |at: usize| {
        let gateway = Arc::clone(&gateways[at % gateways.len()]);
        tokio::spawn(async move {
            let (mut times, mut failed) = (Vec::new(), 0);
            let mut due = begun + pause * u32::try_from(at).unwrap() / u32::try_from(clients).unwrap();
            while due < begun + lasts {
                tokio::time::sleep_until(due.into()).await;
                let (operation, body) = call();
                let sent = Instant::now();
                let answer = gateway.call(operation, Bytes::from(body.to_string())).await;
                times.push(sent.elapsed());
                failed += usize::from(answer.is_err());
                due = if rate == 0 { Instant::now() } else { (due + pause).max(Instant::now() - pause) };
            }
            (times, failed)
        })
    };
    let (mut times, mut failed) = (Vec::new(), 0);
    for client in join_all((0..clients).map(client)).await {
        let (own, refused) = client.unwrap();
        times.extend(own);
        failed += refused;
    }
    times.sort();
    (times, failed)
}

fn adds() -> (Operation, Json) {
    add(1, "NONE")
}

/// The best hundred of a leaderboard.
fn top() -> (Operation, Json) {
    let body = json!({
        "TableName": "Scores", "KeyConditionExpression": "pk = :p", "Limit": 100, "ScanIndexForward": false,
        "ExpressionAttributeValues": { ":p": { "S": "game_x" } },
    });
    (Operation::Query, body)
}

/// Read units of one: 40 KB, eventually consistent.
const TOP_UNITS: f64 = 5.0;

/// A leaderboard of two hundred items of 400 bytes.
async fn fill(store: &Embedded) {
    let attribute = |name: &str| json!({ "AttributeName": name, "AttributeType": "S" });
    let key = |name: &str, kind: &str| json!({ "AttributeName": name, "KeyType": kind });
    let table = json!({
        "TableName": "Scores", "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [attribute("pk"), attribute("sk")],
        "KeySchema": [key("pk", "HASH"), key("sk", "RANGE")],
    });
    store.call(Operation::CreateTable, Bytes::from(table.to_string())).await.unwrap();
    for number in 0..200 {
        let item = json!({
            "pk": { "S": "game_x" }, "sk": { "S": format!("{number:010}") }, "name": { "S": "x".repeat(370) },
        });
        let put = json!({ "TableName": "Scores", "Item": item });
        store.call(Operation::PutItem, Bytes::from(put.to_string())).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "measures, for about 20 s"]
async fn measure_writes() {
    let lasts = Duration::from_secs(4);
    for (rule, count) in [("", 1), ("combine = true", 1), ("combine = true", 3)] {
        let store = store().await;
        let gateways = gateways(&store, rule, count).await;
        let (alone, _) = load(&gateways, 1, 20, Duration::from_secs(2), adds).await;
        store.calls.store(0, Ordering::Relaxed);
        store.throttled.store(0, Ordering::Relaxed);
        let begun = Instant::now();
        let (times, failed) = load(&gateways, 64, 5_000, lasts, adds).await;
        let seconds = begun.elapsed().as_secs_f64();
        let calls = store.calls.load(Ordering::Relaxed) as f64;
        let p = |times: &[Duration], part: usize| times[times.len() * part / 100].as_secs_f64() * 1e3;
        println!(
            "{count} gateways, {rule:?}: {:.0} ADD/s, {:.0} physical writes/s, {:.2} of them throttled, {failed} refused; p50 {:.1} ms, \
             p99 {:.1} ms, one write's p50 {:.1} ms",
            times.len() as f64 / seconds,
            calls / seconds,
            store.throttled.load(Ordering::Relaxed) as f64 / calls,
            p(&times, 50),
            p(&times, 99),
            p(&alone, 50),
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "measures, for about 20 s"]
async fn measure_reads() {
    for rule in ["", "coalesce = true", "cache_max_age_ms = 100"] {
        let store = store().await;
        let gateways = gateways(&store, rule, 1).await;
        for rate in [0, 2_400] {
            store.calls.store(0, Ordering::Relaxed);
            store.throttled.store(0, Ordering::Relaxed);
            let begun = Instant::now();
            let (times, failed) = load(&gateways, 64, rate, Duration::from_secs(5), top).await;
            let seconds = begun.elapsed().as_secs_f64();
            let of = |count: usize| count as f64 / seconds;
            let served = store.calls.load(Ordering::Relaxed) - store.throttled.load(Ordering::Relaxed);
            println!(
                "{rule:?}, {}: {:.0} Query/s answered, {:.0} refused; {:.0} calls/s, {:.0} read units/s taken",
                if rate == 0 { "one after the other".to_owned() } else { format!("{rate}/s wanted") },
                of(times.len() - failed),
                of(failed),
                of(store.calls.load(Ordering::Relaxed)),
                of(served) * TOP_UNITS,
            );
        }
    }
}
