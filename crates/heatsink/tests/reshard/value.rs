//! `heatsink reshard start … --index` as an operator runs it on a data file: words, JSON, exit codes, what `status`, `explain` and `verify` say of it, and a
//! run that is stopped on its way.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use bytes::Bytes;
use heatsink_dynamo::Operation;
use heatsink_store::Store;
use heatsink_store::embedded::Embedded;
use serde_json::{Value as Json, json};

use crate::command::heatsink;

const ITEMS: usize = 60;

fn call(data: &Path, operation: Operation, body: &Json) -> Json {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let answer = runtime.block_on(async {
        let store = Embedded::file(data).unwrap();
        store.call(operation, Bytes::from(body.to_string())).await.unwrap()
    });
    serde_json::from_slice(&answer).unwrap()
}

/// A data file with a table whose index has no sort key.
fn data(name: &str) -> PathBuf {
    let place = std::env::temp_dir().join(format!("heatsink-value-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&place);
    std::fs::create_dir_all(&place).unwrap();
    let path = place.join("data.db");
    let attributes =
        ["pk", "sk", "status"].map(|name| json!({ "AttributeName": name, "AttributeType": "S" }));
    let key = |name: &str, kind: &str| json!({ "AttributeName": name, "KeyType": kind });
    let create = json!({
        "TableName": "Tasks", "BillingMode": "PAY_PER_REQUEST", "AttributeDefinitions": attributes,
        "KeySchema": [key("pk", "HASH"), key("sk", "RANGE")],
        "GlobalSecondaryIndexes": [{
            "IndexName": "by-status", "Projection": { "ProjectionType": "KEYS_ONLY" }, "KeySchema": [key("status", "HASH")],
        }],
    });
    call(&path, Operation::CreateTable, &create);
    for numbers in (0..ITEMS).collect::<Vec<_>>().chunks(25) {
        let put = |number: &usize| {
            let status = if number.is_multiple_of(4) { "done" } else { "open" };
            json!({ "PutRequest": { "Item": { "pk": { "S": "p" }, "sk": { "S": number.to_string() }, "status": { "S": status } } } })
        };
        let puts: Vec<Json> = numbers.iter().map(put).collect();
        call(&path, Operation::BatchWriteItem, &json!({ "RequestItems": { "Tasks": puts } }));
    }
    path
}

fn statuses(data: &Path) -> Vec<String> {
    let page = call(
        data,
        Operation::Scan,
        &json!({ "TableName": "Tasks", "ProjectionExpression": "#s", "ExpressionAttributeNames": { "#s": "status" } }),
    );
    page["Items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["status"]["S"].as_str().unwrap().to_owned())
        .collect()
}

/// Another command on the file: its exit code, and what it printed.
fn other(data: &Path, args: &[&str]) -> (i32, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_heatsink"));
    command.args(args).arg("--data").arg(data).current_dir(data.parent().unwrap()).stdin(Stdio::null());
    let output = command.output().unwrap();
    let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    (output.status.code().unwrap(), text)
}

#[test]
fn a_value_goes_to_four_shards_and_back() {
    let data = data("back");
    let start = |shards: &str, more: &[&str]| {
        let args = [&["start", "Tasks", "open", "--index", "by-status", "--shards", shards], more].concat();
        heatsink(&data, &args)
    };
    let before = statuses(&data);
    let (code, plan) = start("4", &["--dry-run"]);
    assert_eq!((code, &plan["items"], &plan["from"], &plan["to"]), (0, &json!(45), &json!(1), &json!(4)));
    assert_eq!(plan["keeps_former_forms"], false);
    let next =
        format!("heatsink reshard start Tasks open --index by-status --shards 4 --data {}", data.display());
    assert_eq!(plan["next_steps"], json!([next]));
    assert_eq!(statuses(&data), before, "a dry run writes nothing");

    let (code, report) = start("4", &[]);
    assert_eq!(
        (code, &report["from"], &report["to"], &report["rewritten"]),
        (0, &json!(1), &json!(4), &plan["to_rewrite"])
    );
    let count = |status: &str| statuses(&data).iter().filter(|one| one.starts_with(status)).count();
    assert_eq!(
        (count("open#~") as u64, count("open"), count("done")),
        (report["rewritten"].as_u64().unwrap(), 45, 15)
    );
    assert_eq!(count("done#~"), 0);
    let status = heatsink(&data, &["status", "Tasks"]).1;
    let known = json!({
        "index": "by-status", "attribute": "status", "value": "open", "shards": 4, "reserved": 4, "former": [], "migration": null,
    });
    assert_eq!((&status["values"], &status["next_steps"]), (&json!([known]), &json!([])));
    assert_eq!(start("4", &[]).1["already"], true);

    let query = json!({
        "TableName": "Tasks", "IndexName": "by-status", "KeyConditionExpression": "#s = :s",
        "ExpressionAttributeNames": { "#s": "status" }, "ExpressionAttributeValues": { ":s": { "S": "open" } },
    });
    for (value, calls) in [("open", "open#~3"), ("done", "done")] {
        let mut query = query.clone();
        query["ExpressionAttributeValues"][":s"]["S"] = json!(value);
        let request = data.with_file_name("query.json");
        std::fs::write(&request, query.to_string()).unwrap();
        let (code, said) = other(&data, &["explain", request.to_str().unwrap(), "--op", "Query"]);
        assert!(code == 0 && said.contains(calls) && !said.contains("done#~"), "{said}");
    }
    let (code, said) = other(&data, &["verify", "Tasks"]);
    assert!(code == 0 && said.contains("1 single value of an index"), "{said}");
    // A writer that bypasses Heatsink is found, and what it wrote is brought to its form.
    let key = json!({ "pk": { "S": "p" }, "sk": { "S": "1" } });
    let past = json!({
        "TableName": "Tasks", "Key": key, "UpdateExpression": "SET #s = :s", "ExpressionAttributeNames": { "#s": "status" },
        "ExpressionAttributeValues": { ":s": { "S": "open" } },
    });
    for sort in ["1", "2", "3"] {
        let mut past = past.clone();
        past["Key"]["sk"]["S"] = json!(sort);
        call(&data, Operation::UpdateItem, &past);
    }
    assert_eq!(other(&data, &["verify", "Tasks"]).0, 1);
    assert_eq!(other(&data, &["verify", "Tasks", "--repair", "--yes"]).0, 0);

    assert_eq!(start("1", &[]).0, 0);
    assert_eq!(statuses(&data), before);
    assert_eq!(heatsink(&data, &["status", "Tasks"]).1["values"], json!([]));
}

#[test]
fn what_cannot_be_is_refused_and_what_stops_goes_on() {
    let data = data("refused");
    let refused = |args: &[&str], code: i32, why: &str| {
        let (found, error) = heatsink(&data, args);
        let text = error.to_string();
        assert!(found == code && text.contains(why), "{args:?}: exit {found}, {text}");
    };
    let at = |value: &'static str, index: &'static str, shards: &'static str| {
        ["start", "Tasks", value, "--index", index, "--shards", shards]
    };
    refused(&at("open", "nowhere", "4"), 64, "no index nowhere");
    refused(&at("open", "by-status", "0"), 64, "1 to 1000 shards");
    refused(&at("", "by-status", "4"), 64, "no empty value");

    // An item that has no room for a suffix stops it. It is named, and clients can go on.
    let item = json!({ "pk": { "S": "p" }, "sk": { "S": "big" }, "status": { "S": "big" }, "v": { "S": "x".repeat(409_600 - 18) } });
    call(&data, Operation::PutItem, &json!({ "TableName": "Tasks", "Item": item }));
    refused(&at("big", "by-status", "1000"), 1, "sk = \\\"big\\\"");
    let status = heatsink(&data, &["status", "Tasks"]).1;
    assert_eq!(status["values"][0]["migration"], json!({ "to": 1000, "writes_new": true }));
    let next =
        format!("heatsink reshard start Tasks big --index by-status --shards 1000 --data {}", data.display());
    assert_eq!(status["next_steps"], json!([next]));
    let smaller = json!({ "TableName": "Tasks", "Item": { "pk": { "S": "p" }, "sk": { "S": "big" }, "status": { "S": "big" } } });
    call(&data, Operation::PutItem, &smaller);
    assert_eq!(heatsink(&data, &at("big", "by-status", "1000")).0, 0);
    assert!(statuses(&data).iter().any(|status| status.starts_with("big#~")));
    // A key of the table beside it.
    assert_eq!(heatsink(&data, &["start", "Tasks", "p", "--shards", "3"]).0, 0);
    assert_eq!(heatsink(&data, &at("big", "by-status", "2")).0, 0);
    assert_eq!(other(&data, &["verify", "Tasks"]).0, 0);
}
