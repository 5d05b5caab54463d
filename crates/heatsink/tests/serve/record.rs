//! `serve --record`, and `heatsink-lab simulate --trace` of what it has written.

use std::fs::Permissions;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use serde_json::Value as Json;

use crate::process::{Server, call, run, scratch};

const SORTED: &str = r#"{"TableName":"scores","KeySchema":[{"AttributeName":"pk","KeyType":"HASH"},{"AttributeName":"sk","KeyType":"RANGE"}],
    "AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"S"},{"AttributeName":"sk","AttributeType":"N"}],"BillingMode":"PAY_PER_REQUEST"}"#;

fn put(endpoint: &str, key: &str, sort: usize) {
    let body = format!(
        r#"{{"TableName":"scores","Item":{{"pk":{{"S":"{key}"}},"sk":{{"N":"{sort}"}},"secret":{{"S":"do not tell"}}}}}}"#
    );
    assert_eq!(call(endpoint, "PutItem", &body).0, 200);
}

fn query(endpoint: &str, key: &str) {
    let body = format!(
        r#"{{"TableName":"scores","KeyConditionExpression":"pk = :k","ExpressionAttributeValues":{{":k":{{"S":"{key}"}}}},"ConsistentRead":true}}"#
    );
    assert_eq!(call(endpoint, "Query", &body).0, 200);
}

/// A server that records, with a table of which the names of the keys are known.
fn recording(file: &str, arguments: &[&str]) -> Server {
    let server = Server::start(&[&["--record", file], arguments].concat());
    let endpoint = server.endpoint();
    assert_eq!(call(&endpoint, "CreateTable", SORTED).0, 200);
    // Its keys are asked for when it is first named.
    let begun = (0..200).any(|_| {
        put(&endpoint, "warm", 0);
        std::thread::sleep(Duration::from_millis(20));
        let names = ["heatsink_recorded_accesses_total", "heatsink_recording_failed"];
        names.iter().any(|name| metric(&server, name) > 0.0)
    });
    assert!(begun, "nothing is recorded");
    server
}

fn metric(server: &Server, name: &str) -> f64 {
    let (_, text) = server.ask("/_heatsink/metrics");
    let line = text.lines().find(|line| line.starts_with(name));
    line.and_then(|line| line.rsplit(' ').next()?.parse().ok()).unwrap_or_default()
}

fn text(file: &Path) -> String {
    let mut text = String::new();
    MultiGzDecoder::new(std::fs::File::open(file).unwrap()).read_to_string(&mut text).unwrap();
    text
}

fn gzip(file: &Path, text: &str) {
    let mut out = GzEncoder::new(std::fs::File::create(file).unwrap(), flate2::Compression::default());
    out.write_all(text.as_bytes()).unwrap();
    out.finish().unwrap();
}

