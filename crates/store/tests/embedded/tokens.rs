//! `ClientRequestToken`: once, for ten minutes, across restarts.

#![allow(clippy::panic, clippy::unwrap_used, reason = "a test helper fails by panicking")]

use std::sync::Arc;
use std::time::Duration;

use heatsink_dynamo::{Code, Operation};
use heatsink_env::ManualEnv;
use heatsink_store::embedded::{Embedded, Synchronous};
use proptest::prelude::*;
use serde_json::{Value as Json, json};

use crate::embedded::support::{call, folder, refused, table};

fn add(token: &str, amount: u32) -> Json {
    json!({"ClientRequestToken": token, "TransactItems": [{"Update": {
        "TableName": "game", "Key": {"pk": {"S": "a"}, "sk": {"S": "b"}},
        "UpdateExpression": "ADD n :one", "ExpressionAttributeValues": {":one": {"N": amount.to_string()}},
    }}]})
}

fn statement(token: &str, amount: u32) -> Json {
    json!({"ClientRequestToken": token, "TransactStatements": [
        {"Statement": format!("UPDATE game SET n = n + {amount} WHERE pk = 'a' AND sk = 'b'")},
    ]})
}

async fn counted(store: &Embedded) -> Json {
    let get = json!({"TableName": "game", "Key": {"pk": {"S": "a"}, "sk": {"S": "b"}}});
    call(store, Operation::GetItem, get).await["Item"]["n"]["N"].clone()
}

#[tokio::test]
async fn a_token_outlives_a_restart() {
    let folder = folder();
    let path = folder.path().join("data.db");
    let env = Arc::new(ManualEnv::seeded(1));
    let open = || Embedded::file_with(&path, Synchronous::default(), env.clone()).unwrap();
    let mut store = open();
    table(&store, "game").await;
    for round in 0..3 {
        let done = call(&store, Operation::TransactWriteItems, add("t", 1)).await;
        assert_eq!(done, json!({}), "{round}");
        assert_eq!(counted(&store).await, "1", "{round}");
        let other = refused(&store, Operation::TransactWriteItems, add("t", 2)).await;
        assert_eq!(other.code, Code::IdempotentParameterMismatchException);
        // Tokens of the two operations are apart.
        let done = call(&store, Operation::ExecuteTransaction, statement("t", 0)).await;
        assert_eq!(done, json!({"Responses": []}), "{round}");
        let other = refused(&store, Operation::ExecuteTransaction, statement("t", 2)).await;
        assert_eq!(other.code, Code::IdempotentParameterMismatchException);
        drop(store);
        store = open();
        env.advance(Duration::from_secs(60));
    }
    env.advance(Duration::from_secs(600));
    call(&store, Operation::TransactWriteItems, add("t", 1)).await;
    assert_eq!(counted(&store).await, "2", "ten minutes later it is another request");
    assert_eq!(call(&store, Operation::ListTables, json!({})).await, json!({"TableNames": ["game"]}));
}

#[tokio::test]
async fn what_failed_is_tried_again_and_shows_only_its_own_actions() {
    let store = Embedded::memory().unwrap();
    table(&store, "game").await;
    let mut body = add("t", 1);
    body["TransactItems"][0]["Update"]["ConditionExpression"] = json!("attribute_exists(pk)");
    let mut all = vec![body["TransactItems"][0].clone()];
    all.extend((0..99).map(
        |n| json!({"Put": {"TableName": "game", "Item": {"pk": {"S": "p"}, "sk": {"S": n.to_string()}}}}),
    ));
    body["TransactItems"] = all.into();
    let error = refused(&store, Operation::TransactWriteItems, body.clone()).await;
    assert_eq!(error.code, Code::TransactionCanceledException);
    assert_eq!(error.members["CancellationReasons"].as_array().unwrap().len(), 100);
    let scan = json!({"TableName": "game", "Select": "COUNT"});
    assert_eq!(call(&store, Operation::Scan, scan.clone()).await["Count"], 0, "nothing was written");
    let put = json!({"TableName": "game", "Item": {"pk": {"S": "a"}, "sk": {"S": "b"}}});
    call(&store, Operation::PutItem, put).await;
    // A hundred actions and their token.
    for _ in 0..2 {
        call(&store, Operation::TransactWriteItems, body.clone()).await;
    }
    assert_eq!(counted(&store).await, "1");
    assert_eq!(call(&store, Operation::Scan, scan).await["Count"], 100);
}

