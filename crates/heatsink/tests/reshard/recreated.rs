//! A mover is paused while its table is deleted and made again under the same name. The new table's
//! items are not its own: it moves none of them. Nor is any value of an index of it rewritten by
//! who rewrote those of the former table.
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::executor::block_on;
use heatsink_control::reshard_intent::{EndedAs, Steering};
use heatsink_control::{Changer, Fencing, Rules};
use heatsink_dynamo::Operation;
use heatsink_env::{Env, RealEnv};
use heatsink_reshard::{Phase, State};
use heatsink_store::Store;
use heatsink_store::embedded::Embedded;
use heatsink_workers::{
    Progress, Reshard, ReshardOptions, ValueAsked, ValueOptions, ValueReshard, WorkerError,
};
use serde_json::{Value as Json, json};

use crate::town::{INDEX, RULES, Town, value};

const ITEMS: usize = 60;

/// Pauses the mover before it moves the first item.
struct Pauses(Arc<Steering>);

impl Progress for Pauses {
    fn state(&self, state: State) {
        if matches!(state, State::Moving { phase: Phase::Move, .. }) {
            self.0.pause(true);
        }
    }

    fn moved(&self, _: u64) {
        panic!("an item was moved");
    }
}

async fn call(store: &Arc<dyn Store>, operation: Operation, body: &Json) -> Json {
    let answer = store.call(operation, Bytes::from(body.to_string())).await.unwrap();
    serde_json::from_slice(&answer).unwrap()
}

