//! Clients of a gateway that write one item at the same time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::future::join_all;
use heatsink_control::Rules;
use heatsink_dynamo::{Code, Error, Operation, Outcome};
use heatsink_gateway::Gateway;
use serde_json::{Value as Json, json};

use super::slow::{Slow, lost, throttled};
use super::writes::{Call, add, create, key};

const RULE: &str = "[[rule]]\ntable = \"*\"\nstrategy = \"none\"\ncombine = true\n";

pub async fn gateway(store: &Arc<Slow>, rules: &str) -> Gateway {
    create(&store.store).await;
    let rules = Rules::read("rules", rules).unwrap();
    Gateway::builder(Arc::clone(store) as _).rules(rules).start().await.unwrap()
}

pub async fn ask(gateway: &Gateway, (operation, body): Call) -> Result<Json, Error> {
    let answer = gateway.call(operation, Bytes::from(body.to_string())).await?;
    Ok(serde_json::from_slice(&answer).unwrap())
}

pub async fn all(gateway: &Gateway, calls: impl IntoIterator<Item = Call>) -> Vec<Result<Json, Error>> {
    join_all(calls.into_iter().map(|call| ask(gateway, call))).await
}

async fn n(gateway: &Gateway) -> Json {
    let get = json!({ "TableName": "Votes", "Key": key(), "ConsistentRead": true });
    ask(gateway, (Operation::GetItem, get)).await.unwrap()["Item"]["n"]["N"].clone()
}

#[tokio::test]
async fn adds_that_come_together_go_as_two_and_each_sees_its_own_sum() {
    let store = Arc::new(Slow::new(200));
    let gateway = gateway(&store, RULE).await;
    store.writes();
    let answers = all(&gateway, (0..100).map(|_| add(1, "UPDATED_NEW"))).await;
    let mut seen: Vec<u64> = answers
        .into_iter()
        .map(|answer| answer.unwrap()["Attributes"]["n"]["N"].as_str().unwrap().parse().unwrap())
        .collect();
    seen.sort_unstable();
    assert_eq!(seen, (1..=100).collect::<Vec<_>>());
    assert_eq!((store.writes(), n(&gateway).await), (2, "100".into()));
}

#[tokio::test]
async fn without_the_rule_each_goes_alone() {
    let store = Arc::new(Slow::new(1));
    let gateway =
        gateway(&store, "[[rule]]\ntable = \"*\"\nkeys = \"b\"\nstrategy = \"none\"\ncombine = true\n").await;
    store.writes();
    all(&gateway, (0..10).map(|_| add(1, "NONE"))).await;
    assert_eq!((store.writes(), n(&gateway).await), (10, "10".into()));
}

#[tokio::test]
async fn explain_says_that_it_waits() {
    let store = Arc::new(Slow::new(0));
    let gateway = gateway(&store, RULE).await;
    let why =
        async |(operation, body): Call| gateway.explain(operation, &Bytes::from(body.to_string())).await.why;
    assert!(why(add(1, "NONE")).await.contains("goes with others that wait"));
    let get = json!({ "TableName": "Votes", "Key": key() });
    assert!(!why((Operation::GetItem, get)).await.contains("wait"));
}

#[tokio::test]
async fn an_error_goes_to_whom_it_belongs() {
    let store = Arc::new(Slow::new(5));
    let gateway = gateway(&store, RULE).await;
    let set = json!({ "TableName": "Votes", "Item": { "pk": { "S": "a" }, "s": { "S": "x" } } });
    ask(&gateway, (Operation::PutItem, set)).await.unwrap();
    let wrong = || {
        let (operation, mut body) = add(1, "UPDATED_NEW");
        body["UpdateExpression"] = "ADD s :v".into();
        (operation, body)
    };
    store.writes();
    let calls = (0..33).map(|at| if at == 20 { wrong() } else { add(1, "UPDATED_NEW") });
    let answers = all(&gateway, calls).await;
    for (at, answer) in answers.iter().enumerate() {
        match answer {
            Ok(_) => assert_ne!(at, 20),
            Err(error) => assert_eq!((at, &error.code), (20, &Code::ValidationException), "{error}"),
        }
    }
    let writes = store.writes();
    assert!(writes < 14, "{writes} writes");
    assert_eq!(n(&gateway).await, "32");
}

