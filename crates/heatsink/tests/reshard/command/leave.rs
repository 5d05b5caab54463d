//! The way out: a store with all that can be sharded leaves as its clients wrote it, killed on the
//! way, and beside clients that go on.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use heatsink_control::Rules;
use heatsink_dynamo::{Error, Operation, Outcome};
use heatsink_env::{Env, RealEnv};
use heatsink_store::Store;
use heatsink_store::embedded::Embedded;
use heatsink_store::upstream::Endpoint;
use heatsink_workers::{Reshard, ReshardOptions, Unwatched};
use serde_json::{Value as Json, json};

use super::{Server, Town, client, local, pause};

const RULE: &str = "[[rule]]\ntable = \"Ruled*\"\nkeys = \"g*\"\nstrategy = \"calculated\"\nshards = 3\n";

/// The tables of a store, each with its items by text, in order.
type Contents = BTreeMap<String, Vec<String>>;

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

async fn call(store: &dyn Store, operation: Operation, body: &Json) -> Json {
    let answer = store.call(operation, Bytes::from(body.to_string())).await.unwrap();
    serde_json::from_slice(&answer).unwrap()
}

/// All that is in a store.
async fn contents(store: &dyn Store) -> Contents {
    let listed = call(store, Operation::ListTables, &json!({})).await;
    let mut contents = Contents::new();
    for table in listed["TableNames"].as_array().unwrap() {
        let scan = json!({ "TableName": table, "ConsistentRead": true });
        let page = call(store, Operation::Scan, &scan).await;
        assert!(page.get("LastEvaluatedKey").is_none());
        let mut items: Vec<String> =
            page["Items"].as_array().unwrap().iter().map(ToString::to_string).collect();
        items.sort();
        contents.insert(table.as_str().unwrap().to_owned(), items);
    }
    contents
}

fn in_file(data: &Path) -> Contents {
    runtime().block_on(async { contents(&Embedded::file(data).unwrap()).await })
}

