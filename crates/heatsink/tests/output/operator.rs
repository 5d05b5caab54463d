//! `heatsink config check` and `heatsink adopt` as an operator runs them: words, JSON, exit codes.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use bytes::Bytes;
use heatsink_dynamo::Operation;
use heatsink_store::Store;
use heatsink_store::embedded::Embedded;
use serde_json::{Value as Json, json};

/// A directory of its own, removed at the end.
struct TestDir(PathBuf);

impl TestDir {
    fn new(name: &str) -> Self {
        let place = std::env::temp_dir().join(format!("heatsink-operator-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&place).unwrap();
        TestDir(place)
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for TestDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn heatsink(args: &[&str], files: &[&Path]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_heatsink"));
    let mut files = files.iter();
    for arg in args {
        match *arg {
            "@" => command.arg(files.next().unwrap()),
            arg => command.arg(arg),
        };
    }
    command.stdin(Stdio::null()).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// A data file with a table of `items` items under one key, and one without a sort key.
fn data(place: &TestDir, items: usize) -> PathBuf {
    let path = place.0.join("data.db");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = Embedded::file(&path).unwrap();
        let call = |operation, body: Json| store.call(operation, Bytes::from(body.to_string()));
        let definition = json!({
            "TableName": "Board", "BillingMode": "PAY_PER_REQUEST",
            "AttributeDefinitions": [{ "AttributeName": "pk", "AttributeType": "S" }, { "AttributeName": "sk", "AttributeType": "S" }],
            "KeySchema": [{ "AttributeName": "pk", "KeyType": "HASH" }, { "AttributeName": "sk", "KeyType": "RANGE" }],
        });
        call(Operation::CreateTable, definition).await.unwrap();
        let single = json!({
            "TableName": "Single", "BillingMode": "PAY_PER_REQUEST",
            "AttributeDefinitions": [{ "AttributeName": "pk", "AttributeType": "S" }],
            "KeySchema": [{ "AttributeName": "pk", "KeyType": "HASH" }],
        });
        call(Operation::CreateTable, single).await.unwrap();
        for at in 0..items {
            let item = json!({ "pk": { "S": "game" }, "sk": { "S": format!("{at:05}") }, "v": { "N": at.to_string() } });
            call(Operation::PutItem, json!({ "TableName": "Board", "Item": item })).await.unwrap();
        }
    });
    path
}

const RULES: &str = "[[rule]]\ntable = \"*\"\nstrategy = \"calculated\"\nshards = 4\n";

#[test]
fn rules_are_said_in_words_and_faults_exit_with_64() {
    let place = TestDir::new("config");
    let good = place.file("good.toml", RULES);
    let out = heatsink(&["config", "check", "--rules", "@"], &[&good]);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    assert_eq!(
        text(&out.stdout),
        "rule 1 (line 1): all keys of every table with a sort key: spread over 4 by a hash of the sort key\n"
    );
    let bad = place.file("bad.toml", "[[rule]]\ntable = \"T\"\nstrategy = \"calculated\"\nshards = 0\n");
    let out = heatsink(&["config", "check", "--rules", "@"], &[&bad]);
    assert_eq!(out.status.code(), Some(64));
    let said = text(&out.stderr);
    assert!(
        said.contains("bad.toml:4: rule[1].shards: ") && said.contains("a whole number from 1 to 1000"),
        "{said}"
    );
    let out = heatsink(&["config", "check", "--rules", "@"], &[&place.0.join("missing.toml")]);
    assert_eq!(out.status.code(), Some(64));
}

#[test]
fn a_table_is_checked_adopted_and_brought_back() {
    let place = TestDir::new("adopt");
    let rules = place.file("heatsink.toml", RULES);
    let data = data(&place, 60);
    let files: &[&Path] = &[&rules, &data];
    let verdict = |code: i32| {
        let out = heatsink(&["config", "check", "--rules", "@", "--data", "@", "--output", "json"], files);
        assert_eq!(out.status.code(), Some(code), "{}", text(&out.stderr));
        let found: Json = serde_json::from_slice(&out.stdout).unwrap();
        assert_eq!(found["tables"][1]["verdict"], "forwarded", "{found}");
        found["tables"][0]["verdict"].as_str().unwrap().to_owned()
    };
    assert_eq!(verdict(64), "refused");

    let adopt = |more: &[&str]| {
        let args = [&["adopt", "Board", "--rules", "@", "--data", "@", "--output", "json"], more].concat();
        heatsink(&args, files)
    };
    let out = adopt(&["--dry-run"]);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    let survey: Json = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!((&survey["items"], &survey["refused"]), (&json!(60), &json!(0)));
    assert_eq!(verdict(64), "refused", "a dry run changes nothing");

    let out = adopt(&[]);
    assert_eq!(out.status.code(), Some(64), "nobody to ask");
    assert!(text(&out.stderr).contains("say --yes"));
    let out = adopt(&["--yes"]);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    let report: Json = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!((&report["items"], &report["moved"]), (&json!(60), &survey["to_move"]));
    assert_eq!(verdict(0), "sharded");

    let out = adopt(&["--back", "--yes"]);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    let back: Json = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(back["checksum"], report["checksum"]);
    assert_eq!(verdict(64), "refused");
}

#[test]
fn what_cannot_be_adopted_exits_with_64() {
    let place = TestDir::new("usage");
    let rules = place.file("heatsink.toml", RULES);
    let data = data(&place, 1);
    let missing = place.0.join("missing.db");
    for (args, files, said) in [
        (&["adopt", "Board", "--rules", "@", "--yes"][..], &[&*rules][..], "--data"),
        (
            &["adopt", "Nope", "--rules", "@", "--data", "@", "--yes"],
            &[&rules, &data],
            "There is no table Nope",
        ),
        (
            &["adopt", "Single", "--rules", "@", "--data", "@", "--yes"],
            &[&rules, &data],
            "it has no sort key",
        ),
        (
            &["adopt", "Board", "--rules", "@", "--data", "@", "--yes"],
            &[&rules, &missing],
            "there is no such file",
        ),
        (&["adopt", "Board", "--back", "--data", "@", "--yes"], &[&data], "not on record as sharded"),
    ] {
        let out = heatsink(args, files);
        assert_eq!(out.status.code(), Some(64), "{args:?}: {}", text(&out.stderr));
        assert!(text(&out.stderr).contains(said), "{args:?}: {}", text(&out.stderr));
    }
    assert!(!missing.exists());
}

#[test]
fn a_shard_count_is_advised_with_its_risk_and_costs() {
    let rates = ["shards", "--writes", "5000", "--peak", "7000", "--partitions", "60"];
    let said = text(&heatsink(&rates, &[]).stdout);
    assert!(said.starts_with("29 shards for 5000 writes/s with peaks of 7000"), "{said}");
    assert!(said.contains("recommended") && said.contains("peak / 1,000"), "{said}");
    let advice: Json =
        serde_json::from_slice(&heatsink(&[&rates[..], &["--output", "json"]].concat(), &[]).stdout).unwrap();
    assert_eq!(advice["recommended"]["shards"], 29);
    assert_eq!(advice["simple"]["shards"], 7);
    assert!(advice["recommended"]["risk"].as_f64().unwrap() <= 0.01);
    assert!(advice["next_steps"][0].as_str().unwrap().contains("shards = 29"));
    let in_ranges = |reads: &str| {
        let rates = [&rates[..], &["--reads", reads]].concat();
        let said = text(&heatsink(&rates, &[]).stdout);
        let json = heatsink(&[&rates[..], &["--output", "json"]].concat(), &[]).stdout;
        (said, serde_json::from_slice::<Json>(&json).unwrap()["ranges"].clone())
    };
    let (said, ranges) = in_ranges("600");
    assert_eq!(ranges, json!({"page": 5.0, "page_per_range": 3_000.0, "fits": true}));
    assert!(said.contains("a page costs 5 read units, from the range that holds it, 3000 units/s"), "{said}");
    let (said, ranges) = in_ranges("601");
    assert!(ranges["fits"] == false && said.contains("of the 3000 that it takes: not then"), "{said}");
    let cold = text(&heatsink(&["shards", "--writes", "300"], &[]).stdout);
    assert!(cold.starts_with("No sharding") && !cold.contains("ranges"), "{cold}");
    for wrong in [["--peak", "1"], ["--risk", "0"], ["--writes", "inf"], ["--item-bytes", "0"]] {
        let given: &[&str] = if wrong[0] == "--writes" { &["shards"] } else { &["shards", "--writes", "9"] };
        let refused = heatsink(&[given, &wrong[..]].concat(), &[]);
        assert_eq!(refused.status.code(), Some(64), "{wrong:?}");
    }
}

#[test]
fn an_audit_says_which_keys_matter() {
    let place = TestDir::new("audit");
    let path = place.0.join("data.db");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let fill = async {
        let store = Embedded::file(&path).unwrap();
        let call = |operation, body: Json| store.call(operation, Bytes::from(body.to_string()));
        let definition = json!({
            "TableName": "Logs", "BillingMode": "PAY_PER_REQUEST",
            "AttributeDefinitions": [{ "AttributeName": "PK", "AttributeType": "S" }, { "AttributeName": "SK", "AttributeType": "S" }],
            "KeySchema": [{ "AttributeName": "PK", "KeyType": "HASH" }, { "AttributeName": "SK", "KeyType": "RANGE" }],
        });
        call(Operation::CreateTable, definition).await.unwrap();
        for nth in 0..700 {
            let (key, sort) = match nth % 7 {
                0 => (format!("USER#u-{nth}"), "PROFILE".to_owned()),
                1 => (
                    "BRAND_INDEX".to_owned(),
                    format!("BRAND#2026-06-22T{:02}:{:02}:00Z", nth / 30, nth % 30),
                ),
                _ => ("OPS_LOG".to_owned(), format!("2026-06-22T01:00:00.{nth:03}Z#scan")),
            };
            let item = json!({ "PK": { "S": key }, "SK": { "S": sort }, "text": { "S": "x".repeat(1_100) } });
            call(Operation::PutItem, json!({ "TableName": "Logs", "Item": item })).await.unwrap();
        }
    };
    runtime.block_on(fill);

    let out = heatsink(&["audit", "Logs", "--data", "@", "--output", "json"], &[&path]);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    let report: Json = serde_json::from_slice(&out.stdout).unwrap();
    let said: Vec<_> = report["patterns"].as_array().unwrap().iter().collect();
    let of = |at: usize| {
        let one = said[at];
        (
            one["pattern"].as_str().unwrap(),
            one["keys"].as_u64().unwrap(),
            one["verdict"]["action"].as_str().unwrap(),
        )
    };
    assert_eq!(
        (of(0), of(1), of(2)),
        (("OPS_LOG", 1, "shard"), ("BRAND_INDEX", 1, "leave"), ("USER#u-{n}", 100, "leave"))
    );
    // 500 lines of 2 units in one second.
    assert_eq!((&report["whole"], &said[0]["busiest"]["peak_units"]), (&json!(true), &json!(1000.0)));

    // Its rule is one that can be used, and the report is the same when it is.
    let rules = place.file("heatsink.toml", said[0]["verdict"]["rule"].as_str().unwrap());
    let out = heatsink(&["adopt", "Logs", "--rules", "@", "--data", "@", "--yes"], &[&rules, &path]);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    let out = heatsink(&["audit", "Logs", "--data", "@", "--output", "json"], &[&path]);
    assert_eq!(serde_json::from_slice::<Json>(&out.stdout).unwrap(), report);

    let out = heatsink(&["audit", "Logs", "--data", "@", "--items", "80"], &[&path]);
    let said = text(&out.stdout);
    assert!(said.contains("of about 700: rates and sizes are at least what is shown"), "{said}");
    assert!(said.contains("That is a sample") && !said.contains("at most"), "{said}");
    assert!(said.contains("do not shard"), "{said}");
    let out = heatsink(&["audit", "Nope", "--data", "@"], &[&path]);
    assert_eq!((out.status.code(), text(&out.stderr).contains("There is no table Nope")), (Some(64), true));
}

#[test]
fn an_audit_warns_of_assigned_shards_that_follow_from_the_key() {
    let place = TestDir::new("audit-drawn");
    let path = place.0.join("data.db");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = Embedded::file(&path).unwrap();
        let call = |operation, body: Json| store.call(operation, Bytes::from(body.to_string()));
        let definition = json!({
            "TableName": "Events", "BillingMode": "PAY_PER_REQUEST",
            "AttributeDefinitions": [{ "AttributeName": "pk", "AttributeType": "S" }, { "AttributeName": "sk", "AttributeType": "N" }],
            "KeySchema": [{ "AttributeName": "pk", "KeyType": "HASH" }, { "AttributeName": "sk", "KeyType": "RANGE" }],
        });
        call(Operation::CreateTable, definition).await.unwrap();
        for nth in 0..40 {
            let item = json!({ "pk": { "S": format!("user-1#{}", nth % 4) }, "sk": { "N": nth.to_string() } });
            call(Operation::PutItem, json!({ "TableName": "Events", "Item": item })).await.unwrap();
        }
    });
    let rules = "[[rule]]\ntable = \"Events\"\nkeys = \"user-*\"\nstrategy = \"template\"\ntemplate = \"{pk}#{shard}\"\nhash = \"random\"\nshards = 4\n";
    let rules = place.file("heatsink.toml", rules);
    let out = heatsink(&["adopt", "Events", "--rules", "@", "--data", "@", "--yes"], &[&rules, &path]);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    let out = heatsink(&["audit", "Events", "--data", "@"], &[&path]);
    let said = text(&out.stdout);
    assert!(said.contains("warning: the rule says that other writers assign shards at random"), "{said}");
    assert!(said.contains("hash = \"modulo\""), "{said}");
    let out = heatsink(&["audit", "Events", "--data", "@", "--output", "json"], &[&path]);
    let report: Json = serde_json::from_slice(&out.stdout).unwrap();
    assert!(report["recipe"].as_str().unwrap().contains("each of 40 items"), "{report}");
}