#[tokio::test]
async fn an_outcome_that_is_unknown_is_so_for_all_and_a_throttle_is_retryable_to_all() {
    let store = Arc::new(Slow::new(300));
    let gateway = gateway(&store, RULE).await;
    let tokens = |answers: &[Result<Json, Error>], code: &Code, outcome| {
        let like = |answer: &&Result<Json, Error>| {
            answer.as_ref().is_err_and(|error| error.code == *code && error.outcome == outcome)
        };
        answers.iter().filter(like).count()
    };
    // The last one of these fails first.
    for error in [lost(), throttled()] {
        let (code, outcome) = (error.code.clone(), error.outcome);
        store.writes();
        let first = async { ask(&gateway, add(1, "NONE")).await };
        let rest = async {
            store.has_writes(1).await;
            store.fail(error);
            all(&gateway, (0..20).map(|_| add(1, "NONE"))).await
        };
        let (first, rest) = futures::join!(first, rest);
        first.unwrap();
        assert_eq!(tokens(&rest, &code, outcome), 20);
    }
    assert_eq!(n(&gateway).await, "22");
}

#[tokio::test]
async fn what_cannot_be_combined_waits_its_turn_and_who_is_dropped_is_left_out() {
    let store = Arc::new(Slow::new(300));
    let gateway = Arc::new(gateway(&store, RULE).await);
    store.writes();
    let conditional = || {
        let (operation, mut body) = add(10, "UPDATED_NEW");
        body["ConditionExpression"] = "n = :three".into();
        body["ExpressionAttributeValues"][":three"] = json!({ "N": "3" });
        (operation, body)
    };
    let calls =
        [add(1, "NONE"), add(1, "NONE"), add(1, "NONE"), conditional(), add(1, "NONE"), add(1, "NONE")];
    let answers = all(&gateway, calls).await;
    assert_eq!(answers[3].as_ref().unwrap()["Attributes"]["n"]["N"], "13");
    assert_eq!((store.writes(), n(&gateway).await), (4, "15".into()));

    let spawn = |gateway: &Arc<Gateway>| {
        let gateway = Arc::clone(gateway);
        tokio::spawn(async move { ask(&gateway, add(1, "NONE")).await })
    };
    // The one that leads is dropped under way: its own effect is unknown, and the next one leads.
    store.writes();
    let tasks: Vec<_> = (0..6).map(|_| spawn(&gateway)).collect();
    store.has_writes(1).await;
    tasks[0].abort();
    tasks[3].abort();
    let mut done = 0;
    for task in tasks {
        done += usize::from(task.await.is_ok_and(|answer| answer.is_ok()));
    }
    let n: usize = n(&gateway).await.as_str().unwrap().parse().unwrap();
    assert!(done == 4 && (n == 19 || n == 20), "{done} {n}");
}

#[tokio::test]
async fn a_leader_that_is_dropped_with_others_leaves_them_unknown_and_the_rest_goes_on() {
    let store = Arc::new(Slow::new(300));
    let gateway = Arc::new(gateway(&store, RULE).await);
    let spawn = || {
        let gateway = Arc::clone(&gateway);
        tokio::spawn(async move { ask(&gateway, add(1, "NONE")).await })
    };
    store.writes();
    let first = spawn();
    store.has_writes(1).await;
    let group: Vec<_> = (0..5).map(|_| spawn()).collect();
    first.await.unwrap().unwrap();
    store.has_writes(2).await;
    let late: Vec<_> = (0..5).map(|_| spawn()).collect();
    tokio::time::sleep(Duration::from_millis(2)).await;
    group[0].abort();
    for (at, task) in group.into_iter().enumerate() {
        let answer = task.await;
        assert!(at == 0 && answer.is_err() || answer.unwrap().unwrap_err().outcome == Outcome::Unknown);
    }
    for task in late {
        task.await.unwrap().unwrap();
    }
    let get = json!({ "TableName": "Votes", "Key": key() });
    let told = ask(&gateway, (Operation::GetItem, get)).await.unwrap();
    // Whether the five were carried out is not known.
    assert!(["6", "11"].contains(&told["Item"]["n"]["N"].as_str().unwrap()), "{told}");
}

