//! `heatsink verify` and `heatsink adopt --as-it-lies` as an operator runs them: words, JSON, exit
//! codes.
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use bytes::Bytes;
use heatsink_dynamo::Operation;
use heatsink_store::Store;
use heatsink_store::embedded::Embedded;
use serde_json::{Value as Json, json};

const RULES: &str = "[[rule]]\ntable = \"*\"\nstrategy = \"calculated\"\nshards = 4\n";

/// A directory of its own, removed at the end, with a rules file and a data file.
struct TestDir(PathBuf);

impl TestDir {
    fn new(name: &str) -> Self {
        let place = std::env::temp_dir().join(format!("heatsink-verify-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&place);
        std::fs::create_dir_all(&place).unwrap();
        std::fs::write(place.join("heatsink.toml"), RULES).unwrap();
        let place = TestDir(place);
        place.raw(vec![(Operation::CreateTable, definition("Board"))]);
        let item = |at: usize| json!({ "pk": { "S": "game" }, "sk": { "S": format!("{at:03}") }, "at": { "N": at.to_string() } });
        place.raw(
            (0..50)
                .map(|at| (Operation::PutItem, json!({ "TableName": "Board", "Item": item(at) })))
                .collect(),
        );
        place
    }

    /// Requests to the store itself; their answers.
    fn raw(&self, requests: Vec<(Operation, Json)>) -> Vec<Json> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let store = Embedded::file(self.0.join("data.db")).unwrap();
            let mut answers = Vec::new();
            for (operation, body) in requests {
                let answer = store.call(operation, Bytes::from(body.to_string())).await.unwrap();
                answers.push(serde_json::from_slice(&answer).unwrap());
            }
            answers
        })
    }

    fn items(&self, table: &str) -> Vec<Json> {
        let scan = json!({ "TableName": table, "ConsistentRead": true });
        let mut items = self.raw(vec![(Operation::Scan, scan)])[0]["Items"].as_array().unwrap().clone();
        items.sort_by_key(|item| item["sk"]["S"].as_str().unwrap().to_owned());
        items
    }

    /// The command with these arguments, on the data file.
    fn run(&self, arguments: &str) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_heatsink"));
        command.args(arguments.split(' ')).current_dir(&self.0).stdin(Stdio::null()).env_remove("RUST_LOG");
        command.output().unwrap()
    }

    fn json(&self, arguments: &str, code: i32) -> Json {
        let out = self.run(&format!("{arguments} --output json"));
        assert_eq!(out.status.code(), Some(code), "{arguments}: {}", text(&out.stderr));
        serde_json::from_slice(&out.stdout).unwrap()
    }

    /// Writes an item of a shard under the logical key, as a writer does that bypasses Heatsink.
    fn misplace(&self, delete: bool) {
        let moved = self.items("Board").into_iter().find(|item| item["pk"]["S"] != "game").unwrap();
        let mut raw = moved.clone();
        raw["pk"] = json!({ "S": "game" });
        let mut requests = vec![(Operation::PutItem, json!({ "TableName": "Board", "Item": raw }))];
        if delete {
            let key = json!({ "pk": moved["pk"], "sk": moved["sk"] });
            requests.push((Operation::DeleteItem, json!({ "TableName": "Board", "Key": key })));
        }
        self.raw(requests);
    }
}