/// A data file with items as clients wrote them.
fn written(name: &str) -> PathBuf {
    let place = std::env::temp_dir().join(format!("heatsink-leave-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&place);
    std::fs::create_dir_all(&place).unwrap();
    let path = place.join("data.db");
    runtime().block_on(async {
        let store = Embedded::file(&path).unwrap();
        for (table, kind) in [("Scores", "S"), ("Ruled", "S"), ("Numbers", "N")] {
            let attribute = |name: &str, kind: &str| json!({ "AttributeName": name, "AttributeType": kind });
            let key = |name: &str, role: &str| json!({ "AttributeName": name, "KeyType": role });
            let mut body = json!({
                "TableName": table, "BillingMode": "PAY_PER_REQUEST", "KeySchema": [key("pk", "HASH"), key("sk", "RANGE")],
                "AttributeDefinitions": [attribute("pk", kind), attribute("sk", "S")],
            });
            if table == "Scores" {
                body["AttributeDefinitions"].as_array_mut().unwrap().push(attribute("status", "S"));
                body["GlobalSecondaryIndexes"] = json!([{
                    "IndexName": "by-status", "KeySchema": [key("status", "HASH")], "Projection": { "ProjectionType": "ALL" },
                }]);
            }
            call(&store, Operation::CreateTable, &body).await;
            let keys = if kind == "N" { ["7", "-12.5"] } else { ["game", "votes"] };
            for number in 0..40 {
                for pk in keys {
                    let item = json!({
                        "pk": { kind: pk }, "sk": { "S": format!("{number:03}") }, "n": { "N": "5" }, "status": { "S": "open" },
                        "more": { "M": { "list": { "L": [{ "NULL": true }, { "N": "1.5" }] } } },
                    });
                    call(&store, Operation::PutItem, &json!({ "TableName": table, "Item": item })).await;
                }
            }
        }
    });
    // Whoever takes over waits for calls of before.
    let fence = "[fence]\nstraggler = \"100ms\"\n";
    std::fs::write(place.join("none.toml"), fence).unwrap();
    std::fs::write(place.join("rules.toml"), format!("{RULE}{fence}")).unwrap();
    path
}

/// A command on the data file: its exit code, and its JSON document.
fn run(data: &Path, rules: &str, args: &[&str]) -> (i32, Json) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_heatsink"));
    command.args(args).arg("--data").arg(data).args(["--rules", rules, "--output", "json"]);
    let output = command.current_dir(data.parent().unwrap()).stdin(Stdio::null()).output().unwrap();
    let text = if output.stdout.is_empty() { output.stderr } else { output.stdout };
    let text = String::from_utf8(text).unwrap();
    let last = text.lines().last().unwrap_or_default();
    (output.status.code().unwrap(), serde_json::from_str(last).unwrap_or_else(|_| panic!("no JSON: {text}")))
}

/// The same file with a table under a rule, keys in shards, a counter, a value of an index, and
/// numbers.
fn sharded(name: &str) -> (PathBuf, Contents) {
    let data = written(name);
    let original = in_file(&data);
    let done = |rules: &str, args: &[&str]| {
        let (code, document) = run(&data, rules, args);
        assert_eq!(code, 0, "{args:?}: {document}");
    };
    done("rules.toml", &["adopt", "Ruled", "--yes", "--offline"]);
    done("none.toml", &["reshard", "start", "Ruled", "game", "--shards", "5"]);
    done("none.toml", &["reshard", "start", "Scores", "game", "--shards", "4"]);
    let counter = ["--shards", "3", "--strategy", "counter", "--attribute", "n"];
    done("none.toml", &[&["reshard", "start", "Scores", "votes"], &counter[..]].concat());
    done("none.toml", &["reshard", "start", "Scores", "open", "--index", "by-status", "--shards", "3"]);
    done("none.toml", &["reshard", "start", "Numbers", "7", "--shards", "3"]);
    for table in ["Ruled", "Scores", "Numbers"] {
        assert_ne!(in_file(&data)[table], original[table]);
    }
    (data, original)
}

#[test]
fn a_dry_run_changes_nothing_and_names_every_step() {
    let (data, _) = sharded("dry");
    let before = in_file(&data);
    let (code, plan) = run(&data, "none.toml", &["leave", "--dry-run"]);
    assert_eq!(code, 0, "{plan}");
    let steps: Vec<String> = plan["steps"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| format!("{} {}", one["table"].as_str().unwrap_or("-"), one["step"].as_str().unwrap()))
        .collect();
    let all = [
        "Numbers keys",
        "Numbers off_record",
        "Ruled table",
        "Scores keys",
        "Scores values",
        "Scores off_record",
        "- registry",
    ];
    assert_eq!(steps, all);
    assert_eq!(plan["in_the_way"], json!([]));
    let (code, status) = run(&data, "none.toml", &["status", "Scores"]);
    assert_eq!(code, 0);
    let scores = &status["tables"][0];
    assert_eq!((&scores["keys_in_shards"], &scores["values_in_shards"]), (&json!(2), &json!(1)), "{scores}");
    let game = &scores["keys"][0];
    let command = format!("heatsink reshard back Scores game --data {} --rules none.toml", data.display());
    assert_eq!((&game["key"], &game["command"]), (&json!("game"), &json!(command)));
    assert!(game["takes"]["to_move"].as_u64().is_some_and(|moved| moved > 0), "{game}");
    assert_eq!(in_file(&data), before);
}

/// Without its registry nothing is said of a store but that it is lost.
#[test]
fn a_store_whose_registry_is_lost_is_not_taken_for_one_without_shards() {
    let (data, original) = sharded("lost");
    runtime().block_on(async {
        let store = Embedded::file(&data).unwrap();
        let unprotected = json!({ "TableName": "heatsink.registry", "DeletionProtectionEnabled": false });
        call(&store, Operation::UpdateTable, &unprotected).await;
        call(&store, Operation::DeleteTable, &json!({ "TableName": "heatsink.registry" })).await;
    });
    // Nobody remembers anything here.
    let _ = std::fs::remove_file(data.parent().unwrap().join("heatsink.known-tables.json"));
    let before = in_file(&data);
    assert_ne!(before["Scores"], original["Scores"]);
    for args in [&["status"][..], &["leave", "--dry-run"], &["leave", "--yes"]] {
        let (code, said) = run(&data, "none.toml", args);
        assert!(
            code == 64 && said.to_string().contains("has the tag heatsink.registry"),
            "{args:?} {code} {said}"
        );
    }
    assert_eq!(in_file(&data), before);
}

/// A table that others put on record again while another one leaves.
#[test]
fn direct_access_is_not_said_right_of_a_table_that_is_in_shards_again() {
    let data = written("again");
    let town = Town::settled(&data);
    let _gateway = town.gateway();
    for args in [&["Scores", "game", "--shards", "4"][..], &["Numbers", "7", "--shards", "3"]] {
        assert_eq!(town.reshard(&[&["start"], args, &["--wait"]].concat()).0, 0);
    }
    let mut leave = Command::new(env!("CARGO_BIN_EXE_heatsink"));
    leave.args([
        "leave",
        "--yes",
        "--rate",
        "60",
        "--upstream",
        &town.store.endpoint,
        "--rules",
        &town.rules(),
    ]);
    let leave = local(leave.args(["--output", "json"])).stdout(Stdio::piped()).stderr(Stdio::piped());
    let leave = leave.spawn().unwrap();
    for _ in 0..400 {
        if !town.run(&["status"]).1.to_string().contains("\"Numbers\"") {
            break;
        }
        pause(Duration::from_millis(25));
    }
    assert_eq!(town.reshard(&["start", "Numbers", "7", "--shards", "3", "--wait"]).0, 0);
    let left = leave.wait_with_output().unwrap();
    let said: Json = serde_json::from_slice(&left.stdout).unwrap();
    let why = String::from_utf8(left.stderr).unwrap();
    assert_eq!((left.status.code(), &said["direct_access"]), (Some(1), &json!(false)), "{said} {why}");
    assert!(why.contains("Table Numbers was put on record again"), "{why}");
    // Again: now it is.
    let (code, why) = town.run(&["leave", "--yes"]);
    assert!(code == 1 && why.to_string().contains("these gateways would refuse"), "{code} {why}");
}

/// A store that answers so many calls.
struct Dies(Embedded, AtomicI64);

impl Store for Dies {
    fn call(&self, operation: Operation, body: Bytes) -> BoxFuture<'_, Result<Bytes, Error>> {
        match self.1.fetch_sub(1, Ordering::SeqCst) > 0 {
            true => self.0.call(operation, body),
            false => async { Err(Error::unavailable("dead", Outcome::Unknown)) }.boxed(),
        }
    }
}