#[tokio::test]
async fn a_replay_is_charged_as_a_read_of_what_was_written() {
    let store = Embedded::memory().unwrap();
    table(&store, "game").await;
    let item = json!({"pk": {"S": "a"}, "sk": {"S": "b"}, "n": {"N": "1"}, "pad": {"S": "x".repeat(8_500)}});
    let body = json!({"ClientRequestToken": "t", "ReturnConsumedCapacity": "TOTAL", "TransactItems": [
        {"Put": {"TableName": "game", "Item": item}},
        {"Put": {"TableName": "game", "Item": {"pk": {"S": "c"}, "sk": {"S": "d"}}}},
    ]});
    let units = |answer: &Json| answer["ConsumedCapacity"][0]["CapacityUnits"].clone();
    let first = call(&store, Operation::TransactWriteItems, body.clone()).await;
    assert_eq!(units(&first), 20.0, "{first}");
    let again = call(&store, Operation::TransactWriteItems, body).await;
    assert_eq!(units(&again), 8.0, "{again}");
    let mut body = statement("t", 1);
    body["ReturnConsumedCapacity"] = json!("TOTAL");
    let first = call(&store, Operation::ExecuteTransaction, body.clone()).await;
    assert_eq!(units(&first), 18.0, "{first}");
    let again = call(&store, Operation::ExecuteTransaction, body).await;
    assert_eq!((units(&again), &again["Responses"]), (json!(6.0), &json!([])), "{again}");
}

#[tokio::test]
async fn reads_under_a_token_are_not_kept() {
    let store = Embedded::memory().unwrap();
    table(&store, "game").await;
    let read = json!({"ClientRequestToken": "t", "TransactStatements": [{"Statement": "SELECT n FROM game WHERE pk = 'a' AND sk = 'b'"}]});
    assert_eq!(call(&store, Operation::ExecuteTransaction, read.clone()).await, json!({"Responses": [{}]}));
    call(&store, Operation::TransactWriteItems, add("t", 1)).await;
    assert_eq!(
        call(&store, Operation::ExecuteTransaction, read).await,
        json!({"Responses": [{"Item": {"n": {"N": "1"}}}]})
    );
    let other = refused(&store, Operation::ExecuteTransaction, statement("t", 1)).await;
    assert_eq!(other.code, Code::IdempotentParameterMismatchException);
}

#[derive(Clone, Debug)]
enum Step {
    Send { token: u8, amount: u32 },
    Wait { seconds: u64 },
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..4_u8, 1..3_u32).prop_map(|(token, amount)| Step::Send { token, amount }),
        2 => (1..400_u64).prop_map(|seconds| Step::Wait { seconds }),
        1 => Just(Step::Restart),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// Whatever comes, every request has the effect of its first time within ten minutes.
    #[test]
    fn tokens_hold_whatever_comes(steps in prop::collection::vec(step(), 1..25)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let folder = folder();
            let path = folder.path().join("data.db");
            let env = Arc::new(ManualEnv::seeded(1));
            let mut store = Some(Embedded::file_with(&path, Synchronous::default(), env.clone()).unwrap());
            table(store.as_ref().unwrap(), "game").await;
            let (mut now, mut sum) = (0_u64, 0_u32);
            let mut used: Vec<Option<(u64, u32)>> = vec![None; 4];
            for step in steps {
                match step {
                    Step::Wait { seconds } => {
                        now += seconds;
                        env.advance(Duration::from_secs(seconds));
                    }
                    Step::Restart => {
                        drop(store.take());
                        store = Some(Embedded::file_with(&path, Synchronous::default(), env.clone()).unwrap());
                    }
                    Step::Send { token, amount } => {
                        let slot = &mut used[usize::from(token)];
                        let store = store.as_ref().unwrap();
                        let body = add(&format!("token-{token}"), amount);
                        match slot.filter(|(when, _)| now < when + 600) {
                            Some((_, known)) if known != amount => {
                                let error = refused(store, Operation::TransactWriteItems, body).await;
                                assert_eq!(error.code, Code::IdempotentParameterMismatchException);
                            }
                            known => {
                                call(store, Operation::TransactWriteItems, body).await;
                                if known.is_none() {
                                    *slot = Some((now, amount));
                                    sum += amount;
                                }
                            }
                        }
                        if sum > 0 {
                            assert_eq!(counted(store).await, sum.to_string());
                        }
                    }
                }
            }
        });
    }
}