/// The words of a command that is refused.
fn refused(arguments: &[&str]) -> String {
    let output = run(arguments);
    assert_eq!(output.status.code(), Some(64), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn what_is_recorded_is_replayed_with_every_remedy() {
    let dir = scratch("record");
    let file = dir.join("traffic.gz");
    let name = file.to_str().unwrap();
    let server = recording(name, &[]);
    let endpoint = server.endpoint();
    for nth in 0..50 {
        put(&endpoint, "game_x", nth);
        query(&endpoint, "game_x");
    }
    assert_eq!(metric(&server, "heatsink_recording_failed"), 0.0);
    assert_eq!(server.stop("TERM"), (Some(0), String::new()));
    let lines = text(&file);
    assert!(!lines.contains("secret") && !lines.contains("do not tell"), "only keys are recorded");
    assert_eq!(lines.matches(r#""op":"query","key":"game_x""#).count(), 50, "{lines}");
    let last = lines.lines().rfind(|line| line.contains(r#""op":"query""#)).unwrap();
    assert!(last.contains(r#""items":50"#) && last.contains(r#""strong":true"#), "{last}");
    assert!(lines.lines().last().unwrap().contains(r#""dropped":0,"because":"stopped""#), "{lines}");
    let report = run(&["simulate", "--trace", name, "--output", "json"]);
    assert!(report.status.success(), "{report:?}");
    let report: Json = serde_json::from_slice(&report.stdout).unwrap();
    let runs = report["runs"].as_array().unwrap();
    let names: Vec<&str> = runs.iter().map(|run| run["name"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        [
            "nothing",
            "waiting for DynamoDB's split",
            "read cache in front",
            "write sharding, N = 10",
            "Heatsink, advised: nothing"
        ]
    );
    let loads = runs[0]["workloads"].as_array().unwrap();
    let query = loads.iter().find(|load| load["name"] == "query, scores").unwrap();
    assert_eq!((&query["offered"], &query["throttled"]), (&Json::from(50), &Json::from(0)));
    let advised = runs[4]["breaks"].as_str().unwrap();
    assert!(
        advised.contains("\"game_x\" of scores") && advised.contains("no partition is near its ceiling"),
        "{advised}"
    );
    // The scenario that was made of it can be changed and run.
    let printed = run(&["simulate", "--trace", name, "--print-scenario"]);
    std::fs::write(dir.join("mine.toml"), printed.stdout).unwrap();
    assert!(run(&["simulate", dir.join("mine.toml").to_str().unwrap()]).status.success());
    assert!(refused(&["serve", "--listen", "127.0.0.1:0", "--record", name]).contains("is there already"));
}

#[test]
fn keys_are_hashed_where_that_is_asked_for() {
    let dir = scratch("record-hashed");
    let file = dir.join("traffic.gz");
    let server = recording(file.to_str().unwrap(), &["--record-hashed", "--record-one-in", "2"]);
    let endpoint = server.endpoint();
    (0..60).for_each(|nth| put(&endpoint, "game_x", nth));
    assert_eq!(server.stop("TERM"), (Some(0), String::new()));
    let lines = text(&file);
    assert!(!lines.contains("game_x") && lines.contains(r#""hashed":true"#), "{lines}");
    let accesses: Vec<&str> = lines.lines().filter(|line| line.contains("\"access\"")).collect();
    assert!(accesses.iter().all(|line| line.contains(r#""weight":2"#)), "{lines}");
    let grows = accesses.iter().filter(|line| line.contains(r#""grows":true"#)).count();
    assert!(grows * 10 >= accesses.len() * 5, "sort keys grow, as can be seen: {lines}");
    assert!((15..=60).contains(&accesses.len()), "about half of them: {}", accesses.len());
    assert!(run(&["simulate", "--trace", file.to_str().unwrap()]).status.success());
}

#[test]
fn a_recording_is_its_owners_alone_and_follows_no_link() {
    let dir = scratch("record-alone");
    let (file, link) = (dir.join("traffic.gz"), dir.join("link"));
    std::fs::write(&file, "").unwrap();
    std::fs::set_permissions(&file, Permissions::from_mode(0o666)).unwrap();
    std::os::unix::fs::symlink(&file, &link).unwrap();
    let said = refused(&["serve", "--listen", "127.0.0.1:0", "--record", link.to_str().unwrap()]);
    assert!(said.contains("it is a link"), "{said}");
    let server = recording(file.to_str().unwrap(), &[]);
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(server.stop("TERM"), (Some(0), String::new()));
}

#[test]
fn a_line_that_is_no_access_is_refused_before_it_fills_the_memory() {
    let dir = scratch("record-long");
    let file = dir.join("traffic.gz");
    gzip(&file, &format!("{{\"trace\":{{\"version\":1}}}}\n{}", "x".repeat(100 << 10)));
    let said = refused(&["simulate", "--trace", file.to_str().unwrap()]);
    assert!(said.contains("line 2 is longer than 64 KB"), "{said}");
}

#[test]
fn a_full_disk_ends_the_recording_and_nothing_else() {
    let server = recording("/dev/full", &[]);
    let endpoint = server.endpoint();
    for _ in 0..200 {
        put(&endpoint, "game_x", 1);
        if metric(&server, "heatsink_recording_failed") > 0.0 {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    put(&endpoint, "game_x", 2);
    query(&endpoint, "game_x");
    assert_eq!(metric(&server, "heatsink_recording_failed"), 1.0);
    let (code, stderr) = server.stop("TERM");
    assert_eq!(code, Some(0));
    assert_eq!(
        stderr.matches("the recording has ended: its file cannot be written: No space left").count(),
        1,
        "{stderr}"
    );
}

#[test]
fn a_trace_that_cannot_be_read_is_refused_with_its_place() {
    let dir = scratch("record-bad");
    let file = dir.join("traffic.gz");
    let name = file.to_str().unwrap();
    let server = recording(name, &[]);
    (0..50).for_each(|nth| put(&server.endpoint(), "game_x", nth));
    assert_eq!(server.stop("TERM"), (Some(0), String::new()));
    let (whole, lines) = (std::fs::read(&file).unwrap(), text(&file));
    let trace = |arguments: &[&'static str]| {
        let mut all = vec!["simulate", "--trace", name];
        all.extend_from_slice(arguments);
        all
    };
    // Cut off, as a killed process leaves it.
    std::fs::write(&file, &whole[..whole.len() - 30]).unwrap();
    let said = refused(&trace(&[]));
    assert!(said.contains("traffic.gz: the compressed data are cut off or damaged after line"), "{said}");
    let skipped = run(&trace(&["--skip-bad", "--output", "json"]));
    assert!(skipped.status.success(), "{skipped:?}");
    // Damaged.
    let mut damaged = whole.clone();
    let middle = damaged.len() / 2;
    damaged[middle..middle + 20].fill(0xff);
    std::fs::write(&file, damaged).unwrap();
    assert!(refused(&trace(&[])).contains("traffic.gz"));
    // Mixed.
    gzip(&file, &format!("{lines}{lines}"));
    assert!(refused(&trace(&[])).contains(": a second trace begins here"));
    gzip(&file, &lines.replace(r#""version":1"#, r#""version":9"#));
    let newer = refused(&trace(&[]));
    assert!(
        newer.contains("traffic.gz:1: the trace has version 9, and this build reads version 1"),
        "{newer}"
    );
    std::fs::write(&file, "0.1,put,k,s,5\n").unwrap();
    assert!(refused(&trace(&[])).contains("traffic.gz:1: not a trace"));
    std::fs::remove_file(&file).unwrap();
    assert!(refused(&trace(&[])).contains("No such file"));
}
