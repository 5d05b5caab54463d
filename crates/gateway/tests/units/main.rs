//! What heat counts is what the store says that requests cost, under every kind of load; and
//! clients see nothing of it.
//!
//! `HEATSINK_SEED=N` runs one seed alone. A failure names its seed.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(clippy::disallowed_methods, reason = "the store answers in real time")]

mod answers;
mod load;
mod tap;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use heatsink_dynamo::{Error, Operation};
use heatsink_env::{Env, ManualEnv};
use heatsink_gateway::Gateway;
use heatsink_store::Store;
use heatsink_store::embedded::Embedded;
use serde_json::{Value as Json, json};

use self::load::Load;
use self::tap::Tap;

const SEEDS: u64 = 3;
const WINDOWS: usize = 8;
/// Rates are told as floating-point numbers.
const ROUNDED: f64 = 1e-6;

async fn create(store: &dyn Store) {
    let string = |name: &str| json!({ "AttributeName": name, "AttributeType": "S" });
    let key = |name: &str, kind: &str| json!({ "AttributeName": name, "KeyType": kind });
    let table = json!({
        "TableName": "games", "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [string("pk"), string("sk"), string("owner")],
        "KeySchema": [key("pk", "HASH"), key("sk", "RANGE")],
        "GlobalSecondaryIndexes": [{ "IndexName": "by-owner", "Projection": { "ProjectionType": "ALL" },
            "KeySchema": [key("owner", "HASH")] }],
    });
    store.call(Operation::CreateTable, Bytes::from(table.to_string())).await.unwrap();
}

/// A gateway that knows the keys of the table.
async fn gateway(store: Arc<dyn Store>, env: &ManualEnv) -> Gateway {
    create(&*store).await;
    let gateway = Gateway::builder(store).env(Arc::new(env.clone())).start().await.unwrap();
    let status = Arc::clone(gateway.status());
    tokio::spawn(async move { status.keep_heat().await });
    let get = json!({ "TableName": "games", "Key": { "pk": { "S": "first" }, "sk": { "S": "1" } } });
    let begun = Instant::now();
    loop {
        gateway.call(Operation::GetItem, get.to_string()).await.unwrap();
        tokio::time::sleep(Duration::from_millis(5)).await;
        env.advance(Duration::from_secs(1));
        if !parts(&gateway).await.is_empty() {
            return gateway;
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "no heat is counted");
    }
}

async fn parts(gateway: &Gateway) -> Vec<Json> {
    gateway.status().heat_shown().await["parts"].as_array().unwrap().clone()
}

/// How many keys of the table were shown of a window, and which of them lie outside their bounds.
/// Values of indexes are left out: what updates take of an index is shared with puts.
fn judged(parts: &[Json], truth: &HashMap<tap::Place, f64>) -> (usize, Vec<String>) {
    let (mut shown, mut outside) = (0, Vec::new());
    for part in parts.iter().filter(|part| part["index"].is_null()) {
        for key in part["keys"].as_array().unwrap() {
            let text = key["key"]["S"].as_str().unwrap().to_owned();
            let index = part["index"].as_str().map(str::to_owned);
            let place = (index, part["kind"].as_str().unwrap().to_owned(), text);
            let true_units = truth.get(&place).copied().unwrap_or(0.0);
            let of = |name: &str| key[name].as_f64().unwrap();
            let most = of("units_per_s") + of("sampling_error_units_per_s");
            shown += 1;
            if true_units < of("least_units_per_s") - ROUNDED || true_units > most + ROUNDED {
                outside.push(format!("{place:?}: {true_units}, shown as {key}"));
            }
        }
    }
    (shown, outside)
}

fn seeds() -> Vec<u64> {
    match std::env::var("HEATSINK_SEED") {
        Ok(seed) => vec![seed.parse().unwrap()],
        Err(_) => (1..=SEEDS).collect(),
    }
}

