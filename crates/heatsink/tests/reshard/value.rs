//! `heatsink reshard start … --index` as an operator runs it, on a data file and beside gateways in
//! processes of their own: words, JSON, exit codes, what `status`, `explain` and `verify` say of
//! it, what is refused, and a run that is stopped on its way.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use bytes::Bytes;
use heatsink_dynamo::Operation;
use heatsink_store::Store;
use heatsink_store::embedded::Embedded;
use serde_json::{Value as Json, json};

use crate::command::{Server, Town, heatsink, local};

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
    let (code, left) = heatsink(&data, &["back", "Tasks", "--all"]);
    let way =
        format!("heatsink reshard start Tasks open --index by-status --shards 1 --data {}", data.display());
    assert!(code == 1 && left.to_string().contains(&way), "{code} {left}");

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

#[test]
fn several_values_are_named_in_a_file() {
    let data = data("many");
    let file = data.with_file_name("values");
    std::fs::write(&file, "open\ndone\n\nopen\n").unwrap();
    let start = |more: &[&str]| {
        let args =
            ["start", "Tasks", "--index", "by-status", "--file", file.to_str().unwrap(), "--shards", "3"];
        heatsink(&data, &[&args, more].concat())
    };
    let (code, plan) = start(&["--dry-run"]);
    let items: Vec<&Json> = plan["values"].as_array().unwrap().iter().map(|one| &one["items"]).collect();
    assert_eq!((code, items), (0, vec![&json!(15), &json!(45)]), "{plan}");
    let (code, report) = start(&[]);
    let values: Vec<&Json> =
        report["rewritten"].as_array().unwrap().iter().map(|one| &one["value"]).collect();
    assert_eq!((code, values), (0, vec![&json!("done"), &json!("open")]), "{report}");
    let count = |status: &str| statuses(&data).iter().filter(|one| one.starts_with(status)).count();
    assert_eq!((count("open"), count("done")), (45, 15));
    assert!(count("open#~") > 0 && count("done#~") > 0);
    assert_eq!(start(&[]).1["already"], json!(["done", "open"]));
    std::fs::write(&file, (0..101).map(|number| format!("{number}\n")).collect::<String>()).unwrap();
    let (code, error) = start(&[]);
    assert!(code == 64 && error.to_string().contains("100"), "{error}");
}

#[test]
fn values_are_named_by_how_they_begin() {
    let data = data("prefix");
    let start = |prefix: &str, more: &[&str]| {
        let args = ["start", "Tasks", "--index", "by-status", "--prefix", prefix, "--shards", "3"];
        heatsink(&data, &[&args, more].concat())
    };
    let (code, plan) = start("op", &["--dry-run"]);
    let planned = plan["values"].as_array().unwrap();
    let [open] = &**planned else { panic!("{plan}") };
    assert_eq!((code, &open["value"], &open["items"]), (0, &json!("open"), &json!(45)), "{plan}");
    assert_eq!(plan["items_read"], json!(ITEMS));
    let (code, report) = start("op", &[]);
    assert_eq!((code, &report["rewritten"][0]["value"]), (0, &json!("open")), "{report}");
    // The value is found, and not the forms in which its shards are stored.
    let (code, again) = start("o", &[]);
    assert_eq!((code, &again["already"]), (0, &json!(["open"])), "{again}");
    for (prefix, why) in [("", "begin with nothing"), ("zz", "60 items were read")] {
        let (code, error) = start(prefix, &[]);
        assert!(code == 64 && error.to_string().contains(why), "{code} {error}");
    }
    let none = ["start", "Tasks", "--index", "by-nothing", "--prefix", "o", "--shards", "3"];
    let (code, error) = heatsink(&data, &none);
    assert!(code == 64 && error.to_string().contains("no index by-nothing"), "{code} {error}");
}

/// The index of `Tasks`, `open` with so many shards, and the rest of the arguments.
fn open(what: &[&'static str], more: &[&'static str]) -> Vec<&'static str> {
    [what, &["Tasks", "open", "--index", "by-status"], more].concat()
}

