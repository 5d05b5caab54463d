//! Keys that become counters, and get more fragments: what the command says and refuses, and three
//! gateways over one store.
//!
//! Not here: what can go wrong meanwhile (the simulation, and the model of `heatsink-reshard`).

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
    refused(&data, &start(&["--shards", "5"]), "never gets fewer");
    refused(&data, &start(&["--shards", "1"]), "never gets fewer");
    refused(&data, &["back", "Flat", "post"], "There is no way back");
    refused(
        &data,
        &start(&["--shards", "8", "--strategy", "counter", "--attribute", "votes"]),
        "becomes nothing else",
    );
    refused(&data, &start(&["--shards", "101"]), "at most 100 shards");
    assert_eq!(heatsink(&data, &["back", "Flat", "--all"]).1["already"], json!([]), "counters are left out");
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

/// Requests for the item `a` of the key `post`.
impl Town {
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