#[tokio::test]
async fn shown_bounds_hold_under_every_kind_of_load() {
    let (mut shown, mut outside, mut exact, mut total) = (0, Vec::new(), 0.0, 0.0);
    for seed in seeds() {
        let env = ManualEnv::seeded(seed);
        let tap = Arc::new(Tap::new(Embedded::memory().unwrap(), env.random()));
        let gateway = gateway(Arc::clone(&tap) as _, &env).await;
        let mut load = Load::new(env.random());
        load.fill(&gateway).await;
        tap.refuses(load.refused_share());
        for _ in 0..WINDOWS {
            env.advance(Duration::from_secs(1));
            tap.take();
            load.window(&gateway).await;
            env.advance(Duration::from_secs(1));
            let truth = tap.take();
            let parts = parts(&gateway).await;
            let (keys, wrong) = judged(&parts, &truth);
            shown += keys;
            outside.extend(wrong.into_iter().map(|key| format!("seed {seed}: {key}")));
            for part in parts.iter().filter(|part| part["index"].is_null()) {
                exact += part["units_per_s"].as_f64().unwrap();
            }
            total +=
                truth.iter().filter(|((index, ..), _)| index.is_none()).map(|(_, units)| units).sum::<f64>();
        }
    }
    let share = outside.len() as f64 / shown as f64;
    println!(
        "{shown} keys, {} outside their bounds ({share:.4}); {exact:.0} of {total:.0} units",
        outside.len()
    );
    // 0.3 %, and three standard deviations of so many draws.
    let allowed = 0.003 * shown as f64;
    assert!(shown > 200, "{shown} keys are no evidence");
    assert!(outside.len() as f64 <= allowed + 3.0 * allowed.sqrt(), "{share} of {shown}: {outside:#?}");
    assert!((exact / total - 1.0).abs() < 0.1, "{exact} of {total}");
}

#[tokio::test]
async fn clients_see_what_they_would_see_without_the_gateway() {
    let env = ManualEnv::seeded(7);
    let gateway = gateway(Arc::new(Embedded::memory().unwrap()), &env).await;
    let alone = Embedded::memory().unwrap();
    create(&alone).await;
    let mut load = Load::new(11);
    let mut requests = load.filling();
    requests.extend((0..1_500).map(|_| load.request()));
    let shown = |answer: Result<Bytes, Error>| answer.map_err(|error| error.body());
    let mut asking = 0;
    for (nth, (operation, mut body)) in requests.into_iter().enumerate() {
        // Some ask by themselves, in every form.
        match nth % 9 {
            0 => body["ReturnConsumedCapacity"] = "INDEXES".into(),
            1 => body["ReturnConsumedCapacity"] = "TOTAL".into(),
            2 => body["ReturnConsumedCapacity"] = "NONE".into(),
            3 => body["ReturnConsumedCapacity"] = "SOME".into(),
            _ => asking += 1,
        }
        // Transactions are repeated as their clients repeat them.
        if operation == Operation::TransactWriteItems {
            body["ClientRequestToken"] = format!("token-{}", nth / 50).into();
        }
        let body = Bytes::from(body.to_string());
        let expected = shown(alone.call(operation, body.clone()).await);
        assert_eq!(shown(gateway.call(operation, body.clone()).await), expected, "{operation:?} {body:?}");
    }
    assert!(asking > 500);
    for broken in
        ["", "{}", "[]", "{\"TableName\":\"games\"", "{\"TableName\":\"games\"}}", "{\"TableName\":7}", "{ }"]
    {
        for operation in
            [Operation::GetItem, Operation::Query, Operation::BatchWriteItem, Operation::TransactWriteItems]
        {
            let expected = shown(alone.call(operation, Bytes::from(broken)).await);
            assert_eq!(shown(gateway.call(operation, broken).await), expected, "{operation:?} {broken}");
        }
    }
}

#[tokio::test]
async fn what_is_refused_because_of_an_index_is_told_of_both() {
    let env = ManualEnv::seeded(3);
    let tap = Arc::new(Tap::new(Embedded::memory().unwrap(), 3));
    let gateway = gateway(Arc::clone(&tap) as _, &env).await;
    env.advance(Duration::from_secs(1));
    tap.refuses_for_index(true);
    // Each another item: a put that changes nothing writes nothing to an index.
    let put = |nth: u32| {
        let item = json!({ "pk": { "S": "game" }, "sk": { "S": nth.to_string() }, "owner": { "S": "hot" } });
        json!({ "TableName": "games", "Item": item }).to_string()
    };
    for nth in 0..10 {
        gateway.call(Operation::PutItem, put(nth)).await.unwrap_err();
    }
    tap.refuses_for_index(false);
    for nth in 0..10 {
        gateway.call(Operation::PutItem, put(nth)).await.unwrap();
    }
    env.advance(Duration::from_secs(1));
    let parts = parts(&gateway).await;
    let refused = |index: Json, key: &str| {
        let part = parts.iter().find(|part| part["index"] == index && part["kind"] == "write").unwrap();
        let keys = part["keys"].as_array().unwrap();
        keys.iter().find(|one| one["key"]["S"] == key).unwrap()["refused"].clone()
    };
    let of = |partition: f64, index: f64| json!({ "partition": partition, "index": index, "maximum": 0.0, "account": 0.0, "unknown": 0.0 });
    assert_eq!(refused(Json::Null, "game"), of(0.0, 0.5));
    assert_eq!(refused("by-owner".into(), "hot"), of(0.5, 0.0));
}
