//! Where rules come from: `--rules`, else `./heatsink.toml`, else none; and which of them match no
//! table.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Stdio;

use serde_json::{Value as Json, json};

use crate::command::{Server, TestDir, text};

fn rules(shards: u16) -> String {
    format!("[[rule]]\ntable = \"*\"\nstrategy = \"calculated\"\nshards = {shards}\n")
}

/// One operation: status and body.
pub fn post(address: &str, operation: &str, body: &str) -> String {
    let request = format!(
        "POST / HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-type: application/x-amz-json-1.0\r\n\
         x-amz-target: DynamoDB_20120810.{operation}\r\nx-amz-date: 20260101T000000Z\r\nauthorization: AWS4-HMAC-SHA256 \
         Credential=a/20260101/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=0\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    exchange(address, &request)
}

fn exchange(address: &str, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// How many physical requests a Query of a new table takes; 0 where it is forwarded.
fn shards_in_force(server: &Server) -> usize {
    let address = &server.address();
    let table = r#"{"TableName":"board","BillingMode":"PAY_PER_REQUEST","KeySchema":[{"AttributeName":"pk","KeyType":"HASH"},{"AttributeName":"sk","KeyType":"RANGE"}],
        "AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"S"},{"AttributeName":"sk","AttributeType":"S"}]}"#;
    let query = r#"{"TableName":"board","KeyConditionExpression":"pk = :p","ExpressionAttributeValues":{":p":{"S":"g"}}}"#;
    assert!(post(address, "CreateTable", table).starts_with("HTTP/1.1 200"));
    assert!(post(address, "Query", query).starts_with("HTTP/1.1 200"));
    let metrics = server.ask("/_heatsink/metrics");
    let sum = metrics.lines().find_map(|line| line.strip_prefix("heatsink_physical_calls_per_request_sum "));
    sum.map_or(0, |sum| sum.parse().unwrap())
}

#[test]
fn serve_takes_the_file_in_the_working_directory_and_an_explicit_one_before_it() {
    let place = TestDir::new("found");
    let file = place.file("heatsink.toml", &rules(4));
    place.file("other.toml", &rules(6));
    for (arguments, name, shards) in [
        (&["serve", "--listen", "127.0.0.1:0"][..], "heatsink.toml", 4),
        (&["--listen", "127.0.0.1:0"], "heatsink.toml", 4),
        (&["serve", "--listen", "127.0.0.1:0", "--rules", "other.toml"], "other.toml", 6),
        (&["--listen", "127.0.0.1:0", "--rules", "other.toml"], "other.toml", 6),
    ] {
        let server = Server::start(&place, arguments);
        let said = &server.banner["rules"];
        let path = std::path::PathBuf::from(said["file"].as_str().unwrap());
        assert_eq!(path, file.with_file_name(name), "{arguments:?}");
        let words = said["rules"][0].as_str().unwrap();
        assert!(words.contains(&format!("spread over {shards}")), "{arguments:?}: {said}");
        assert_eq!(shards_in_force(&server), shards, "{arguments:?}");
    }
}

#[test]
fn the_banner_says_where_there_is_no_file() {
    let place = TestDir::new("none");
    for arguments in [&["serve", "--listen", "127.0.0.1:0"][..], &["--listen", "127.0.0.1:0"]] {
        let server = Server::start(&place, arguments);
        assert_eq!(
            server.banner["rules"],
            json!({ "file": null, "rules": [], "automatic": [], "clients": [] })
        );
        assert_eq!(shards_in_force(&server), 0);
    }
    let said = banner(&place);
    assert!(said.contains("No rules"), "{said}");
    let file = place.file("heatsink.toml", &rules(4));
    let said = banner(&place);
    assert!(said.contains(&format!("Rules in force: 1 rule, from {}", file.display())), "{said}");
    assert!(
        said.contains("rule 1 (line 1): all keys of every table with a sort key: spread over 4"),
        "{said}"
    );
    // A file without rules is named too.
    place.file("heatsink.toml", "");
    assert!(banner(&place).contains("Rules in force: no rules, from "));
    // What is done without being asked for is said, also where there is no rule.
    place.file("heatsink.toml", "[[automatic]]\ntable = \"Scores\"\nmode = \"auto\"\nmax_shards = 64\n");
    let automatic =
        "automatic 1: all keys of table Scores: a key gets 1 to 64 shards by itself when it is hot";
    let said = banner(&place);
    assert!(said.contains("Rules in force: no rules, from ") && said.contains(automatic), "{said}");
    let server = Server::start(&place, &["serve", "--listen", "127.0.0.1:0"]);
    let words = server.banner["rules"]["automatic"][0].as_str().unwrap();
    assert!(words.starts_with(automatic), "{words}");
    let said = text(&place.command(&["config", "check"]).output().unwrap().stdout);
    assert!(
        said.contains("every table is forwarded until a key of it gets shards") && said.contains(automatic),
        "{said}"
    );
    let said = place.command(&["config", "check", "--output", "json"]).output().unwrap().stdout;
    let said: Json = serde_json::from_slice(&said).unwrap();
    assert_eq!(said["automatic"][0], words);
}

/// The whole banner for people: what is printed until the process is told to end.
fn banner(place: &TestDir) -> String {
    let mut command = place.command(&["serve", "--listen", "127.0.0.1:0"]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let mut said = Vec::new();
    let mut part = [0; 4096];
    while !["No rules", "Rules in force"].iter().any(|heading| text(&said).contains(heading)) {
        let read = stdout.read(&mut part).unwrap();
        assert!(read > 0, "{}", text(&said));
        said.extend_from_slice(&part[..read]);
    }
    let _ = child.kill();
    stdout.read_to_end(&mut said).unwrap();
    let _ = child.wait();
    text(&said)
}

#[test]
fn a_file_that_is_there_and_cannot_be_read_is_an_error() {
    let place = TestDir::new("unreadable");
    std::fs::create_dir(place.0.join("heatsink.toml")).unwrap();
    let done = place.run(&["serve", "--listen", "127.0.0.1:0"]);
    assert_eq!(done.status.code(), Some(64), "{}", text(&done.stderr));
    assert!(text(&done.stderr).contains("cannot read the rules in heatsink.toml"), "{}", text(&done.stderr));
}

#[test]
fn a_list_wants_two_brackets() {
    let place = TestDir::new("brackets");
    place.file("heatsink.toml", "\n[rule]\ntable = \"T\"\nstrategy = \"calculated\"\nshards = 4\n");
    for arguments in [&["serve", "--listen", "127.0.0.1:0"][..], &["config", "check"]] {
        let done = place.run(arguments);
        assert_eq!(done.status.code(), Some(64));
        let said = text(&done.stderr);
        assert!(said.contains("heatsink.toml:2: rule: ") && said.contains("[[rule]]"), "{said}");
    }
    place.file("s.toml", "about = \"x\"\nduration = \"1s\"\n[table]\nname = \"T\"\n");
    let said = text(&place.run(&["simulate", "s.toml"]).stderr);
    assert!(said.contains("s.toml:3: table: ") && said.contains("[[table]]"), "{said}");
}

#[test]
fn explain_takes_the_same_file() {
    let place = TestDir::new("explained");
    place.file("heatsink.toml", &rules(3));
    place.file(
        "table.json",
        r#"{"TableName":"board","BillingMode":"PAY_PER_REQUEST","KeySchema":[{"AttributeName":"pk","KeyType":"HASH"},{"AttributeName":"sk","KeyType":"RANGE"}],
        "AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"S"},{"AttributeName":"sk","AttributeType":"S"}]}"#,
    );
    place.file("query.json", r#"{"TableName":"board","KeyConditionExpression":"pk = :p","ExpressionAttributeValues":{":p":{"S":"g"}}}"#);
    let explain = ["explain", "query.json", "--op", "Query", "--table", "table.json", "--output", "json"];
    let plan: Json = serde_json::from_slice(&place.run(&explain).stdout).unwrap();
    assert_eq!(plan["calls"].as_array().unwrap().len(), 3, "{plan}");
}

/// The exit code, the report and the error of a check against the data file.
fn checked(place: &TestDir) -> (Option<i32>, Json, String) {
    let done = place.run(&["config", "check", "--data", "data.db", "--output", "json"]);
    (done.status.code(), serde_json::from_slice(&done.stdout).unwrap(), text(&done.stderr))
}

#[test]
fn rules_that_match_no_table_are_found() {
    let place = TestDir::new("idle");
    place.data();
    // Board holds items, so a rule for it is refused until it is adopted; this one keeps its keys
    // whole.
    let whole = "[[rule]]\ntable = \"Board\"\nstrategy = \"none\"\n";
    place.file("heatsink.toml", whole);
    let (code, report, _) = checked(&place);
    assert_eq!(code, Some(0), "{report}");
    assert_eq!(report["rules"][0]["tables"], json!(["Board"]));

    let typo = format!("{whole}[[rule]]\ntable = \"Boards\"\nstrategy = \"calculated\"\nshards = 4\n");
    place.file("heatsink.toml", &typo);
    let (code, report, error) = checked(&place);
    assert_eq!(code, Some(1), "{report}");
    assert_eq!(report["rules"][1]["tables"], json!([]));
    let error: Json = serde_json::from_str(&error).unwrap();
    let said = error["error"]["message"].as_str().unwrap();
    assert_eq!(said, "rule 2 (line 4, table \"Boards\") matches no table of the store");
    let done = place.run(&["config", "check", "--data", "data.db"]);
    assert_eq!(done.status.code(), Some(1));
    assert!(text(&done.stdout).contains("\n  matches no table\n"), "{}", text(&done.stdout));

    // A glob is told apart: what it fits, and what it leaves alone.
    let glob = format!("{whole}[[rule]]\ntable = \"S*\"\nstrategy = \"calculated\"\nshards = 4\n");
    place.file("heatsink.toml", &glob);
    let (code, report, _) = checked(&place);
    assert_eq!(code, Some(1), "{report}");
    assert_eq!(
        (&report["rules"][1]["tables"], &report["rules"][1]["left_alone"]),
        (&json!([]), &json!(["Single"]))
    );

    // Against an endpoint likewise.
    let server = Server::start(&place, &["serve", "--listen", "127.0.0.1:0", "--rules", "/dev/null"]);
    let upstream = format!("http://{}", server.address());
    let done = place.run(&["config", "check", "--upstream", &upstream]);
    assert_eq!(done.status.code(), Some(1), "{}", text(&done.stderr));
    assert!(text(&done.stderr).contains("2 rules match no table of the store"), "{}", text(&done.stderr));

    // Without a store nothing is known of tables.
    let done = place.run(&["config", "check", "--output", "json"]);
    let report: Json = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!((done.status.code(), &report["rules"][0]["tables"]), (Some(0), &Json::Null));
}