#[test]
fn what_is_in_the_way_is_named_and_nothing_is_changed() {
    let (data, original) = sharded("moving");
    // A reshard that was killed in its middle.
    for calls in (20..).step_by(5) {
        runtime().block_on(async {
            let store = Arc::new(Dies(Embedded::file(&data).unwrap(), AtomicI64::new(calls)));
            let (env, rules) = (Arc::new(RealEnv), Rules::default());
            let options = ReshardOptions { exclusive: true, rate: u32::MAX };
            if let Ok(reshard) = Reshard::prepare(store, env, &rules, "Scores", b"game", 9, false).await {
                assert!(reshard.run(options, &Unwatched).await.is_err(), "it ended within {calls} calls");
            }
        });
        let status = run(&data, "none.toml", &["reshard", "status", "Scores"]).1;
        if status["keys"].as_array().unwrap().iter().any(|key| !key["moves"].is_null()) {
            break;
        }
    }
    let before = in_file(&data);
    let refused = |rules: &str, says: &[&str]| {
        let (code, error) = run(&data, rules, &["leave", "--yes"]);
        let text = error["error"]["message"].as_str().unwrap().to_owned();
        assert!(code == 64 && says.iter().all(|says| text.contains(says)), "{code} {error}");
        assert_eq!(in_file(&data), before);
    };
    let cancel = format!("heatsink reshard cancel Scores game --data {} --rules none.toml", data.display());
    refused("none.toml", &["The key \"game\" of table Scores moves", &cancel, "Nothing was changed"]);
    refused("rules.toml", &["a [[rule]] for \"Ruled*\"", "would shard table Ruled again"]);
    let (_, plan) = run(&data, "none.toml", &["leave", "--dry-run"]);
    assert!(plan["in_the_way"][0].as_str().is_some_and(|why| why.contains(&cancel)), "{plan}");
    let without = run(&data, "none.toml", &["leave"]);
    assert_eq!(without.0, 64, "{}", without.1);
    // Once it has ended, all goes.
    assert_eq!(run(&data, "none.toml", &["reshard", "start", "Scores", "game", "--shards", "9"]).0, 0);
    assert_eq!(run(&data, "none.toml", &["leave"]).0, 64, "nobody was asked");
    let (code, left) = run(&data, "none.toml", &["leave", "--yes"]);
    assert_eq!((code, &left["registry_removed"], &left["direct_access"]), (0, &json!(true), &json!(true)));
    assert_eq!(in_file(&data), original);
    // Again: nothing is left to do.
    assert_eq!(run(&data, "none.toml", &["leave", "--yes"]).0, 0);
    assert_eq!(in_file(&data), original);
}

