//! Histories of one item whose writes are combined, at several gateways before one store that
//! loses answers and throttles: the checker finds an order for each.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::future::join_all;
use heatsink_control::{Fencing, Rules};
use heatsink_dynamo::{Error, Operation as Wire, Outcome};
use heatsink_env::{Env, ManualEnv};
use heatsink_gateway::Gateway;
use heatsink_history::{Answer, Call, Operation, Value, Verdict, check};
use serde_json::{Value as Json, json};

use super::slow::{Slow, lost, throttled};
use super::writes::{create, key};

fn request(operation: Operation) -> (Wire, Json) {
    let item = |value: Value| {
        let mut item = key();
        item["n"] = json!({ "N": value.number.to_string() });
        item
    };
    let named = |rest: Json| {
        let mut body = json!({ "TableName": "Votes", "Key": key() });
        body.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        body
    };
    match operation {
        Operation::Put(value) => (Wire::PutItem, json!({ "TableName": "Votes", "Item": item(value) })),
        Operation::Create(value) => {
            let condition = "attribute_not_exists(pk)";
            let body = json!({ "TableName": "Votes", "Item": item(value), "ConditionExpression": condition });
            (Wire::PutItem, body)
        }
        Operation::Delete => (Wire::DeleteItem, named(json!({}))),
        Operation::Add(amount) => {
            let body = named(json!({
                "UpdateExpression": "ADD n :v", "ReturnValues": "UPDATED_NEW",
                "ExpressionAttributeValues": { ":v": { "N": amount.to_string() } },
            }));
            (Wire::UpdateItem, body)
        }
        _ => (Wire::GetItem, named(json!({ "ConsistentRead": true }))),
    }
}

/// What was answered; `Err(false)` where nothing was done, `Err(true)` where nobody knows.
fn answered(operation: Operation, answer: Result<Bytes, Error>) -> Result<Answer, bool> {
    let body: Json = match answer {
        Ok(body) => serde_json::from_slice(&body).unwrap(),
        Err(error) if error.code.name() == "ConditionalCheckFailedException" => return Ok(Answer::Refused),
        Err(error) => return Err(error.outcome == Outcome::Unknown),
    };
    let number = |of: &Json| of["n"]["N"].as_str().map(|text| text.parse().unwrap());
    Ok(match operation {
        Operation::Add(_) => Answer::Number(number(&body["Attributes"]).unwrap()),
        Operation::Get => Answer::Saw(number(&body["Item"]).map(|number| Value { number, label: 0 })),
        _ => Answer::Done,
    })
}

async fn history(seed: u64) -> (Vec<Call>, usize) {
    let env = ManualEnv::seeded(seed);
    let below = |most: u64| env.random() % most;
    let store = Arc::new(Slow::new(1));
    create(&store.store).await;
    let rules = "[[rule]]\ntable = \"*\"\nstrategy = \"none\"\ncombine = true\n";
    let mut gateways = Vec::new();
    for _ in 0..=below(3) {
        let rules = Rules::read("rules", rules).unwrap();
        let fencing = Fencing::exclusive(rules.fence());
        let gateway = Gateway::builder(Arc::clone(&store) as _).rules(rules).fencing(fencing);
        gateways.push(gateway.start().await.unwrap());
    }
    store.writes();
    let clock = AtomicU64::new(1);
    let now = || clock.fetch_add(1, Ordering::SeqCst);
    let numbers = AtomicU64::new(1_000);
    let client = |at: usize| {
        let plans: Vec<u64> = (0..8).map(|_| env.random()).collect();
        let (gateways, store, numbers) = (&gateways, &store, &numbers);
        async move {
            let mut calls = Vec::new();
            for plan in plans {
                let value = || Value {
                    number: i64::try_from(numbers.fetch_add(1_000, Ordering::SeqCst)).unwrap(),
                    label: 0,
                };
                let operation = match plan % 16 {
                    0..10 => Operation::Add(i64::try_from(plan / 16 % 7).unwrap() + 1),
                    10 | 11 => Operation::Put(value()),
                    12 => Operation::Create(value()),
                    13 => Operation::Delete,
                    _ => Operation::Get,
                };
                match plan / 256 % 24 {
                    0 => store.fail(lost()),
                    1 => store.fail(throttled()),
                    2 => tokio::time::sleep(Duration::from_millis(2)).await,
                    _ => {}
                }
                let (wire, body) = request(operation);
                let invoked = now();
                let answer = gateways[at % gateways.len()].call(wire, Bytes::from(body.to_string())).await;
                match answered(operation, answer) {
                    Ok(answer) => {
                        calls.push(Call { invoked, returned: Some((now(), answer)), operation });
                    }
                    Err(true) => calls.push(Call { invoked, returned: None, operation }),
                    Err(false) => {}
                }
            }
            calls
        }
    };
    let calls = join_all((0..10).map(client)).await.into_iter().flatten().collect();
    (calls, store.writes())
}

#[tokio::test]
async fn histories_of_combined_writes_are_linearizable() {
    let seeds = std::env::var("HEATSINK_SEED").ok().and_then(|seed| seed.parse().ok());
    let seeds: Vec<u64> = seeds.map_or_else(|| (1..=40).collect(), |seed| vec![seed]);
    let (mut all, mut physical, mut unknown) = (0, 0, 0);
    for seed in seeds {
        let (calls, writes) = history(seed).await;
        match check(None, &calls) {
            Verdict::Linearizable => {}
            Verdict::Violation(violation) => panic!("seed {seed}: {}", violation.explain(&calls)),
            Verdict::Undecided(steps) => println!("seed {seed}: undecided after {steps}"),
        }
        all += calls.iter().filter(|call| call.operation != Operation::Get).count();
        unknown += calls.iter().filter(|call| call.returned.is_none()).count();
        physical += writes;
    }
    println!("{all} writes, {unknown} of them of unknown outcome, went as {physical}");
    assert!(physical * 3 < all * 2 && unknown > 0);
}
