//! `heatsink … | head`: a reader that leaves early is no failure.

use std::io::pipe;

use crate::command::{Server, TestDir, text};

const RULES: &str = "[[rule]]\ntable = \"Board\"\nstrategy = \"calculated\"\nshards = 4\n";
const TABLE: &str = r#"{"TableName":"Board","BillingMode":"PAY_PER_REQUEST","KeySchema":[{"AttributeName":"pk","KeyType":"HASH"},{"AttributeName":"sk","KeyType":"RANGE"}],
    "AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"S"},{"AttributeName":"sk","AttributeType":"S"}]}"#;

#[test]
fn a_closed_pipe_ends_no_command_with_an_error() {
    let place = TestDir::new("pipes");
    place.data();
    place.file("heatsink.toml", RULES);
    place.file("table.json", TABLE);
    place.file("get.json", r#"{"TableName":"Board","Key":{"pk":{"S":"a"},"sk":{"S":"b"}}}"#);
    let server = Server::start(&place, &["serve", "--listen", "127.0.0.1:0"]);
    let address = server.address();
    for arguments in [
        &["--help"][..],
        &["--version"],
        &["completions", "bash"],
        &["config", "check"],
        &["config", "check", "--output", "json"],
        &["shards", "--writes", "5000"],
        &["shards", "--writes", "5000", "--output", "json"],
        &["explain", "get.json", "--op", "GetItem", "--table", "table.json"],
        &["audit", "Board", "--data", "data.db"],
        &["adopt", "Board", "--data", "data.db", "--dry-run"],
        &["status", "--data", "data.db"],
        &["leave", "--data", "data.db", "--dry-run"],
        &["simulate"],
        &["simulate", "votes"],
        &["simulate", "votes", "--output", "json"],
        &["demo"],
        &["demo", "votes"],
    ] {
        let (reader, writer) = pipe().unwrap();
        drop(reader);
        let done = place.command(arguments).stdout(writer).output().unwrap();
        assert_eq!(done.status.code(), Some(0), "{arguments:?}: {}", text(&done.stderr));
        assert_eq!(text(&done.stderr), "", "{arguments:?}");
    }

    // What a command finds decides its exit code, whoever reads what it says: this server has no
    // such table.
    let (reader, writer) = pipe().unwrap();
    drop(reader);
    let done = place.command(&["partitions", "Board", "--server", &address]).stdout(writer).output().unwrap();
    assert_eq!(done.status.code(), Some(64), "{}", text(&done.stderr));
}

#[test]
fn a_full_device_is_told_and_ends_with_a_code() {
    let place = TestDir::new("full");
    for arguments in [&["--help"][..], &["--version"], &["completions", "bash"], &["shards", "--writes", "9"]]
    {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let done = place.command(arguments).stdout(full).output().unwrap();
        let said = text(&done.stderr);
        assert_eq!(done.status.code(), Some(69), "{arguments:?}: {said}");
        assert!(said.contains("stdout: No space left on device"), "{said}");
    }
}
