//! Keys that become counters, get more fragments, and fewer: what the command says and refuses, and
//! three gateways over one store.
//!
//! Not here: what can go wrong meanwhile (the simulation, and the model of `heatsink-reshard`).

use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::Path;

use bytes::Bytes;
use heatsink_control::reshard_intent::{EndedAs, WantedLayout};
use heatsink_dynamo::{Error, Operation};
use heatsink_store::Store;
use heatsink_store::embedded::Embedded;
use serde_json::{Value as Json, json};

use crate::command::{data, heatsink};
use crate::town::{RULES, Town};

/// What is asked of a table of the data file, bypassing Heatsink.
fn past(data: &Path, operation: Operation, body: Json) -> Json {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let answer = runtime.block_on(async {
        let store = Embedded::file(data).unwrap();
        store.call(operation, Bytes::from(body.to_string())).await.unwrap()
    });
    serde_json::from_slice(&answer).unwrap()
}

fn refused(data: &Path, args: &[&str], why: &str) {
    let (code, error) = heatsink(data, args);
    assert!(code == 64 && error.to_string().contains(why), "{args:?}: {code} {error}");
}

#[test]
fn a_key_of_a_table_without_sort_key_becomes_a_counter_and_grows() {
    let data = data("counter");
    past(
        &data,
        Operation::PutItem,
        json!({ "TableName": "Flat", "Item": { "pk": { "S": "post" }, "likes": { "N": "5" } } }),
    );
    let start = |more: &[&str]| heatsink(&data, &[&["start", "Flat", "post"], more].concat());
    let counter = ["--shards", "4", "--strategy", "counter", "--attribute", "likes"];
    let (code, plan) = start(&[&counter[..], &["--dry-run"]].concat());
    assert_eq!(
        (code, &plan["items"], &plan["to_move"], &plan["stall_millis"]),
        (0, &json!(1), &json!(0), &json!(0))
    );
    assert_eq!(plan["phases"], json!(["RESERVE", "PREPARE", "STABLE"]));
    let next = format!(
        "heatsink reshard start Flat post --data {} --shards 4 --strategy counter --attribute likes",
        data.display()
    );
    assert_eq!(plan["next_steps"], json!([next]));
    let (code, report) = start(&counter);
    assert_eq!(
        (code, &report["from"], &report["to"], &report["moved"]),
        (0, &json!(1), &json!(4), &json!(0))
    );
    assert_eq!(start(&counter).1["already"], true);
    // It is a counter of likes already, and stays one.
    assert_eq!(start(&["--shards", "6"]).1["to"], 6);
    let status = heatsink(&data, &["status", "Flat"]).1;
    let key = &status["keys"][0];
    assert_eq!(
        (&key["shards"], &key["reserved"], &key["counter"]),
        (&json!(6), &json!(6), &json!(["likes"]))
    );

    let start = |more: &[&'static str]| [&["start", "Flat", "post"], more].concat();
    refused(
        &data,
        &start(&["--shards", "8", "--strategy", "counter", "--attribute", "votes"]),
        "becomes nothing else",
    );
    refused(&data, &start(&["--shards", "101"]), "at most 100 shards");

    // What its fragments hold is added up.
    for (shard, likes) in [(2, "10"), (5, "100")] {
        let part = json!({ "pk": { "S": format!("post#~{shard}") }, "likes": { "N": likes } });
        past(&data, Operation::PutItem, json!({ "TableName": "Flat", "Item": part }));
    }
    let (code, plan) = heatsink(&data, &start(&["--shards", "3", "--dry-run"]));
    assert_eq!(
        (code, &plan["items"], &plan["to_move"], &plan["counter"]),
        (0, &json!(1), &json!(1), &json!(["likes"]))
    );
    assert_eq!(plan["phases"], json!(["RESERVE", "PREPARE", "MOVE", "STABLE"]));
    assert_eq!(heatsink(&data, &start(&["--shards", "3"])).1["moved"], 1);
    assert_eq!(stored(&data), json!([["post", "105"], ["post#~2", "10"]]));
    // What another writer has put there stays.
    let foreign = json!({ "pk": { "S": "post#~1" }, "likes": { "N": "3" }, "why": { "S": "mine" } });
    past(&data, Operation::PutItem, json!({ "TableName": "Flat", "Item": foreign }));
    let (code, error) = heatsink(&data, &["back", "Flat", "post"]);
    assert!(code == 1 && error.to_string().contains("another writer has put them there"), "{code} {error}");
    assert_eq!(stored(&data), json!([["post", "115"], ["post#~1", "3"]]));
    let key = json!({ "TableName": "Flat", "Key": { "pk": { "S": "post#~1" } } });
    past(&data, Operation::DeleteItem, key);
    let (code, report) = heatsink(&data, &["back", "Flat", "--all"]);
    assert_eq!(code, 0, "{report}");
    assert_eq!(stored(&data), json!([["post", "115"]]));
    let key = &heatsink(&data, &["status", "Flat"]).1["keys"][0];
    assert_eq!((&key["shards"], &key["counter"]), (&json!(1), &Json::Null));
}

/// What lies under the physical keys of the table without sort key, and what is counted there.
fn stored(data: &Path) -> Json {
    let mut rows: Vec<(String, String)> =
        past(data, Operation::Scan, json!({ "TableName": "Flat" }))["Items"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|item| {
                Some((item["pk"]["S"].as_str()?.to_owned(), item["likes"]["N"].as_str()?.to_owned()))
            })
            .collect();
    rows.sort();
    json!(rows)
}

#[test]
fn what_cannot_be_a_counter_is_refused_by_name() {
    let data = data("no-counter");
    let counter = |table: &'static str, key: &'static str, more: &[&'static str]| {
        [&["start", table, key, "--shards", "4", "--strategy", "counter"], more].concat()
    };
    refused(&data, &["start", "Flat", "post", "--shards", "4"], "--strategy counter");
    refused(&data, &counter("Flat", "post", &[]), "--attribute");
    refused(&data, &counter("Flat", "post", &["--attribute", "pk"]), "key attribute");
    refused(&data, &counter("Flat", "post", &["--attribute", "n", "--attribute", "n"]), "twice");
    let parts = ["--attribute", "n", "--separator", "x", "--part", "0"];
    refused(&data, &counter("Scores", "game", &parts), "leave --separator");
    let alone = ["start", "Flat", "post", "--shards", "1", "--strategy", "counter", "--attribute", "n"];
    refused(&data, &alone, "2 shards or more");
    let other = ["start", "Scores", "game", "--shards", "4", "--strategy", "calculated", "--attribute", "n"];
    refused(&data, &other, "--strategy counter");
    assert_eq!(heatsink(&data, &["start", "Scores", "game", "--shards", "2"]).0, 0);
    refused(&data, &counter("Scores", "game", &["--attribute", "n"]), "--shards 1 first");
    assert_eq!(heatsink(&data, &["start", "Scores", "game", "--shards", "1"]).0, 0);
    assert_eq!(heatsink(&data, &counter("Scores", "game", &["--attribute", "n"])).0, 0);
    let calculated = ["start", "Scores", "game", "--shards", "8", "--strategy", "calculated"];
    refused(&data, &calculated, "becomes nothing else");
    // A client's item lies under the name of a fragment, and stays its own.
    let (code, error) = heatsink(&data, &counter("Scores", "taken", &["--attribute", "n"]));
    assert!(code == 1 && error.to_string().contains("taken#~2"), "{code} {error}");
    let keys = heatsink(&data, &["status", "Scores"]).1["keys"].clone();
    let taken = keys.as_array().unwrap().iter().find(|key| key["key"] == "taken").unwrap();
    assert_eq!((&taken["reserved"], &taken["counter"]), (&json!(1), &Json::Null));
    let expiry =
        json!({ "TableName": "Flat", "TimeToLiveSpecification": { "AttributeName": "t", "Enabled": true } });
    past(&data, Operation::UpdateTimeToLive, expiry);
    refused(&data, &counter("Flat", "post", &["--attribute", "n"]), "time to live");
}

fn counter(shards: u16) -> WantedLayout {
    WantedLayout { counter: Some(vec!["n".to_owned()]), ..shards.into() }
}

/// How many other items the key has where a fold is to last.
const OTHERS: usize = 20;

/// Requests for the item `a` of the key `post`.
impl Town {
    /// Adds to one number after the other of the items that make a fold last.
    fn add_to_others(&self, adds: usize) {
        for add in 0..adds {
            let body = json!({
                "TableName": "Scores", "Key": { "pk": { "S": "post" }, "sk": { "S": format!("b{:02}", add % OTHERS) } },
                "UpdateExpression": "ADD n :n", "ExpressionAttributeValues": { ":n": { "N": "1" } },
            });
            self.call(add / OTHERS % 3, Operation::UpdateItem, &body).unwrap();
        }
    }

    fn write(&self, gateway: usize, expression: &str, number: i64) -> Result<Json, Error> {
        let body = json!({
            "TableName": "Scores", "Key": { "pk": { "S": "post" }, "sk": { "S": "a" } }, "UpdateExpression": expression,
            "ExpressionAttributeValues": { ":n": { "N": number.to_string() } },
        });
        self.call(gateway, Operation::UpdateItem, &body)
    }

    fn sum(&self, gateway: usize) -> Json {
        let body = json!({ "TableName": "Scores", "Key": { "pk": { "S": "post" }, "sk": { "S": "a" } }, "ConsistentRead": true });
        self.call(gateway, Operation::GetItem, &body).unwrap()["Item"]["n"]["N"].clone()
    }

    /// What clients read of the table in every other way.
    fn shown(&self, gateway: usize) -> [Json; 3] {
        let query = json!({
            "TableName": "Scores", "KeyConditionExpression": "pk = :p", "ExpressionAttributeValues": { ":p": { "S": "post" } },
        });
        let select = json!({ "Statement": "SELECT * FROM Scores" });
        [
            self.call(gateway, Operation::Query, &query).unwrap()["Items"].clone(),
            self.call(gateway, Operation::Scan, &json!({ "TableName": "Scores" })).unwrap()["Items"].clone(),
            self.call(gateway, Operation::ExecuteStatement, &select).unwrap()["Items"].clone(),
        ]
    }
}

#[test]
fn gateways_widen_a_counter_that_they_are_asked_for() {
    let town = Town::new(RULES);
    for number in 1..=4 {
        town.write(0, "ADD n :n", number).unwrap();
    }
    let _carried = town.carry();
    for (shards, total) in [(4, 40), (7, 70)] {
        town.ask("post", counter(shards), 1);
        let (how, text) = town.ended("post");
        assert_eq!((how, town.shards("post")), (EndedAs::Moved, shards), "{text}");
        let record = town.record("post").unwrap();
        assert_eq!((record.since, record.settled), (0, true), "no item lies elsewhere");
        for gateway in (0..30).map(|round| round % 3) {
            town.write(gateway, "ADD n :n", 1).unwrap();
        }
        for gateway in 0..3 {
            assert_eq!(town.sum(gateway), json!(total.to_string()));
            let item =
                json!([{ "pk": { "S": "post" }, "sk": { "S": "a" }, "n": { "N": total.to_string() } }]);
            for shown in town.shown(gateway) {
                assert_eq!(shown, item);
            }
        }
        assert_eq!(town.lies("post").len(), usize::from(shards), "each fragment is added to");
    }
    // What no fragment knows is refused, as for counters of a rule.
    let error = town.write(1, "SET n = n + :n", 1).unwrap_err().to_string();
    assert!(error.contains("no single fragment has the sum"), "{error}");
    let expiry = json!({ "TableName": "Scores", "TimeToLiveSpecification": { "AttributeName": "t", "Enabled": true } });
    let error = town.call(1, Operation::UpdateTimeToLive, &expiry).unwrap_err().to_string();
    assert!(error.contains("table with counters"), "{error}");
    // Setting it leaves nothing in any fragment.
    town.write(2, "SET n = :n", 9).unwrap();
    let parts: BTreeMap<String, Json> = town
        .scanned()
        .into_iter()
        .filter(|item| !item["n"].is_null())
        .map(|item| (item["pk"]["S"].as_str().unwrap().to_owned(), item["n"]["N"].clone()))
        .collect();
    assert_eq!(parts, BTreeMap::from([("post".to_owned(), json!("9"))]));
}

#[test]
fn gateways_narrow_a_counter_while_clients_add_and_read() {
    let town = Town::new(RULES);
    let _carried = town.carry();
    town.ask("post", counter(7), 1);
    assert_eq!(town.ended("post").0, EndedAs::Moved);
    town.add_to_others(OTHERS * 14);
    let total = Cell::new(0);
    for (asked, wanted) in [(2, counter(3)), (3, 1.into())] {
        let left = wanted.shards;
        town.ask_at("post", wanted, asked, 200);
        let reads = Cell::new(0);
        let ended = town.until("the end", || {
            total.set(total.get() + 1);
            reads.set(reads.get() + 1);
            town.write(reads.get() % 3, "ADD n :n", 1).unwrap();
            let sum = json!(total.get().to_string());
            for gateway in 0..3 {
                assert_eq!(town.sum(gateway), sum);
            }
            for shown in town.shown(reads.get() % 3) {
                let item = |sort: &str| {
                    let items = shown.as_array().unwrap();
                    items.iter().find(|item| item["sk"]["S"] == sort).unwrap()["n"]["N"].clone()
                };
                assert_eq!((item("a"), item("b00"), item("b19")), (sum.clone(), json!("14"), json!("14")));
            }
            town.intent("post")?
                .ended
                .filter(|_| town.intent("post").is_some_and(|one| one.request.asked == asked))
        });
        assert_eq!(ended.how, EndedAs::Moved, "{}", ended.text);
        assert!(reads.get() > 5, "{} rounds of reads", reads.get());
        assert_eq!(town.shards("post"), left);
        let record = town.record("post").unwrap();
        assert_eq!((record.since, record.settled), (0, true), "no item lies elsewhere");
        assert_eq!(town.lies("post").len(), usize::from(left), "no other fragment is left");
    }
    // It is an item as any other.
    town.write(1, "SET n = n + :n", 1).unwrap();
    assert_eq!(town.sum(2), json!((total.get() + 1).to_string()));
}
