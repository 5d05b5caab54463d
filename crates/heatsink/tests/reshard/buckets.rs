//! Keys whose buckets get another number of shards: what the command says and refuses, and three
//! gateways over one store.
//!
//! Not here: every order of the steps (the model of `heatsink-reshard`).

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::future::{Either, select};
use heatsink::Gateway;
use heatsink_control::Fencing;
use heatsink_control::reshard_intent::EndedAs;
use heatsink_control::{KeyRecord, Rules};
use heatsink_dynamo::Operation;
use heatsink_env::{Env, RealEnv};
use heatsink_layout::{Bucket, Granularity, Layout, SortKey};
use heatsink_store::Store;
use heatsink_store::embedded::Embedded;
use serde_json::{Value as Json, json};

use crate::command::heatsink;
use crate::online::{Fused, clients_of, hour_text, killed};
use crate::town::{RULES, Town};

const HOURS: &str = "rule = [{ table = \"Scores\", strategy = \"bucket\", bucket = \"hour\" }]";
const DAYS: &str = "rule = [{ table = \"Logs\", keys = \"log*\", strategy = \"bucket\", bucket = \"day\" }]";

fn now() -> u64 {
    RealEnv.unix_millis() / 1_000
}

/// The day that begins so many days from now.
fn day(ahead: i64) -> Bucket {
    Bucket::at(i64::try_from(now()).unwrap() + ahead * 86_400, Granularity::Day).unwrap()
}

/// A data file with the table `Logs`, whose keys `log*` lie in buckets of a day. What is put there
/// lies where a gateway puts it.
fn data(name: &str, puts: &[(&str, String)]) -> PathBuf {
    let place = std::env::temp_dir().join(format!("heatsink-buckets-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&place);
    std::fs::create_dir_all(&place).unwrap();
    let path = place.join("data.db");
    let table = json!({
        "TableName": "Logs", "BillingMode": "PAY_PER_REQUEST",
        "KeySchema": [{ "AttributeName": "pk", "KeyType": "HASH" }, { "AttributeName": "sk", "KeyType": "RANGE" }],
        "AttributeDefinitions": [{ "AttributeName": "pk", "AttributeType": "S" }, { "AttributeName": "sk", "AttributeType": "S" }],
    });
    let mut calls = vec![(Operation::CreateTable, table)];
    calls.extend(puts.iter().map(|(key, sort)| {
        let item = json!({ "pk": { "S": key }, "sk": { "S": sort } });
        (Operation::PutItem, json!({ "TableName": "Logs", "Item": item }))
    }));
    through(&path, &calls);
    path
}

/// Requests through a gateway on the file.
fn through(data: &Path, calls: &[(Operation, Json)]) -> Vec<Json> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store: Arc<dyn Store> = Arc::new(Embedded::file(data).unwrap());
        let gateway =
            Gateway::builder(store).rules(Rules::read("rules", DAYS).unwrap()).start().await.unwrap();
        let mut answers = Vec::new();
        for (operation, body) in calls {
            let answer = gateway.call(*operation, Bytes::from(body.to_string())).await.unwrap();
            answers.push(serde_json::from_slice(&answer).unwrap());
        }
        answers
    })
}

fn refused(data: &Path, args: &[&str], why: &str) {
    let (code, error) = heatsink(data, args);
    assert!(code == 64 && error.to_string().contains(why), "{args:?}: {code} {error}");
}

