//! A gateway stops while a key is about to move. Writes of the key wait for that gateway's short
//! lease, not for its long one; puts without condition wait for no more. When the gateway goes on,
//! it writes where the key has moved to.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use heatsink_control::{Changer, Control, Fencing, Rules};
use heatsink_dynamo::{Error, Operation, Outcome};
use heatsink_env::{Env, RealEnv};
use heatsink_gateway::{Limits, Service};
use heatsink_reshard::{Phase, State};
use heatsink_store::Store;
use heatsink_store::embedded::Embedded;
use heatsink_workers::{Progress, Reshard, ReshardOptions};
use serde_json::{Value as Json, json};
use tokio::task::AbortHandle;

const LEASE: Duration = Duration::from_secs(6);
const STRAGGLER: Duration = Duration::from_secs(2);
const RULES: &str = r#"rule = []
[fence]
lease = "6s"
heartbeat = "1s"
poll = "100ms"
straggler = "2s"
"#;

/// Stops a gateway when HOLD is on record, which all gateways have yet to hear of.
struct StopsAtHold(Mutex<Option<AbortHandle>>);

impl Progress for StopsAtHold {
    fn state(&self, state: State) {
        if matches!(state, State::Moving { phase: Phase::Hold, .. })
            && let Some(gateway) = self.0.lock().unwrap().take()
        {
            gateway.abort();
        }
    }
}

async fn call(service: &Service, operation: Operation, body: &Json) -> Result<Json, Error> {
    let answer = service.call(operation, Bytes::from(body.to_string())).await;
    answer.map(|body| serde_json::from_slice(&body).unwrap())
}

fn put(sort: &str, value: u64) -> Json {
    let item = json!({ "pk": { "S": "game" }, "sk": { "S": sort }, "v": { "N": value.to_string() } });
    json!({ "TableName": "Scores", "Item": item })
}

/// Writes in turn, one after the other, until it is over; gives the longest time, in milliseconds,
/// that a write took to be done.
async fn write(service: Arc<Service>, over: Arc<AtomicBool>, blind: bool) -> u64 {
    let mut longest = 0;
    let mut value = 0;
    while !over.load(Ordering::Relaxed) {
        value += 1;
        let mut body = put(&format!("{}-{blind}", value % 20), value);
        if !blind {
            body["ConditionExpression"] = json!("attribute_not_exists(pk) OR v < :v");
            body["ExpressionAttributeValues"] = json!({ ":v": { "N": value.to_string() } });
        }
        let begun = RealEnv.now();
        loop {
            match call(&service, Operation::PutItem, &body).await {
                Ok(_) => break,
                Err(error) => assert!(error.retryable() && error.outcome == Outcome::NotDone, "{error}"),
            }
            RealEnv.sleep(Duration::from_millis(5)).await;
        }
        longest = longest.max(u64::try_from(RealEnv.now().since(begun).as_millis()).unwrap());
        RealEnv.sleep(Duration::from_millis(1)).await;
    }
    longest
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_that_stops_holds_the_key_up_for_its_short_lease_alone() {
    let raw: Arc<dyn Store> = Arc::new(Embedded::memory().unwrap());
    let table = json!({
        "TableName": "Scores", "BillingMode": "PAY_PER_REQUEST",
        "KeySchema": [{ "AttributeName": "pk", "KeyType": "HASH" }, { "AttributeName": "sk", "KeyType": "RANGE" }],
        "AttributeDefinitions": [{ "AttributeName": "pk", "AttributeType": "S" }, { "AttributeName": "sk", "AttributeType": "S" }],
    });
    raw.call(Operation::CreateTable, Bytes::from(table.to_string())).await.unwrap();
    let env: Arc<dyn Env> = Arc::new(RealEnv);
    let rules = Rules::read("rules", RULES).unwrap();
    let first = Changer::beside(raw.clone(), env.clone(), Fencing::exclusive(rules.fence()));
    first.freeze(false).await.unwrap();
    let mut gateways = Vec::new();
    let mut kept = Vec::new();
    for name in ["living", "stopped"] {
        let fencing = Fencing::shared(rules.fence(), name);
        let control = Control::join(raw.clone(), env.clone(), rules.clone(), fencing).await.unwrap();
        let keeps = control.clone();
        kept.push(tokio::spawn(async move { keeps.keep().await }).abort_handle());
        let service = Service::new(raw.clone(), control, env.clone(), Limits::default(), "us-east-1");
        gateways.push(Arc::new(service));
    }
    let [living, stopped] = [0, 1].map(|nth| Arc::clone(&gateways[nth]));
    for service in [&living, &stopped] {
        call(service, Operation::PutItem, &put("first", 1)).await.unwrap();
    }
    let over = Arc::new(AtomicBool::new(false));
    let blind = tokio::spawn(write(living.clone(), over.clone(), true));
    let conditional = tokio::spawn(write(living.clone(), over.clone(), false));

    let progress = StopsAtHold(Mutex::new(kept.pop()));
    let reshard = Reshard::prepare(raw.clone(), env.clone(), &rules, "Scores", b"game", 4, false);
    let options = ReshardOptions { exclusive: false, rate: u32::MAX };
    let report = reshard.await.unwrap().run(options, &progress).await.unwrap();
    assert_eq!(report.to, 4);
    assert!(progress.0.lock().unwrap().is_none(), "the gateway was stopped");
    over.store(true, Ordering::Relaxed);
    let longest = AtomicU64::new(0);
    for (what, task, bound) in [
        ("puts without condition", blind, Duration::from_millis(1_500)),
        ("conditional puts", conditional, STRAGGLER + Duration::from_millis(1_500)),
    ] {
        let took = Duration::from_millis(task.await.unwrap());
        println!("{what}: the longest took {took:?}");
        assert!(took < bound && bound < LEASE, "{what}: {took:?}");
        longest.fetch_max(u64::try_from(took.as_millis()).unwrap(), Ordering::Relaxed);
    }
    assert!(longest.into_inner() > 100, "somebody had to wait");

    // It last heard of PREPARE.
    for sort in 0..20 {
        call(&stopped, Operation::PutItem, &put(&sort.to_string(), 7)).await.unwrap();
        let key = json!({ "pk": { "S": "game" }, "sk": { "S": sort.to_string() } });
        let get = json!({ "TableName": "Scores", "Key": key, "ConsistentRead": true });
        let found = call(&living, Operation::GetItem, &get).await.unwrap();
        assert_eq!(found["Item"]["v"]["N"], "7", "{sort}");
    }
    let query = json!({
        "TableName": "Scores", "KeyConditionExpression": "pk = :p", "ExpressionAttributeValues": { ":p": { "S": "game" } },
        "ConsistentRead": true,
    });
    let all = call(&living, Operation::Query, &query).await.unwrap();
    assert_eq!(all["Count"], 61);
    let old = raw.call(Operation::Query, Bytes::from(query.to_string())).await.unwrap();
    let old: Json = serde_json::from_slice(&old).unwrap();
    assert!(
        old["Count"].as_u64() < Some(61),
        "nobody has written everything where the key was: {}",
        old["Count"]
    );
}
