//! A mover is paused while its table is deleted and made again under the same name. The new table's items are not its own: it moves none of them.
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use heatsink_control::{Changer, Fencing, Rules};
use heatsink_dynamo::Operation;
use heatsink_env::{Env, RealEnv};
use heatsink_mover::{Options, Progress, Reshard, ReshardError, Steering};
use heatsink_reshard::{Phase, State};
use heatsink_store::Store;
use heatsink_store::embedded::Embedded;
use serde_json::{Value as Json, json};

const ITEMS: usize = 60;

/// Pauses the mover before it moves the first item.
struct Pauses(Arc<Steering>);

impl Progress for Pauses {
    fn phase(&self, state: State) {
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
        let options = Options { exclusive: true, rate: u32::MAX };
        reshard.run_steered(options, &steered, &Pauses(Arc::clone(&steered))).await
    });
    // It is paused in MOVE by now.
    RealEnv.sleep(Duration::from_millis(500)).await;
    assert!(!run.is_finished());
    call(&store, Operation::DeleteTable, &json!({ "TableName": "Scores" })).await;
    made(&store).await;
    steering.pause(false);
    let ended = run.await.unwrap();
    assert!(matches!(&ended, Err(ReshardError::Stopped(why)) if why.contains("was deleted")), "{ended:?}");
    let all = call(&store, Operation::Scan, &json!({ "TableName": "Scores" })).await;
    let items = all["Items"].as_array().unwrap();
    assert_eq!(items.len(), ITEMS);
    assert!(items.iter().all(|item| item["pk"]["S"] == "game"), "{items:?}");
}