#[test]
fn buckets_to_come_get_other_shards_by_the_command() {
    let data = data("buckets", &[("log", format!("{}T10#a", day(0))), ("log", "META".to_owned())]);
    let start = |more: &[&str]| heatsink(&data, &[&["start", "Logs", "log"], more].concat());
    let (code, plan) = start(&["--shards", "4", "--dry-run"]);
    // Tomorrow, unless the day ends within the margin.
    let tomorrow = [day(1), day(2)].map(|day| json!(day.to_string()));
    let step = &plan["step"];
    assert_eq!((code, &plan["from"], &plan["to"], &plan["to_move"]), (0, &json!(1), &json!(4), &json!(0)));
    assert!(tomorrow.contains(&step["bucket"]) && step["before"] == 1, "{plan}");
    assert_eq!(step["begins"], json!(format!("{}T00:00:00Z", step["bucket"].as_str().unwrap())));
    assert_eq!(plan["phases"], json!(["RESERVE", "PREPARE", "STABLE"]));
    assert_eq!(plan["stall_millis"], 0);
    let (code, report) = start(&["--shards", "4"]);
    assert_eq!((code, &report["to"], &report["moved"]), (0, &json!(4), &json!(0)));
    assert!(tomorrow.contains(&report["step"]["bucket"]), "{report}");
    assert_eq!(start(&["--shards", "4"]).1["already"], true);

    // It has not begun, so another number takes its place; and the one of before takes it back.
    let (code, report) = start(&["--shards", "3"]);
    assert_eq!(
        (code, &report["from"], &report["to"], &report["step"]["before"]),
        (0, &json!(4), &json!(3), &json!(1))
    );
    let status = |args: &[&str]| heatsink(&data, &[&["status", "Logs"], args].concat()).1["keys"][0].clone();
    assert_eq!((&status(&[])["shards"], &status(&[])["step"]["before"]), (&json!(3), &json!(1)));
    let (code, report) = heatsink(&data, &["back", "Logs", "log"]);
    assert_eq!((code, &report["to"], &report["step"]), (0, &json!(1), &Json::Null));
    assert_eq!(status(&[])["step"], Json::Null);

    // Each bucket has its own number, for whoever writes and reads.
    assert_eq!(start(&["--shards", "4"]).0, 0);
    let later = day(5);
    let put = |sort: String| {
        let item = json!({ "pk": { "S": "log" }, "sk": { "S": sort } });
        (Operation::PutItem, json!({ "TableName": "Logs", "Item": item }))
    };
    let mut calls: Vec<_> = (0..20).map(|number| put(format!("{later}T10#{number:02}"))).collect();
    calls.extend((0..5).map(|number| put(format!("{}T10#{number:02}", day(0)))));
    let query = json!({
        "TableName": "Logs", "KeyConditionExpression": "pk = :p", "ExpressionAttributeValues": { ":p": { "S": "log" } },
    });
    calls.push((Operation::Query, query));
    let answers = through(&data, &calls);
    assert_eq!(answers.last().unwrap()["Count"], 27);
    let lies = lies(&data);
    let of = |bucket: &Bucket| lies.keys().filter(|key| key.starts_with(&format!("log#~{bucket}"))).count();
    assert_eq!((of(&day(0)), of(&later)), (1, 4), "{lies:?}");
    let verified = verify(&data);
    assert_eq!((verified.0, &verified.1["items"]), (0, &json!(27)), "{}", verified.1);
}

/// The physical keys of the file's table, with how many items lie under each.
fn lies(data: &Path) -> BTreeMap<String, usize> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let answer = runtime.block_on(async {
        let store = Embedded::file(data).unwrap();
        store.call(Operation::Scan, Bytes::from_static(b"{\"TableName\":\"Logs\"}")).await.unwrap()
    });
    let scanned: Json = serde_json::from_slice(&answer).unwrap();
    let mut found = BTreeMap::new();
    for item in scanned["Items"].as_array().unwrap() {
        *found.entry(item["pk"]["S"].as_str().unwrap().to_owned()).or_default() += 1;
    }
    found
}

fn verify(data: &Path) -> (i32, Json) {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_heatsink"));
    command.args(["verify", "Logs", "log", "--output", "json", "--data"]).arg(data);
    let output = command.current_dir(data.parent().unwrap()).output().unwrap();
    let text = if output.status.success() { &output.stdout } else { &output.stderr };
    let text = String::from_utf8_lossy(text);
    let document = serde_json::from_str(&text).unwrap_or_else(|_| json!(text));
    (output.status.code().unwrap(), document)
}

