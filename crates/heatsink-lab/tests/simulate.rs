//! Real time and virtual time agree: one recorded trace, through the embedded store with partitions
//! and through the simulator, with the same counts to within two percent: on a clock of the test's
//! own, where nothing is left to the machine, and over a real socket in real time, where the
//! arrivals at the partitions are what is recorded, so that the machine's speed does not matter.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions included")]

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
use heatsink::Gateway;
use heatsink_dynamo::{Error, Operation};
use heatsink_env::{Env, ManualEnv, MonotonicInstant, RealEnv};
use heatsink_gateway::http;
use heatsink_load::{Connection, Request};
use heatsink_physics::Quotas;
use heatsink_simulate::scenario::Loaded;
use heatsink_simulate::{Report, simulate};
use heatsink_store::Store;
use heatsink_store::embedded::Embedded;
use heatsink_store::partitioned::Partitioned;

/// A put of an item of `bytes` bytes.
struct Put {
    key: String,
    sort: String,
    bytes: usize,
}

impl Put {
    /// Two hot keys and many cold ones, small items and some that take three units.
    fn nth(nth: usize, rng: &mut fastrand::Rng) -> Put {
        let key = match rng.u32(..10) {
            0..5 => "hot".to_owned(),
            5..8 => "warm".to_owned(),
            _ => format!("cold-{}", rng.u32(..500)),
        };
        let bytes = if rng.u32(..20) == 0 { 2_500 } else { 200 };
        Put { key, sort: format!("{:08}", nth), bytes }
    }

    fn body(&self) -> Bytes {
        // Names and values count: pk 2, sk 2, v 1.
        let filler = self.bytes - 5 - self.key.len() - self.sort.len();
        Bytes::from(format!(
            r#"{{"TableName":"Trace","Item":{{"pk":{{"S":"{}"}},"sk":{{"S":"{}"}},"v":{{"S":"{}"}}}}}}"#,
            self.key,
            self.sort,
            "x".repeat(filler)
        ))
    }
}

/// Read and write units per second of the table.
const READ: u64 = 300;
const WRITE: u64 = 1_800;

/// A new store with the table.
async fn store(env: Arc<dyn Env>) -> Partitioned<Embedded> {
    let store = Partitioned::start(Embedded::memory().unwrap(), env, Quotas::default()).await.unwrap();
    let create = format!(
        r#"{{"TableName":"Trace","ProvisionedThroughput":{{"ReadCapacityUnits":{READ},"WriteCapacityUnits":{WRITE}}},
    "KeySchema":[{{"AttributeName":"pk","KeyType":"HASH"}},{{"AttributeName":"sk","KeyType":"RANGE"}}],
    "AttributeDefinitions":[{{"AttributeName":"pk","AttributeType":"S"}},{{"AttributeName":"sk","AttributeType":"S"}}]}}"#
    );
    store.call(Operation::CreateTable, Bytes::from(create)).await.unwrap();
    store
}

fn replay(trace: &str, seconds: f64) -> Report {
    let scenario = format!(
        "about = \"recorded\"\nduration = \"{:.0}s\"\n[[table]]\nname = \"T\"\nmode = \"provisioned\"\nread = {READ}\nwrite = {WRITE}\n\
         [[workload]]\nname = \"recorded\"\ntable = \"T\"\ntrace = \"t.csv\"\n",
        seconds.ceil() + 1.0
    );
    let loaded = Loaded::read("recorded.toml", &scenario, &mut |_| Ok(trace.to_owned()), false).unwrap();
    simulate(&loaded, &mut |_| {})
}

/// Accepted and throttled requests that tell something.
const ENOUGH: u64 = 1_000;

fn agree(trace: &str, seconds: f64, accepted: u64, throttled: u64) {
    let run = replay(trace, seconds).runs.remove(0);
    assert_eq!(run.offered, accepted + throttled);
    assert!(accepted >= ENOUGH && throttled >= ENOUGH, "both happen: {accepted} {throttled}");
    for (simulated, served) in [(run.accepted, accepted), (run.throttled, throttled)] {
        let off = (simulated as f64 / served as f64 - 1.0).abs();
        assert!(off <= 0.02, "simulated {simulated}, served {served}");
    }
    println!("simulated {} and {}, served {accepted} and {throttled}", run.accepted, run.throttled);
}

#[test]
fn a_recorded_trace_fares_alike() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let env = ManualEnv::seeded(1);
    let (mut trace, mut accepted, mut throttled) = (String::new(), 0, 0);
    let mut rng = fastrand::Rng::with_seed(5);
    runtime.block_on(async {
        let store = store(Arc::new(env.clone())).await;
        for nth in 0..16_000 {
            env.advance(Duration::from_nanos(rng.u64(..800_000)));
            let put = Put::nth(nth, &mut rng);
            trace.push_str(&format!(
                "{:.9},put,{},{},{}\n",
                env.now().0 as f64 / 1e9,
                put.key,
                put.sort,
                put.bytes
            ));
            match store.call(Operation::PutItem, put.body()).await {
                Ok(_) => accepted += 1,
                Err(_) => throttled += 1,
            }
        }
    });
    agree(&trace, env.now().0 as f64 / 1e9, accepted, throttled);
}

/// Writes down each request at the moment when it comes to the partitions, and counts what became
/// of it.
struct Recorded {
    store: Partitioned<Embedded>,
    env: RealEnv,
    start: MonotonicInstant,
    trace: Mutex<String>,
    accepted: AtomicU64,
    throttled: AtomicU64,
}

