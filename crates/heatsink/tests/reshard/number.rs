//! A key that is a number gets shards, others, and none again, while clients write and read it
//! through three gateways in all its spellings. Each client keeps account of its own items.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fastrand::Rng;
use futures::executor::block_on;
use heatsink_control::Fencing;
use heatsink_control::reshard_intent::{EndedAs, Subject};
use heatsink_dynamo::{KeyType, Operation};
use heatsink_env::RealEnv;
use heatsink_store::embedded::Embedded;
use heatsink_workers::{Reshard, WorkerError};
use serde_json::{Value as Json, json};

use super::town::{RULES, Town, table};

const KEY: Subject<'static> = Subject { index: None, key: b"-12.5", key_type: KeyType::N };
const SPELLINGS: [&str; 4] = ["-12.5", "-12.50", "-1.25E1", "-0.0125e3"];

fn town() -> Arc<Town> {
    let mut numbers = table(&[]);
    for attribute in numbers["AttributeDefinitions"].as_array_mut().unwrap() {
        if attribute["AttributeName"] == "pk" {
            attribute["AttributeType"] = json!("N");
        }
    }
    Town::over(
        Arc::new(Embedded::memory().unwrap()),
        &numbers,
        &["one", "two", "three"],
        RULES,
        Fencing::shared,
    )
}

/// Writes and reads items of its own until it is over; how often.
fn client(town: &Town, name: usize, over: &AtomicBool) -> usize {
    let mut rng = Rng::with_seed(name as u64);
    let mut own: BTreeMap<String, u64> = BTreeMap::new();
    let mut times = 0;
    while !over.load(Ordering::Relaxed) {
        times += 1;
        let pk = json!({ "N": SPELLINGS[rng.usize(..SPELLINGS.len())] });
        let sort = format!("{name}-{:02}", rng.u32(..30));
        let key = json!({ "pk": pk, "sk": { "S": sort } });
        match rng.u32(..4) {
            0 => {
                let item = json!({ "pk": pk, "sk": { "S": sort }, "v": { "N": times.to_string() } });
                town.insist(&mut rng, Operation::PutItem, &json!({ "TableName": "Scores", "Item": item }))
                    .unwrap();
                own.insert(sort, times as u64);
            }
            1 => {
                let body = json!({ "TableName": "Scores", "Key": key });
                town.insist(&mut rng, Operation::DeleteItem, &body).unwrap();
                own.remove(&sort);
            }
            2 => {
                let body = json!({ "TableName": "Scores", "Key": key, "ConsistentRead": true });
                let answer = town.insist(&mut rng, Operation::GetItem, &body).unwrap();
                let wanted = own.get(&sort).map(|value| {
                    json!({ "pk": { "N": "-12.5" }, "sk": { "S": sort }, "v": { "N": value.to_string() } })
                });
                assert_eq!(answer.get("Item"), wanted.as_ref());
            }
            _ => {
                let mut found = Vec::new();
                let mut body = json!({
                    "TableName": "Scores", "ConsistentRead": true, "Limit": 7,
                    "KeyConditionExpression": "pk = :p AND begins_with(sk, :s)",
                    "ExpressionAttributeValues": { ":p": pk, ":s": { "S": format!("{name}-") } },
                });
                loop {
                    let page = town.insist(&mut rng, Operation::Query, &body).unwrap();
                    found.extend(page["Items"].as_array().unwrap().clone());
                    match page.get("LastEvaluatedKey") {
                        Some(last) => {
                            assert_eq!(last["pk"], json!({ "N": "-12.5" }));
                            body["ExclusiveStartKey"] = last.clone();
                        }
                        None => break,
                    }
                }
                let item = |(sort, value): (&String, &u64)| json!({ "pk": { "N": "-12.5" }, "sk": { "S": sort }, "v": { "N": value.to_string() } });
                assert_eq!(found, own.iter().map(item).collect::<Vec<Json>>());
            }
        }
    }
    times
}

/// The physical keys of all items.
fn lies(town: &Town) -> BTreeSet<String> {
    town.scanned().iter().map(|item| item["pk"]["N"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_number_moves_there_and_back_while_clients_use_it() {
    let town = town();
    let over = Arc::new(AtomicBool::new(false));
    let clients: Vec<_> = (0..3)
        .map(|name| {
            let (town, over) = (Arc::clone(&town), Arc::clone(&over));
            std::thread::spawn(move || client(&town, name, &over))
        })
        .collect();
    let _carried = town.carry();
    for (asked, shards) in (1..).zip([4_u16, 13, 3, 1]) {
        town.ask_for(KEY, shards.into(), asked, u32::MAX);
        let (how, text) = town.ended_for(KEY);
        assert_eq!(how, EndedAs::Moved, "{text}");
        let lies = lies(&town);
        assert!(lies.len() <= usize::from(shards) && (lies.len() > 1) == (shards > 1), "{lies:?}");
        assert!(lies.iter().all(|key| key == "-12.5" || key.starts_with("-12.500000709551")), "{lies:?}");
    }
    over.store(true, Ordering::Relaxed);
    let times: usize = clients.into_iter().map(|client| client.join().unwrap()).sum();
    assert!(times > 100, "{times}");
}

#[test]
fn a_number_without_room_is_refused_by_name() {
    let town = town();
    for key in ["0.0000001", "100000000000000000000", "-12.5000007095510003"] {
        let prepared = Reshard::prepare(
            town.raw.clone(),
            Arc::new(RealEnv),
            &town.rules,
            "Scores",
            key.as_bytes(),
            4,
            false,
        );
        match block_on(prepared) {
            Err(WorkerError::Usage(why)) => {
                assert!(why.contains(key) && why.contains("has no room for a shard"), "{why}");
            }
            other => panic!("{key}: {:?}", other.map(|_| "prepared")),
        }
    }
}