#[test]
fn what_buckets_cannot_become_is_refused_by_name() {
    let far = day(40);
    let data = data("no-buckets", &[("logs", format!("{far}T10#a")), ("log", format!("{}T10#a", day(1)))]);
    let counter = ["start", "Logs", "log", "--shards", "4", "--strategy", "counter", "--attribute", "n"];
    refused(&data, &counter, "leave the strategy out");
    let part = ["start", "Logs", "log", "--shards", "4", "--separator", "#", "--part", "1"];
    refused(&data, &part, "leave the strategy out");
    refused(
        &data,
        &["start", "Logs", "log", "--shards", "4", "--strategy", "time_bucket"],
        "without --strategy",
    );
    refused(&data, &["start", "Logs", "other", "--shards", "4"], "lies in no buckets");
    refused(&data, &["start", "Logs", "log", "--shards", "1001"], "1 to 1000 shards");
    // Items so far in the future are no matter of clocks or zones. The buckets before them would
    // have to wait for them.
    for more in [&["--dry-run"][..], &[]] {
        let start = [&["start", "Logs", "logs", "--shards", "4"], more].concat();
        refused(&data, &start, &far.to_string());
    }
    // Behind those of tomorrow a change begins later.
    let (code, report) = heatsink(&data, &["start", "Logs", "log", "--shards", "4"]);
    assert_eq!(code, 0, "{report}");
    let bucket = report["step"]["bucket"].as_str().unwrap();
    assert!(bucket == day(2).to_string() || bucket == day(3).to_string(), "{report}");
}

/// How many shards a record gives to the bucket of an hour.
fn shards(record: &KeyRecord, hour: u64) -> u16 {
    record.layout.shards_in(Bucket::at(i64::try_from(hour).unwrap() * 3_600, Granularity::Hour).unwrap())
}

/// The first hour that has the newest number of shards.
fn first_hour(layout: &Layout) -> u64 {
    u64::try_from(layout.newest_from().unwrap().start()).unwrap() / 3_600
}

/// How many of the shards of buckets from an hour on have items.
fn shards_used(town: &Town, record: &KeyRecord, from: u64) -> u16 {
    let newest = town.scanned().into_iter().filter_map(|item| {
        let slot = record.layout.slot_of(Some(SortKey::S(item["sk"]["S"].as_str()?))).ok()?;
        let hour = u64::try_from(slot.bucket?.start()).ok()? / 3_600;
        (hour >= from).then_some(slot.shard)
    });
    u16::try_from(newest.collect::<BTreeSet<_>>().len()).unwrap()
}

#[test]
fn gateways_that_are_killed_give_buckets_other_shards_under_their_clients() {
    let town = Town::new(&RULES.replace("rule = []", HOURS));
    let over = Arc::new(AtomicBool::new(false));
    let front = Arc::new(AtomicU64::new(now() / 3_600));
    let clients = clients_of(&town, &over, Some(&front));
    let dead = Arc::new(AtomicBool::new(false));
    let killed = killed(&town, 11, 45, &dead);
    let mut firsts = Vec::new();
    for shards in [4, 2, 5] {
        town.ask("game", shards.into(), 1);
        let (how, text) = town.ended("game");
        println!("{text}");
        let record = town.record("game").unwrap();
        assert_eq!((how, record.layout.shards, record.since), (EndedAs::Moved, shards, 0), "{text}");
        let first = first_hour(&record.layout);
        assert!(first > front.load(Ordering::Relaxed) && text.contains(&hour_text(first)), "{text}");
        firsts.push(first);
        // Time goes on: from now on clients write into the buckets that have the new number, until
        // each of its shards has items.
        front.store(first + 2, Ordering::Relaxed);
        for _ in 0..150 {
            town.pause(Duration::from_millis(400));
            if shards_used(&town, &record, first) == shards {
                break;
            }
        }
    }
    dead.store(true, Ordering::Relaxed);
    let kills = killed.join().unwrap();
    println!("{kills} kills, the longest request took {} ms", town.longest.load(Ordering::Relaxed));
    over.store(true, Ordering::Relaxed);
    clients.into_iter().for_each(|client| client.join().unwrap());
    // Each item lies where its bucket's own number puts it, and each number is used.
    let record = town.record("game").unwrap();
    let mut used: BTreeMap<u16, usize> = BTreeMap::new();
    for item in town.scanned() {
        let (physical, sort) = (item["pk"]["S"].as_str().unwrap(), item["sk"]["S"].as_str().unwrap());
        let slot = record.layout.slot_of(Some(SortKey::S(sort))).unwrap();
        let shard = if slot.shard == 0 { String::new() } else { format!("#~{}", slot.shard) };
        assert_eq!(physical, format!("game#~{}{shard}", &sort[..13]));
        let hour = u64::try_from(slot.bucket.unwrap().start()).unwrap() / 3_600;
        let known = [1, 4, 2, 5][firsts.iter().filter(|first| hour >= **first).count()];
        assert_eq!(shards(&record, hour), known, "{sort}");
        *used.entry(known).or_default() = (*used.get(&known).unwrap_or(&0)).max(usize::from(slot.shard) + 1);
    }
    assert_eq!(used, BTreeMap::from([(1, 1), (4, 4), (2, 2), (5, 5)]), "{:?}", record.layout);
}