/// Makes the table, and its items under the whole key.
async fn made(store: &Arc<dyn Store>) {
    let table = json!({
        "TableName": "Scores", "BillingMode": "PAY_PER_REQUEST",
        "KeySchema": [{ "AttributeName": "pk", "KeyType": "HASH" }, { "AttributeName": "sk", "KeyType": "RANGE" }],
        "AttributeDefinitions": [{ "AttributeName": "pk", "AttributeType": "S" }, { "AttributeName": "sk", "AttributeType": "S" }],
    });
    call(store, Operation::CreateTable, &table).await;
    for nth in 0..ITEMS {
        let item = json!({ "pk": { "S": "game" }, "sk": { "S": format!("{nth:03}") } });
        call(store, Operation::PutItem, &json!({ "TableName": "Scores", "Item": item })).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_paused_mover_moves_nothing_of_a_table_that_was_made_again() {
    let store: Arc<dyn Store> = Arc::new(Embedded::memory().unwrap());
    let env: Arc<dyn Env> = Arc::new(RealEnv);
    made(&store).await;
    let rules = Rules::default();
    let first = Changer::beside(store.clone(), env.clone(), Fencing::exclusive(rules.fence()));
    first.freeze(false).await.unwrap();
    let prepared = Reshard::prepare(store.clone(), env.clone(), &rules, "Scores", b"game", 4, false);
    let reshard = prepared.await.unwrap();
    let steering = Arc::new(Steering::default());
    let steered = Arc::clone(&steering);
    let run = tokio::spawn(async move {
        let options = ReshardOptions { exclusive: true, rate: u32::MAX };
        reshard.run_steered(options, &steered, &Pauses(Arc::clone(&steered))).await
    });
    // It is paused in MOVE by now.
    RealEnv.sleep(Duration::from_millis(500)).await;
    assert!(!run.is_finished());
    call(&store, Operation::DeleteTable, &json!({ "TableName": "Scores" })).await;
    made(&store).await;
    steering.pause(false);
    let ended = run.await.unwrap();
    assert!(matches!(&ended, Err(WorkerError::Stopped(why)) if why.contains("was deleted")), "{ended:?}");
    let all = call(&store, Operation::Scan, &json!({ "TableName": "Scores" })).await;
    let items = all["Items"].as_array().unwrap();
    assert_eq!(items.len(), ITEMS);
    assert!(items.iter().all(|item| item["pk"]["S"] == "game"), "{items:?}");
}

/// Makes a table with an index, and items of one value of it.
async fn made_with_values(store: &Arc<dyn Store>) {
    call(store, Operation::CreateTable, &indexed()).await;
    for nth in 0..ITEMS {
        call(store, Operation::PutItem, &json!({ "TableName": "Scores", "Item": of_value(nth) })).await;
    }
}

fn indexed() -> Json {
    let key = |name: &str, kind: &str| json!({ "AttributeName": name, "KeyType": kind });
    let define = |name: &str| json!({ "AttributeName": name, "AttributeType": "S" });
    json!({
        "TableName": "Scores", "BillingMode": "PAY_PER_REQUEST", "KeySchema": [key("pk", "HASH"), key("sk", "RANGE")],
        "AttributeDefinitions": [define("pk"), define("sk"), define("status")],
        "GlobalSecondaryIndexes": [{ "IndexName": INDEX, "KeySchema": [key("status", "HASH")], "Projection": { "ProjectionType": "ALL" } }],
    })
}

fn of_value(nth: usize) -> Json {
    json!({ "pk": { "S": "p" }, "sk": { "S": format!("{nth:03}") }, "status": { "S": "open" } })
}

async fn assert_plain(store: &Arc<dyn Store>) {
    let all = call(store, Operation::Scan, &json!({ "TableName": "Scores" })).await;
    let items = all["Items"].as_array().unwrap();
    assert_eq!(items.len(), ITEMS);
    assert!(items.iter().all(|item| item["status"]["S"] == "open"), "{items:?}");
}

/// Past the gateways.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_paused_run_rewrites_no_value_of_a_table_that_was_made_again() {
    let store: Arc<dyn Store> = Arc::new(Embedded::memory().unwrap());
    let env: Arc<dyn Env> = Arc::new(RealEnv);
    made_with_values(&store).await;
    let rules = Rules::default();
    let asked = ValueAsked { table: "Scores", index: INDEX, value: "open", shards: 4 };
    let reshard = ValueReshard::prepare(store.clone(), env.clone(), &rules, asked).await.unwrap();
    let steering = Arc::new(Steering::default());
    let steered = Arc::clone(&steering);
    let run = tokio::spawn(async move {
        let options = ValueOptions { concurrency: 4, exclusive: true, delay: Duration::ZERO, rate: u32::MAX };
        reshard.run_steered(options, &steered, &Pauses(Arc::clone(&steered))).await
    });
    // It is paused in MOVE by now.
    RealEnv.sleep(Duration::from_millis(500)).await;
    assert!(!run.is_finished());
    call(&store, Operation::DeleteTable, &json!({ "TableName": "Scores" })).await;
    made_with_values(&store).await;
    steering.pause(false);
    let ended = run.await.unwrap();
    assert!(matches!(&ended, Err(WorkerError::Stopped(why)) if why.contains("was deleted")), "{ended:?}");
    assert_plain(&store).await;
}

/// Through a gateway, while another one rewrites items as fast as it may.
#[test]
fn a_gateway_rewrites_no_value_of_a_table_that_was_made_again() {
    let town = Town::indexed(RULES);
    for nth in 0..ITEMS {
        town.call(0, Operation::PutItem, &json!({ "TableName": "Scores", "Item": of_value(nth) })).unwrap();
    }
    let _carried = [town.carries(0, town.raw.clone())];
    // Six seconds of work, a page of the index.
    town.ask_for(value("open"), 4.into(), 1, 10);
    let spread = || town.scanned().iter().any(|item| item["status"]["S"] != "open");
    town.until("an item in its new form", || spread().then_some(()));
    let id = town.table_id();
    town.call(1, Operation::DeleteTable, &json!({ "TableName": "Scores" })).unwrap();
    town.call(1, Operation::CreateTable, &indexed()).unwrap();
    let mut rng = fastrand::Rng::with_seed(1);
    for nth in 0..ITEMS {
        let put = json!({ "TableName": "Scores", "Item": of_value(nth) });
        town.insist(&mut rng, Operation::PutItem, &put).unwrap();
    }
    let ended = town.until("the end", || {
        let intents = block_on(town.registry().intents(true)).unwrap().known;
        intents.into_iter().find(|one| one.table_id == id)?.ended
    });
    assert!(ended.how == EndedAs::Stopped && ended.text.contains("deleted"), "{ended:?}");
    town.runtime.block_on(assert_plain(&town.raw));
}