#[test]
fn killed_on_the_way_the_same_command_goes_on_and_a_gateway_starts_fresh() {
    let (data, original) = sharded("killed");
    let mut killed = 0;
    for millis in [10, 25, 40, 60, 80, 100, 130, 160, 200, 250, 300, 400] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_heatsink"));
        command.args(["leave", "--yes", "--rules", "none.toml", "--data"]).arg(&data);
        command.current_dir(data.parent().unwrap()).stdin(Stdio::null()).stdout(Stdio::null());
        let mut child = command.stderr(Stdio::null()).spawn().unwrap();
        pause(Duration::from_millis(millis));
        if child.try_wait().unwrap().is_some() {
            break;
        }
        child.kill().unwrap();
        child.wait().unwrap();
        killed += 1;
    }
    assert!(killed > 2, "{killed}");
    let (code, left) = run(&data, "none.toml", &["leave", "--yes"]);
    assert_eq!(code, 0, "{left}");
    assert_eq!(in_file(&data), original);
    let rules = data.parent().unwrap().join("none.toml");
    let server = Server::start(&[
        "--data",
        data.to_str().unwrap(),
        "--partitions",
        "off",
        "--rules",
        rules.to_str().unwrap(),
    ]);
    let seen =
        runtime().block_on(async { contents(&client(Endpoint::parse(&server.endpoint).unwrap())).await });
    assert_eq!(seen, original);
}

/// Writes items of its own, and adds to a counter, until it is over: how many of each were
/// acknowledged.
fn writer(endpoint: &str, name: usize, over: &AtomicBool, refused: &AtomicUsize) -> (Vec<String>, u64) {
    runtime().block_on(async {
        let client = client(Endpoint::parse(endpoint).unwrap());
        let (mut own, mut added) = (Vec::new(), 0);
        for number in 0.. {
            if over.load(Ordering::Relaxed) {
                break;
            }
            // Few enough for the test's own counts, which read all of them.
            pause_in(Duration::from_millis(10)).await;
            let sort = format!("{name}-{number:05}");
            let table = if number % 2 == 0 { "Scores" } else { "Ruled" };
            let item = json!({ "pk": { "S": "game" }, "sk": { "S": sort }, "status": { "S": "open" } });
            let put = Bytes::from(json!({ "TableName": table, "Item": item }).to_string());
            // Until it is acknowledged: what is in flight when a gateway refuses may have been done.
            while let Err(error) = client.call(Operation::PutItem, put.clone()).await {
                assert!(error.retryable(), "{error}");
                refused.fetch_add(1, Ordering::Relaxed);
                pause_in(Duration::from_millis(20)).await;
            }
            own.push(format!("{table} {sort}"));
            let key = json!({ "pk": { "S": "votes" }, "sk": { "S": "000" } });
            let add = json!({
                "TableName": "Scores", "Key": key, "UpdateExpression": "ADD n :one", "ExpressionAttributeValues": { ":one": { "N": "1" } },
            });
            match client.call(Operation::UpdateItem, Bytes::from(add.to_string())).await {
                Ok(_) => added += 1,
                Err(error) => assert_eq!(error.outcome, Outcome::NotDone, "{error}"),
            }
        }
        (own, added)
    })
}

async fn pause_in(time: Duration) {
    RealEnv.sleep(time).await;
}