impl Store for Recorded {
    fn call(&self, operation: Operation, body: Bytes) -> BoxFuture<'_, Result<Bytes, Error>> {
        let Some((word, key, sort, bytes)) = line(operation, &body) else {
            return self.store.call(operation, body);
        };
        async move {
            {
                // Under the lock, so that the lines are in order of time.
                let mut trace = self.trace.lock().unwrap();
                let seconds = self.env.now().since(self.start).as_secs_f64();
                trace.push_str(&format!("{seconds:.9},{word},{key},{sort},{bytes}\n"));
            }
            let answer = self.store.call(operation, body).await;
            let code = answer.as_ref().err().map(|error| error.code.name());
            assert!(matches!(code, None | Some("ProvisionedThroughputExceededException")), "{code:?}");
            let counter = if code.is_none() { &self.accepted } else { &self.throttled };
            counter.fetch_add(1, Ordering::Relaxed);
            answer
        }
        .boxed()
    }
}

/// What stands in the trace: operation, key, sort key and bytes of the item. A read is of the item
/// that it names by its size.
fn line(operation: Operation, body: &[u8]) -> Option<(&'static str, String, String, usize)> {
    let body: serde_json::Value = serde_json::from_slice(body).ok()?;
    if body["TableName"] == heatsink_control::REGISTRY {
        return None;
    }
    let (word, key) = match operation {
        Operation::PutItem => ("put", &body["Item"]),
        Operation::UpdateItem => ("update", &body["Key"]),
        Operation::GetItem => ("get", &body["Key"]),
        _ => return None,
    };
    let text = |name: &str| key[name]["S"].as_str().unwrap().to_owned();
    let bytes = if word == "put" {
        ["pk", "sk", "v"].into_iter().map(|name| name.len() + text(name).len()).sum()
    } else {
        text("sk").parse().unwrap()
    };
    Some((word, text("pk"), text("sk"), bytes))
}

/// Eight connections, each with its next request when the last is answered: puts of 6 to 12 units
/// under one hot key, updates of one item of 9 units and eventually consistent reads of it, and
/// small puts everywhere.
async fn client(target: SocketAddr, nth: u64, recorded: &Recorded) {
    let mut rng = fastrand::Rng::with_seed(nth);
    let mut connection = Connection::open(target).await.unwrap();
    let item = format!(r#"{{"pk":{{"S":"hot"}},"sk":{{"S":"{ITEM}"}}}}"#);
    for turn in 0.. {
        let request = match rng.u32(..10) {
            0..4 => {
                let bytes = rng.usize(6_000..12_000);
                Request::new(
                    Operation::PutItem,
                    Put { key: "hot".to_owned(), sort: format!("{nth}-{turn:08}"), bytes }.body(),
                )
            }
            4..5 => Request::new(
                Operation::UpdateItem,
                format!(
                    r#"{{"TableName":"Trace","Key":{item},"UpdateExpression":"SET v = :v","ExpressionAttributeValues":{{":v":{{"S":"{}"}}}}}}"#,
                    "x".repeat(ITEM - "pkhotsk9000v".len())
                ),
            ),
            5..7 => Request::new(Operation::GetItem, format!(r#"{{"TableName":"Trace","Key":{item}}}"#)),
            _ => {
                let key = format!("cold-{}", rng.u32(..500));
                Request::new(
                    Operation::PutItem,
                    Put { key, sort: format!("{nth}-{turn:08}"), bytes: 200 }.body(),
                )
            }
        };
        connection.send(&request).await.unwrap();
        let counted = [&recorded.accepted, &recorded.throttled].map(|count| count.load(Ordering::Relaxed));
        let passed = recorded.env.now().since(recorded.start);
        // As long as both need on a slow machine, but not for ever.
        if passed > Duration::from_secs(3)
            && (counted.iter().all(|count| *count >= ENOUGH) || passed.as_secs() > 60)
        {
            return;
        }
    }
}

/// Bytes of the item that is updated and read.
const ITEM: usize = 9_000;

#[test]
fn a_trace_recorded_over_a_socket_fares_alike() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let env: Arc<dyn Env> = Arc::new(RealEnv);
    let recorded = runtime.block_on(async {
        let store = store(env.clone()).await;
        let recorded = Arc::new(Recorded {
            store,
            env: RealEnv,
            start: env.now(),
            trace: Mutex::default(),
            accepted: AtomicU64::new(0),
            throttled: AtomicU64::new(0),
        });
        let gateway = Gateway::builder(recorded.clone()).env(env.clone()).start().await.unwrap();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let target = listener.local_addr().unwrap();
        let (stop, stopped) = futures::channel::oneshot::channel::<()>();
        let stopped = stopped.map(|_| ());
        let server = tokio::spawn(gateway.serve(listener, http::Hosts::loopback(), stopped));
        // The item that is updated and read is there from the start.
        let put = Put { key: "hot".to_owned(), sort: ITEM.to_string(), bytes: ITEM };
        Connection::open(target)
            .await
            .unwrap()
            .send(&Request::new(Operation::PutItem, put.body()))
            .await
            .unwrap();
        join_all((0..8).map(|nth| client(target, nth, &recorded))).await;
        drop(stop);
        assert!(server.await.unwrap());
        recorded
    });
    let trace = recorded.trace.lock().unwrap();
    let last = trace.lines().last().unwrap().split(',').next().unwrap().parse().unwrap();
    let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    agree(&trace, last, count(&recorded.accepted), count(&recorded.throttled));
}
