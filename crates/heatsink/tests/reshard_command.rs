//! `heatsink reshard` as an operator runs it on a data file: words, JSON, exit codes, what is refused.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use bytes::Bytes;
use heatsink_dynamo::Operation;
use heatsink_store::Store;
use heatsink_store::embedded::Embedded;
use serde_json::{Value as Json, json};

const ITEMS: usize = 60;

/// A data file with items under `game`, one under a name that looks like a shard of `taken`, and a table without a sort key.
fn data(name: &str) -> PathBuf {
    let place = std::env::temp_dir().join(format!("heatsink-reshard-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&place);
    std::fs::create_dir_all(&place).unwrap();
    let path = place.join("data.db");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = Embedded::file(&path).unwrap();
        let call = async |operation, body: Json| {
            store.call(operation, Bytes::from(body.to_string())).await.unwrap();
        };
        let attribute = |name: &str| json!({ "AttributeName": name, "AttributeType": "S" });
        let key = |name: &str, kind: &str| json!({ "AttributeName": name, "KeyType": kind });
        for (table, keys) in [("Scores", vec!["pk", "sk"]), ("Flat", vec!["pk"])] {
            let schema: Vec<Json> = keys.iter().zip(["HASH", "RANGE"]).map(|(name, kind)| key(name, kind)).collect();
            let attributes: Vec<Json> = keys.iter().map(|name| attribute(name)).collect();
            let body = json!({
                "TableName": table, "BillingMode": "PAY_PER_REQUEST", "KeySchema": schema, "AttributeDefinitions": attributes,
            });
            call(Operation::CreateTable, body).await;
        }
        for number in 0..ITEMS {
            let item = json!({ "pk": { "S": "game" }, "sk": { "S": format!("{number:03}") } });
            call(Operation::PutItem, json!({ "TableName": "Scores", "Item": item })).await;
        }
        let item = json!({ "pk": { "S": "taken#~2" }, "sk": { "S": "a" } });
        call(Operation::PutItem, json!({ "TableName": "Scores", "Item": item })).await;
    });
    path
}

/// The exit code, and the JSON document on stdout or stderr.
fn heatsink(data: &Path, args: &[&str]) -> (i32, Json) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_heatsink"));
    command.arg("reshard").args(args).arg("--data").arg(data).args(["--output", "json"]);
    let output = command.current_dir(data.parent().unwrap()).stdin(Stdio::null()).output().unwrap();
    let text = if output.status.success() { output.stdout } else { output.stderr };
    let text = String::from_utf8(text).unwrap();
    let last = text.lines().last().unwrap_or_default();
    let document = serde_json::from_str(last).unwrap_or_else(|_| panic!("no JSON: {text}"));
    (output.status.code().unwrap(), document)
}

fn physical_keys(data: &Path) -> Vec<String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let scanned = runtime.block_on(async {
        let store = Embedded::file(data).unwrap();
        store.call(Operation::Scan, Bytes::from_static(b"{\"TableName\":\"Scores\"}")).await.unwrap()
    });
    let scanned: Json = serde_json::from_slice(&scanned).unwrap();
    let keys =
        scanned["Items"].as_array().unwrap().iter().map(|item| item["pk"]["S"].as_str().unwrap().to_owned());
    keys.collect()
}

#[test]
fn a_key_goes_to_four_shards_and_back() {
    let data = data("back");
    let start = |shards: &str, more: &[&str]| {
        let args = [&["start", "Scores", "game", "--shards", shards], more].concat();
        heatsink(&data, &args)
    };
    let (code, plan) = start("4", &["--dry-run"]);
    assert_eq!((code, &plan["items"], &plan["from"], &plan["to"]), (0, &json!(ITEMS), &json!(1), &json!(4)));
    assert_eq!(plan["next_steps"], json!(["heatsink reshard start Scores game --shards 4"]));
    assert_eq!(heatsink(&data, &["status", "Scores"]).1["keys"], json!([]), "a dry run writes nothing");

    let (code, report) = start("4", &[]);
    let moved = report["moved"].as_u64().unwrap();
    assert_eq!((code, &report["from"], &report["to"]), (0, &json!(1), &json!(4)));
    let keys = physical_keys(&data);
    assert_eq!(keys.iter().filter(|key| key.starts_with("game#~")).count() as u64, moved);
    assert_eq!(keys.iter().filter(|key| key.starts_with("game")).count(), ITEMS);
    assert!(
        ["game", "game#~1", "game#~2", "game#~3"].iter().all(|key| keys.iter().any(|found| found == key))
    );
    let status = heatsink(&data, &["status", "Scores"]).1;
    assert_eq!((&status["keys"][0]["shards"], &status["keys"][0]["moves"]), (&json!(4), &Json::Null));
    assert_eq!(start("4", &[]).1["already"], true);

    assert_eq!(start("1", &[]).1["moved"], moved);
    let keys = physical_keys(&data);
    assert_eq!(keys.iter().filter(|key| *key == "game").count(), ITEMS);
    assert!(!keys.iter().any(|key| key.starts_with("game#~")));
}