#[test]
fn clients_go_on_and_lose_nothing_while_a_store_leaves() {
    let data = written("clients");
    let original = in_file(&data);
    let town = Town::settled(&data);
    let gateway = town.gateway();
    let ruled = data.parent().unwrap().join("ruled.toml");
    let fence = std::fs::read_to_string(town.rules()).unwrap().replace("rule = []", RULE);
    std::fs::write(&ruled, fence).unwrap();
    let rules = ruled.to_str().unwrap();
    // Its store is a server of Heatsink: there clients have to be kept away, which nobody is taken to
    // know.
    let adopt = |how: &str| {
        let mut adopt = Command::new(env!("CARGO_BIN_EXE_heatsink"));
        adopt.args(["adopt", "Ruled", how, "--yes", "--rules", rules, "--upstream", &town.store.endpoint]);
        let output = local(&mut adopt).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, said) = adopt("--here");
    assert!(code == Some(64) && said.contains("say --offline. Nothing was changed"), "{code:?} {said}");
    let (code, said) = adopt("--dry-run");
    assert!(code == Some(0) && said.contains("while nobody uses it"), "{code:?} {said}");
    assert_eq!(town.run(&["status"]).1["tables"], json!([]));
    assert_eq!(adopt("--offline").0, Some(0));
    for args in [
        &["Ruled", "game", "--shards", "5"][..],
        &["Scores", "game", "--shards", "4"],
        &["Scores", "votes", "--shards", "3", "--strategy", "counter", "--attribute", "n"],
        &["Scores", "open", "--index", "by-status", "--shards", "3"],
        &["Numbers", "7", "--shards", "3"],
    ] {
        let (code, done) = town.reshard(&[&["start"], args, &["--wait"]].concat());
        assert_eq!(code, 0, "{args:?}: {done}");
    }
    // One that would shard a table again.
    let ruling = Server::start(&["--upstream", &town.store.endpoint, "--rules", rules]);
    let (code, refused) = town.run(&["leave", "--yes"]);
    assert!(code == 64 && refused.to_string().contains("would shard table Ruled again"), "{code} {refused}");
    // It reads rules without it.
    std::fs::copy(town.rules(), &ruled).unwrap();
    ruling.signal("HUP");

    let (over, refused) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let writers: Vec<_> = [&gateway, &ruling]
        .into_iter()
        .enumerate()
        .map(|(name, server)| {
            let (endpoint, over, refused) = (server.endpoint.clone(), over.clone(), refused.clone());
            std::thread::spawn(move || writer(&endpoint, name, &over, &refused))
        })
        .collect();
    let mut left = (64, Json::Null);
    for _ in 0..50 {
        left = town.run(&["leave", "--yes"]);
        if left.0 != 64 {
            break;
        }
        pause(Duration::from_millis(200));
    }
    // The tables are out; the registry stays, because gateways run.
    let (code, why) = left;
    assert!(code == 1 && why.to_string().contains("these gateways would refuse"), "{code} {why}");
    pause(Duration::from_millis(500));
    over.store(true, Ordering::Relaxed);
    let mut written: Vec<String> = Vec::new();
    let mut added = 0;
    for writer in writers {
        let (own, more) = writer.join().unwrap();
        written.extend(own);
        added += more;
    }
    assert!(written.len() > 50 && added > 20, "{} {added}", written.len());
    let status = town.run(&["status"]).1;
    assert_eq!((&status["tables"], &status["there"]), (&json!([]), &json!(true)), "{status}");

    // Past all gateways: each item under its own key, and the counter in one piece.
    let mut seen =
        runtime().block_on(async { contents(&client(Endpoint::parse(&town.store.endpoint).unwrap())).await });
    let mut found: Vec<String> = Vec::new();
    for table in ["Scores", "Ruled"] {
        seen.get_mut(table).unwrap().retain(|text| {
            let item: Json = serde_json::from_str(text).unwrap();
            assert!(!item["pk"]["S"].as_str().unwrap().contains("#~"), "{text}");
            assert_eq!(item["status"]["S"], "open", "{text}");
            let sort = item["sk"]["S"].as_str().unwrap();
            let is_new = sort.contains('-');
            if is_new {
                found.push(format!("{table} {sort}"));
            }
            !is_new
        });
    }
    found.sort();
    written.sort();
    assert_eq!(found, written);
    let votes = json!({ "TableName": "Scores", "Key": { "pk": { "S": "votes" }, "sk": { "S": "000" } } });
    let sum = town.past(Operation::GetItem, &votes)["Item"]["n"]["N"].clone();
    assert_eq!(sum, (5 + added).to_string());

    gateway.signal("TERM");
    ruling.signal("TERM");
    let mut ended = (1, Json::Null);
    for _ in 0..100 {
        ended = town.run(&["leave", "--yes"]);
        if ended.0 != 1 {
            break;
        }
        pause(Duration::from_millis(200));
    }
    assert_eq!((ended.0, &ended.1["registry_removed"]), (0, &json!(true)), "{}", ended.1);
    let tables = town.past(Operation::ListTables, &json!({}))["TableNames"].clone();
    let kept: Vec<&String> = original.keys().collect();
    assert_eq!(tables, json!(kept));
    // A gateway starts as on a store that never had one.
    let fresh = town.gateway();
    let count = runtime().block_on(async {
        let client = client(Endpoint::parse(&fresh.endpoint).unwrap());
        let query = json!({
            "TableName": "Ruled", "Select": "COUNT", "KeyConditionExpression": "pk = :p", "ExpressionAttributeValues": { ":p": { "S": "game" } },
        });
        call(&client, Operation::Query, &query).await["Count"].as_u64().unwrap()
    });
    let ruled = written.iter().filter(|one| one.starts_with("Ruled")).count();
    assert_eq!(count, 40 + ruled as u64);
}