#[test]
fn a_change_that_is_cancelled_leaves_buckets_as_they_were() {
    let town = Town::new(&RULES.replace("rule = []", HOURS));
    let item = |ahead: u64| json!({ "TableName": "Scores", "Item": { "pk": { "S": "game" }, "sk": { "S": format!("{}:a", hour_text(now() / 3_600 + ahead)) } } });
    town.call(0, Operation::PutItem, &item(0)).unwrap();
    town.ask("game", 4.into(), 1);
    assert!(town.change("game", |intent| intent.cancelled = true));
    let _carried = town.carry();
    let (how, text) = town.ended("game");
    assert_eq!(how, EndedAs::Cancelled, "{text}");
    assert!(
        town.record("game").is_none_or(|record| record.moves.is_none() && record.layout.steps().is_empty())
    );
    for ahead in [0, 1, 5, 9] {
        town.call(1, Operation::PutItem, &item(ahead)).unwrap();
    }
    assert!(town.lies("game").keys().all(|key| key.matches("#~").count() == 1));
}

/// A run is killed at each of its calls in turn, before or after the call took effect; the next one
/// goes on, or begins anew. Items lie and are found where each bucket's own number puts them.
#[test]
fn a_run_that_is_killed_at_any_call_is_followed_by_another() {
    let mut calls = 0;
    for call in 1.. {
        let town = Town::of(&["one", "two"], &RULES.replace("rule = []", HOURS), Fencing::shared);
        let put = |gateway: usize, ahead: u64, number: u64| {
            let sort = format!("{}:{number:02}", hour_text(now() / 3_600 + ahead));
            let item = json!({ "pk": { "S": "game" }, "sk": { "S": sort } });
            town.call(gateway, Operation::PutItem, &json!({ "TableName": "Scores", "Item": item })).unwrap();
        };
        put(0, 0, 0);
        let store = Arc::new(Fused {
            inner: town.raw.clone(),
            left: AtomicI64::new(call),
            carries_out: call % 2 == 0,
        });
        let is_dead = async {
            while store.left.load(Ordering::SeqCst) > 0 {
                RealEnv.sleep(Duration::from_millis(2)).await;
            }
        };
        let killed = town.runtime.block_on(async {
            let run = pin!(town.reshard_by(store.clone(), "game", 4));
            matches!(select(run, pin!(is_dead)).await, Either::Right(_))
        });
        // Today goes on meanwhile.
        put(1, 0, 1);
        let report = town.runtime.block_on(town.reshard("game", 4)).unwrap();
        let record = town.record("game").unwrap();
        assert_eq!((report.to, record.settled, record.since), (4, true, 0), "{call}");
        assert_eq!(record.layout.steps().len(), 1, "{call}: {:?}", record.layout);
        let ahead = first_hour(&record.layout) - now() / 3_600;
        // So many that every shard gets some, whatever the hour hashes to.
        (0..60).for_each(|number| put(usize::from(number % 2 == 0), ahead, number));
        let query = json!({
            "TableName": "Scores", "KeyConditionExpression": "pk = :p", "ExpressionAttributeValues": { ":p": { "S": "game" } },
            "ConsistentRead": true,
        });
        for gateway in 0..2 {
            assert_eq!(town.call(gateway, Operation::Query, &query).unwrap()["Count"], 62, "{call}");
        }
        assert_eq!(town.lies("game").len(), 1 + 4, "{call}: {:?}", town.lies("game"));
        if !killed {
            calls = call;
            break;
        }
    }
    println!("killed at each of {calls} calls");
    assert!(calls > 20, "{calls}");
}
