//! Real time and virtual time agree: one recorded trace, through the embedded store with partitions and through the simulator,
//! with the same counts to within two percent. The store runs on a clock of the test's own, so that nothing is left to the machine.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions included")]

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use heatsink_dynamo::Operation;
use heatsink_env::{Env, ManualEnv};
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

const CREATE: &str = r#"{"TableName":"Trace","BillingMode":"PROVISIONED","ProvisionedThroughput":{"ReadCapacityUnits":100,"WriteCapacityUnits":1800},
    "KeySchema":[{"AttributeName":"pk","KeyType":"HASH"},{"AttributeName":"sk","KeyType":"RANGE"}],
    "AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"S"},{"AttributeName":"sk","AttributeType":"S"}]}"#;

async fn store(env: Arc<dyn Env>) -> Partitioned<Embedded> {
    let store = Partitioned::start(Embedded::memory().unwrap(), env).await.unwrap();
    store.call(Operation::CreateTable, Bytes::from_static(CREATE.as_bytes())).await.unwrap();
    store
}

fn replay(trace: &str, seconds: f64) -> Report {
    let scenario = format!(
        "about = \"recorded\"\nduration = \"{:.0}s\"\n[[table]]\nname = \"T\"\nmode = \"provisioned\"\nread = 100\nwrite = 1_800\n\
         [[workload]]\nname = \"recorded\"\ntable = \"T\"\ntrace = \"t.csv\"\n",
        seconds.ceil() + 1.0
    );
    let loaded = Loaded::read("recorded.toml", &scenario, &mut |_| Ok(trace.to_owned()), false).unwrap();
    simulate(&loaded, &mut |_| {})
}

fn agree(trace: &str, seconds: f64, accepted: u64, throttled: u64) {
    let run = replay(trace, seconds).runs.remove(0);
    assert_eq!(run.offered, accepted + throttled);
    assert!(accepted > 1_000 && throttled > 1_000, "both happen: {accepted} {throttled}");
    for (simulated, served) in [(run.accepted, accepted), (run.throttled, throttled)] {
        let off = (simulated as f64 / served as f64 - 1.0).abs();
        assert!(off <= 0.02, "simulated {simulated}, served {served}");
    }
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