#[test]
fn what_cannot_be_is_refused_and_nothing_is_half_changed() {
    let data = data("refused");
    let refused = |args: &[&str], code: i32, why: &str| {
        let (found, error) = heatsink(&data, args);
        let text = error.to_string();
        assert!(found == code && text.contains(why), "{args:?}: exit {found}, {text}");
    };
    refused(&["start", "Nowhere", "game", "--shards", "4"], 64, "no table Nowhere");
    refused(&["start", "Flat", "game", "--shards", "4"], 64, "has no sort key");
    refused(&["start", "Scores", "game", "--shards", "0"], 64, "1 to 1000 shards");
    refused(&["start", "Scores", "game", "--shards", "1001"], 64, "1 to 1000 shards");
    // A client's own item lies under a name that a shard would have.
    refused(&["start", "Scores", "taken", "--shards", "4"], 1, "taken#~2");
    let status = heatsink(&data, &["status", "Scores"]).1;
    assert_eq!(
        (&status["keys"][0]["shards"], &status["keys"][0]["reserved"]),
        (&json!(1), &json!(1)),
        "{status}"
    );
    assert!(physical_keys(&data).contains(&"taken#~2".to_owned()));
    // With fewer shards that name is the client's own.
    assert_eq!(heatsink(&data, &["start", "Scores", "taken", "--shards", "2"]).0, 0);
}

fn put(data: &Path, key: &str, sort: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = Embedded::file(data).unwrap();
        let item = json!({ "TableName": "Scores", "Item": { "pk": { "S": key }, "sk": { "S": sort } } });
        store.call(Operation::PutItem, Bytes::from(item.to_string())).await.unwrap();
    });
}

/// A writer that bypasses Heatsink put it there: nobody may delete the only copy.
#[test]
fn an_item_that_lies_in_the_wrong_shard_alone_is_kept_and_ends_the_move() {
    let data = data("misplaced");
    assert_eq!(heatsink(&data, &["start", "Scores", "game", "--shards", "4"]).0, 0);
    // Of so many some belong to another shard than the first.
    for number in 0..20 {
        put(&data, "game", &format!("bypassing-{number}"));
    }
    let before = physical_keys(&data).len();
    let (code, error) = heatsink(&data, &["start", "Scores", "game", "--shards", "8"]);
    assert!(code == 1 && error.to_string().contains("verify --repair"), "{code} {error}");
    assert_eq!(physical_keys(&data).len(), before, "nothing was deleted");
    assert_eq!(heatsink(&data, &["status", "Scores"]).1["keys"][0]["shards"], 4);
}

/// A copy whose item lies in its place is what an earlier move left, and is cleared.
#[test]
fn an_old_copy_is_cleared() {
    let data = data("orphan");
    assert_eq!(heatsink(&data, &["start", "Scores", "game", "--shards", "4"]).0, 0);
    for number in 0..ITEMS {
        put(&data, "game", &format!("{number:03}"));
    }
    let (code, report) = heatsink(&data, &["start", "Scores", "game", "--shards", "8"]);
    assert_eq!(code, 0, "{report}");
    assert_eq!(physical_keys(&data).iter().filter(|key| key.starts_with("game")).count(), ITEMS);
}

#[test]
fn a_recorded_key_with_the_name_of_a_shard_is_not_taken_over() {
    let data = data("nested");
    assert_eq!(heatsink(&data, &["start", "Scores", "hot#~1", "--shards", "4"]).0, 0);
    let (code, error) = heatsink(&data, &["start", "Scores", "hot", "--shards", "4"]);
    assert!(code == 1 && error.to_string().contains("is itself a key on record"), "{code} {error}");
    let (code, error) = heatsink(&data, &["start", "Scores", "hot#~1#~2", "--shards", "4"]);
    assert!(code == 64 && error.to_string().contains("physical key of a shard"), "{code} {error}");
}