impl Drop for TestDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn definition(table: &str) -> Json {
    json!({
        "TableName": table, "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [{ "AttributeName": "pk", "AttributeType": "S" }, { "AttributeName": "sk", "AttributeType": "S" }],
        "KeySchema": [{ "AttributeName": "pk", "KeyType": "HASH" }, { "AttributeName": "sk", "KeyType": "RANGE" }],
    })
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn what_is_misplaced_is_listed_and_repaired_once_that_is_confirmed() {
    let place = TestDir::new("repair");
    assert_eq!(place.run("adopt Board --data data.db --yes").status.code(), Some(0));
    let good = place.items("Board");
    let out = place.run("verify Board --data data.db");
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    let said = text(&out.stdout);
    assert!(
        said.starts_with("table Board: 50 items read, as of 20") && said.contains("50 in order"),
        "{said}"
    );

    place.misplace(true);
    let bad = place.items("Board");
    let out = place.run("verify Board game --data data.db --repair");
    let said = text(&out.stdout);
    assert_eq!(out.status.code(), Some(1), "{said}");
    assert!(
        said.contains("1 misplaced")
            && said.contains("where no item exists")
            && said.contains("nothing was changed; --yes repairs 1"),
        "{said}"
    );
    assert_eq!(text(&out.stderr), "heatsink: 1 items of table Board are not as its record says\n");
    assert_eq!(place.items("Board"), bad, "a dry run changes nothing");

    let found = place.json("verify Board --data data.db", 1);
    assert_eq!(
        (&found["wrong"], &found["repairable"], &found["counts"]["misplaced"]),
        (&json!(1), &json!(1), &json!(1))
    );
    assert_eq!(found["findings"][0]["class"], "misplaced");
    assert!(
        found["as_of"].as_str().unwrap().ends_with('Z') && found["ended"].as_u64() >= found["began"].as_u64()
    );

    let found = place.json("verify Board --data data.db --repair --yes", 0);
    assert_eq!((&found["repaired"]["moved"], &found["wrong"]), (&json!(1), &json!(0)));
    assert_eq!(place.items("Board"), good);

    // A different item at its place: repair leaves both and says what to do.
    place.misplace(false);
    let both = place.items("Board").into_iter().find(|item| item["pk"]["S"] != "game").unwrap();
    let update = json!({
        "TableName": "Board", "Key": { "pk": both["pk"], "sk": both["sk"] }, "UpdateExpression": "SET newer = :t",
        "ExpressionAttributeValues": { ":t": { "BOOL": true } },
    });
    place.raw(vec![(Operation::UpdateItem, update)]);
    let out = place.run("verify Board --data data.db --repair --yes");
    let said = text(&out.stdout);
    assert_eq!(out.status.code(), Some(1));
    assert!(said.contains("differs in newer") && said.contains("Repair never touches them"), "{said}");
}

#[test]
fn what_cannot_be_verified_says_why() {
    let place = TestDir::new("usage");
    for (arguments, code, said) in [
        ("verify Board --data data.db", 64, "not on record as sharded"),
        ("verify Nope --data data.db", 64, "There is no table Nope"),
        ("verify heatsink.registry --data data.db", 64, "Heatsink's own table"),
        ("verify Board --data missing.db", 64, "there is no such file"),
        ("verify Board --data data.db --yes", 64, "--repair"),
        ("verify Board --data data.db --rate 0", 64, "--rate"),
        ("verify Board", 64, "--data"),
        ("adopt Board --data data.db --records-from Nope --yes", 64, "no record of a table"),
        ("adopt Board --data data.db --as-it-lies --back", 64, "--back"),
    ] {
        let out = place.run(arguments);
        assert_eq!(out.status.code(), Some(code), "{arguments}: {}", text(&out.stderr));
        assert!(text(&out.stderr).contains(said), "{arguments}: {}", text(&out.stderr));
    }
}

#[test]
fn a_copy_is_put_on_record_as_it_lies() {
    let place = TestDir::new("copy");
    assert_eq!(place.run("adopt Board --data data.db --yes").status.code(), Some(0));
    let items = place.items("Board");
    let mut requests = vec![(Operation::CreateTable, definition("Copy"))];
    requests
        .extend(items.iter().map(|item| (Operation::PutItem, json!({ "TableName": "Copy", "Item": item }))));
    place.raw(requests);

    let out = place.run("adopt Copy --data data.db --yes");
    assert_eq!(out.status.code(), Some(64));
    assert!(text(&out.stderr).contains("heatsink adopt Copy --as-it-lies"), "{}", text(&out.stderr));
    assert_eq!(place.run("adopt Copy --data data.db --dry-run").status.code(), Some(64));

    let out = place.run("adopt Copy --data data.db --as-it-lies");
    assert_eq!(out.status.code(), Some(64), "nobody to ask");
    assert!(
        text(&out.stderr).contains("say --yes") && text(&out.stderr).contains("none is moved"),
        "{}",
        text(&out.stderr)
    );
    let tried = place.json("adopt Copy --data data.db --as-it-lies --dry-run", 0);
    assert_eq!((&tried["items"], &tried["recorded"]), (&json!(50), &json!(false)));
    let out = place.run("verify Copy --data data.db");
    assert_eq!(out.status.code(), Some(1), "a dry run records nothing");
    assert!(text(&out.stderr).contains("is not on record as sharded"), "{}", text(&out.stderr));
    let recorded = place.json("adopt Copy --data data.db --records-from Board --yes", 0);
    assert_eq!((&recorded["items"], &recorded["recorded"]), (&json!(50), &json!(true)));
    assert!(recorded["from"].is_string());
    assert_eq!(place.json("verify Copy --data data.db", 0)["in_order"], 50);
    let out = place.run("adopt Copy --data data.db --as-it-lies --yes");
    assert!(text(&out.stderr).contains("on record already"), "{}", text(&out.stderr));
}