#[test]
fn a_gateway_carries_out_what_the_command_asks_for_of_a_value() {
    let data = data("asked");
    let town = Town::settled(&data);
    let run = |what: &[&'static str], more: &[&'static str]| town.reshard(&open(what, more));
    let (code, error) = run(&["start"], &["--shards", "4"]);
    assert!(code == 69 && error.to_string().contains("--here"), "{code} {error}");

    // A gateway of a build that carries out reshards of keys alone: the registration of this one
    // without what such a build does not write.
    let gateway = town.gateway();
    let of_gateways = json!({
        "TableName": "heatsink.registry", "KeyConditionExpression": "pk = :g", "ExpressionAttributeValues": { ":g": { "S": "gateways" } },
    });
    let mut older = town.past(Operation::Query, &of_gateways)["Items"][0].clone();
    assert_eq!(older.as_object_mut().unwrap().remove("carries_values"), Some(json!({ "BOOL": true })));
    let id = older["sk"]["S"].as_str().unwrap().to_owned();
    older.as_object_mut().unwrap().remove("seal");
    older["sk"]["S"] = json!("older");
    let put = json!({ "TableName": "heatsink.registry", "Item": older });
    town.past(Operation::PutItem, &put);
    drop(gateway);
    assert_eq!(town.run(&["gateways", "--remove", &id]).0, 0);
    let (code, error) = run(&["start"], &["--shards", "4"]);
    assert!(code == 69 && error.to_string().contains("older version"), "{code} {error}");
    assert_eq!(town.reshard(&["status"]).1["reshards"], json!([]), "nothing was written");
    let newer = town.gateway();
    assert_eq!(town.run(&["gateways", "--remove", "older"]).0, 0);

    // It carries nothing out for now.
    newer.signal("STOP");
    let (code, asked) = run(&["start"], &["--shards", "4"]);
    assert_eq!((code, &asked["asked"], &asked["gateways"]), (0, &json!(["open"]), &json!(1)), "{asked}");
    let next = ["status Tasks", "pause Tasks open --index by-status", "cancel Tasks open --index by-status"]
        .map(|step| format!("heatsink reshard {step}{}", town.words()));
    assert_eq!(asked["next_steps"], json!(next));
    assert_eq!(run(&["start"], &["--shards", "4"]).0, 0, "the same again is no other reshard");
    let (code, error) = run(&["start"], &["--shards", "8"]);
    assert!(code == 64 && error.to_string().contains("asked for already"), "{code} {error}");
    let (code, error) = run(&["start"], &["--shards", "4", "--here"]);
    assert!(
        code == 64 && error.to_string().contains("cancel Tasks open --index by-status"),
        "{code} {error}"
    );
    // A key of that name is something else.
    let (code, error) = town.reshard(&["pause", "Tasks", "open"]);
    assert!(code == 64 && error.to_string().contains("no reshard of the key"), "{code} {error}");
    assert_eq!(run(&["pause"], &[]).1["pause"], json!(["open"]));
    let status = town.reshard(&["status", "Tasks"]).1;
    let (one, next) = (
        &status["reshards"][0],
        format!("heatsink reshard resume Tasks open --index by-status{}", town.words()),
    );
    assert_eq!(
        (&one["index"], &one["paused"], &status["next_steps"]),
        (&json!("by-status"), &json!(true), &json!([next]))
    );
    assert_eq!(run(&["cancel"], &[]).1["removed"], json!(["open"]));
    assert_eq!(town.reshard(&["status"]).1["reshards"], json!([]));
    newer.signal("CONT");

    // Past the point of no return; and another gateway goes on where this one is killed.
    assert_eq!(run(&["start"], &["--shards", "4", "--rate", "4"]).0, 0);
    let status =
        town.until_of("Tasks", "that items are rewritten", |one| one["items_moved"].as_u64() > Some(0));
    assert_eq!(status["reshards"][0]["phase"], "MOVE", "{status}");
    let (code, error) = run(&["cancel"], &[]);
    let (text, back) =
        (error.to_string(), format!("start Tasks open --index by-status --shards 1{}", town.words()));
    assert!(code == 1 && text.contains(&back) && text.contains("pause"), "{code} {text}");
    drop(newer);
    let another = town.gateway();
    let (code, report) = run(&["start"], &["--shards", "4", "--rate", "4", "--wait"]);
    assert_eq!((code, &report["from"], &report["to"]), (0, &json!(1), &json!(4)), "{report}");
    let scan = json!({ "TableName": "Tasks", "ConsistentRead": true });
    let all = town.past(Operation::Scan, &scan);
    let spread = |item: &&Json| item["status"]["S"].as_str().unwrap().starts_with("open#~");
    let spread = all["Items"].as_array().unwrap().iter().filter(spread).count();
    // A gateway that is killed takes the count of its last second with it.
    let counted = usize::try_from(report["rewritten"].as_u64().unwrap()).unwrap();
    assert!(counted <= spread && counted + 8 > spread && spread > 20, "{spread} are spread: {report}");
    assert_eq!(all["Count"].as_u64(), Some(ITEMS as u64));
    let known = town.reshard(&["status", "Tasks"]).1["values"].clone();
    assert_eq!((&known[0]["shards"], &known[0]["migration"]), (&json!(4), &Json::Null));
    another.signal("TERM");
}

#[test]
fn a_server_with_a_store_of_its_own_spreads_a_value_that_is_asked_of_it() {
    let data = data("server");
    let mut server = Server::start(&["--data", data.to_str().unwrap(), "--partitions", "off"]);
    let mut command = Command::new(env!("CARGO_BIN_EXE_heatsink"));
    command
        .arg("reshard")
        .args(open(&["start"], &["--shards", "4", "--wait", "--output", "json", "--server"]));
    // It needs no credentials.
    local(command.arg(&server.endpoint)).env_remove("AWS_ACCESS_KEY_ID").current_dir(data.parent().unwrap());
    let output = command.output().unwrap();
    let report: Json = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
    assert_eq!((&report["from"], &report["to"]), (&json!(1), &json!(4)), "{report}");
    server.signal("TERM");
    server.child.wait().unwrap();
    let spread = statuses(&data).iter().filter(|status| status.starts_with("open#~")).count();
    assert_eq!(report["rewritten"], json!(spread));
    assert!(spread > 20);
}
