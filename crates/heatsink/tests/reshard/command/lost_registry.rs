//! The registry of a data file is gone after a key was resharded: what commands say of the table,
//! and the way back.

use std::path::Path;
use std::process::{Command, Stdio};

use bytes::Bytes;
use heatsink_dynamo::Operation;
use heatsink_store::Store;
use heatsink_store::embedded::Embedded;
use serde_json::{Value as Json, json};

use super::{ITEMS, data, heatsink, physical_keys};

fn delete_registry(data: &Path) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = Embedded::file(data).unwrap();
        let unprotected = json!({ "TableName": "heatsink.registry", "DeletionProtectionEnabled": false });
        for (operation, body) in [
            (Operation::UpdateTable, unprotected),
            (Operation::DeleteTable, json!({ "TableName": "heatsink.registry" })),
        ] {
            store.call(operation, Bytes::from(body.to_string())).await.unwrap();
        }
    });
}

/// The exit code of `verify Scores`, and the document on stdout or the error on stderr.
fn verify(data: &Path, args: &[&str]) -> (i32, Json) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_heatsink"));
    command.args(["verify", "Scores", "--data"]).arg(data).args(["--output", "json"]).args(args);
    let output = command.current_dir(data.parent().unwrap()).stdin(Stdio::null()).output().unwrap();
    let text = if output.stdout.is_empty() { output.stderr } else { output.stdout };
    let text = String::from_utf8(text).unwrap();
    let document = text.lines().find_map(|line| serde_json::from_str(line).ok());
    (output.status.code().unwrap(), document.unwrap_or_else(|| serde_json::from_str(&text).unwrap()))
}

#[test]
fn a_table_whose_record_is_lost_is_named_and_put_on_record_again() {
    let data = data("lost");
    assert_eq!(heatsink(&data, &["start", "Scores", "game", "--shards", "4"]).0, 0);
    delete_registry(&data);
    let before = physical_keys(&data);

    let (code, error) = verify(&data, &[]);
    let said = error.to_string();
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("its record is lost") && said.contains("--rebuild"), "{said}");
    assert!(!said.contains("nothing to verify"), "{said}");
    for args in [
        &["start", "Scores", "--prefix", "ga", "--shards", "2", "--dry-run"][..],
        &["start", "Scores", "game", "--shards", "2", "--dry-run"],
        &["start", "Scores", "game#~3", "--shards", "2", "--dry-run"],
        &["back", "Scores", "game"],
    ] {
        let (code, error) = heatsink(&data, args);
        assert!(code == 64 && error.to_string().contains("no record of it"), "{args:?}: {code} {error}");
    }

    // `taken#~2` does not lie like a shard.
    let (code, seen) = verify(&data, &["--rebuild"]);
    assert_eq!(
        (code, &seen["keys"][0]["key"], &seen["keys"][0]["shards"]),
        (1, &json!("game"), &json!(4)),
        "{seen}"
    );
    assert_eq!((&seen["not_told"][0]["key"], &seen["recorded"]), (&json!("taken"), &json!(false)), "{seen}");
    assert_eq!(verify(&data, &["--rebuild", "--yes"]).0, 1, "not told");
    assert_eq!(verify(&data, &["--rebuild", "--as-logical-keys"]).0, 0);
    assert_eq!(verify(&data, &[]).0, 1, "nothing was recorded yet");
    let (code, done) = verify(&data, &["--rebuild", "--as-logical-keys", "--yes"]);
    assert_eq!((code, &done["recorded"]), (0, &json!(true)), "{done}");
    assert_eq!(physical_keys(&data), before, "no item was moved");
    let (code, findings) = verify(&data, &[]);
    assert_eq!((code, &findings["in_order"]), (0, &json!(ITEMS + 1)), "{findings}");
    assert_eq!(heatsink(&data, &["back", "Scores", "game"]).0, 0);
    assert_eq!(physical_keys(&data).iter().filter(|key| *key == "game").count(), ITEMS);
}

#[test]
fn a_key_that_is_written_like_a_shard_is_not_taken_for_a_clients_unasked() {
    let data = data("unasked");
    let (code, error) =
        heatsink(&data, &["start", "Scores", "--prefix", "taken", "--shards", "4", "--dry-run"]);
    assert!(code == 64 && error.to_string().contains("written like shard 2 of"), "{code} {error}");
    assert_eq!(heatsink(&data, &["start", "Scores", "taken#~2", "--shards", "4", "--dry-run"]).0, 0);
    let (code, error) = verify(&data, &[]);
    assert!(code == 1 && error.to_string().contains("It cannot be told"), "{code} {error}");
}