#[tokio::test]
async fn so_many_wait_and_no_more() {
    let store = Arc::new(Slow::new(50));
    let gateway = gateway(&store, RULE).await;
    store.writes();
    let answers = all(&gateway, (0..1_200).map(|_| add(1, "NONE"))).await;
    let refused: Vec<_> = answers.into_iter().filter_map(Result::err).collect();
    assert!(refused.iter().all(|error| error.code == Code::ThrottlingException && error.retryable()));
    assert_eq!((refused.len(), store.writes(), n(&gateway).await), (199, 2, "1001".into()));
    let put = |_| {
        let item = json!({ "pk": { "S": "a" }, "s": { "S": "x".repeat(300_000) } });
        (Operation::PutItem, json!({ "TableName": "Votes", "Item": item }))
    };
    let answers = all(&gateway, (0..10).map(put)).await;
    assert_eq!(answers.into_iter().filter_map(Result::err).count(), 6);
}

#[tokio::test]
async fn each_is_told_its_part_of_what_they_consumed() {
    let store = Arc::new(Slow::new(10));
    let gateway = gateway(&store, RULE).await;
    let asks = |how: &str| {
        let (operation, mut body) = add(1, "NONE");
        body["ReturnConsumedCapacity"] = how.into();
        (operation, body)
    };
    let calls = [asks("TOTAL"), asks("TOTAL"), asks("INDEXES"), asks("NONE"), asks("TOTAL")];
    let answers: Vec<Json> = all(&gateway, calls).await.into_iter().map(Result::unwrap).collect();
    let units = |at: usize| answers[at]["ConsumedCapacity"]["CapacityUnits"].as_f64();
    assert_eq!([0, 1, 2, 3, 4].map(units), [Some(1.0), Some(0.25), Some(0.25), None, Some(0.25)]);
    assert_eq!(answers[2]["ConsumedCapacity"]["Table"]["CapacityUnits"], 0.25);
    assert!(answers[1]["ConsumedCapacity"]["Table"].is_null());
}

#[tokio::test]
async fn a_table_with_a_stream_is_left_alone_unless_its_rule_says_so() {
    for (flag, writes) in [("", 10), ("combine_streams = true\n", 2)] {
        let store = Arc::new(Slow::new(0));
        let gateway = gateway(&store, &format!("{RULE}{flag}")).await;
        let stream = json!({ "StreamEnabled": true, "StreamViewType": "NEW_IMAGE" });
        let update = json!({ "TableName": "Votes", "StreamSpecification": stream });
        ask(&gateway, (Operation::UpdateTable, update)).await.unwrap();
        store.writes();
        store.takes(10);
        all(&gateway, (0..10).map(|_| add(1, "NONE"))).await;
        assert_eq!(store.writes(), writes);
    }
}

#[tokio::test]
async fn five_thousand_a_second_by_sixty_four_clients() {
    let store = Arc::new(Slow::new(5));
    let gateway = Arc::new(gateway(&store, RULE).await);
    store.writes();
    let begun = Instant::now();
    let client = |_| {
        let gateway = Arc::clone(&gateway);
        tokio::spawn(async move {
            let mut times = Vec::new();
            while begun.elapsed() < Duration::from_secs(1) {
                let sent = Instant::now();
                ask(&gateway, add(1, "UPDATED_NEW")).await.unwrap();
                times.push(sent.elapsed());
            }
            times
        })
    };
    let mut times = Vec::new();
    for client in join_all((0..64).map(client)).await {
        times.extend(client.unwrap());
    }
    times.sort();
    let (writes, p99) = (store.writes(), times[times.len() * 99 / 100]);
    println!("{} adds as {writes} writes, p99 {p99:?}", times.len());
    assert_eq!(n(&gateway).await, times.len().to_string());
    assert!(writes < 400);
}
