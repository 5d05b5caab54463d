//! `heatsink audit --trace`: what `serve --record` writes names the hot keys and what to do about
//! them, and says what it does not show.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value as Json, json};

use crate::command::{Server, TestDir, report, run, text};
use crate::rules::post;

/// 2026-06-22T18:00:00Z.
const BEGIN: u64 = 1_782_151_200_000;

fn access(us: u64, more: &Json) -> String {
    let mut access = json!({ "us": us, "table": "Board", "op": "put", "units": 1_000 });
    for (name, value) in more.as_object().unwrap() {
        access[name] = value.clone();
    }
    format!("{}\n", json!({ "access": access }))
}

fn whole(header: &Json, accesses: &str, end: &Json) -> String {
    let tables = json!({ "table": { "name": "Board", "sort_key": true } });
    format!("{}\n{tables}\n{accesses}{}\n", json!({ "trace": header }), json!({ "end": end }))
}

fn header() -> Json {
    json!({ "version": 1, "unix_millis": BEGIN })
}

fn end(recorded: usize) -> Json {
    json!({ "us": 2_000_000, "recorded": recorded, "dropped": 0, "because": "stopped" })
}

/// 1,000 writes in a second of HOT with growing sort keys, 3,000 reads of one page of READ, two
/// writes of COLD, one of an index, and a Scan.
fn accesses() -> String {
    let mut all = String::new();
    for nth in 0..1_000_u64 {
        all += &access(nth * 1_000, &json!({ "key": "HOT", "sort": format!("2026-{nth:06}"), "bytes": 100 }));
    }
    for nth in 0..3_000_u64 {
        let read = json!({ "key": "READ", "op": "query", "page": "p", "bytes": 4_096, "items": 40 });
        all += &access(nth * 300, &read);
    }
    for nth in 0..2 {
        all += &access(nth, &json!({ "key": "COLD", "sort": "a", "bytes": 100 }));
    }
    all += &access(7, &json!({ "key": "open", "index": "by-status" }));
    all + &access(8, &json!({ "op": "scan" }))
}

/// Each pattern with its action.
fn found(table: &Json) -> Vec<(&str, &str)> {
    let all = table["patterns"].as_array().unwrap();
    all.iter()
        .map(|one| (one["pattern"].as_str().unwrap(), one["verdict"]["action"].as_str().unwrap()))
        .collect()
}

#[test]
fn a_recording_names_hot_keys_by_table_and_index() {
    let place = TestDir::new("audit-trace");
    let recording = whole(&header(), &accesses(), &end(4_004));
    place.file("plain", &recording);
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(recording.as_bytes()).unwrap();
    std::fs::write(place.0.join("trace.gz"), gzip.finish().unwrap()).unwrap();
    for name in ["plain", "trace.gz"] {
        let report = report(&place, &format!("audit --trace {name}"));
        let [table, index] = &report["tables"].as_array().unwrap()[..] else { panic!("{report:#}") };
        assert_eq!(found(table), [("HOT", "shard"), ("READ", "cache"), ("COLD", "leave")], "{report:#}");
        assert_eq!((&table["table"], &index["index"]), (&json!("Board"), &json!("by-status")));
        assert_eq!((table["items"].as_u64(), table["seconds"].as_u64()), (Some(4_002), Some(2)));
        let hot = &table["patterns"][0];
        assert_eq!(
            (&hot["busiest"]["peak_units"], &hot["busiest"]["error_units"]),
            (&json!(1_000.0), &json!(0.0))
        );
        assert!(hot["verdict"]["rule"].as_str().unwrap().contains("keys     = \"HOT\"\n"), "{hot:#}");
        assert_eq!(table["patterns"][1]["busiest"]["peak_read_units"], json!(3_000.0), "{table:#}");
        assert_eq!(report["source"]["recording"]["recorded"], json!(4_004));
    }
    let said = text(&run(&place, "audit Board --trace plain").stdout);
    for line in [
        "table Board: 4002 requests within 2 s, 0 % throttled, < 1 % more of no one key, or of one that is not known\n",
        "table Board, index by-status: 1 request within 2 s",
        "HOT: shard, because in its busiest second its one key takes 1000 write units a second on one partition",
        "READ: cache, because in its busiest second its one key takes 3000 read units a second",
        "Not seen:\n  - what did not go through the gateways that recorded it",
    ] {
        assert!(said.contains(line), "{line}\nin\n{said}");
    }
}

#[test]
fn a_recording_says_what_it_leaves_out() {
    let place = TestDir::new("audit-trace-unseen");
    let sampled = accesses().replace("\"us\"", "\"weight\":32,\"us\"");
    let limited = json!({ "us": 2_000_000, "recorded": 4_004, "dropped": 7, "because": "limit" });
    place.file("sampled", &whole(&header(), &sampled, &limited));
    place.file(
        "hashed",
        &whole(&json!({ "version": 1, "unix_millis": BEGIN, "hashed": true }), &accesses(), &end(4_004)),
    );
    let report = report(&place, "audit --trace sampled");
    let unseen = report["not_seen"].to_string();
    for what in ["stand for up to 32", "7 items or pages that were left out", "after the file was full"] {
        assert!(unseen.contains(what), "{what}: {unseen}");
    }
    assert!(report["tables"][0]["patterns"][0]["busiest"]["error_units"].as_f64().unwrap() > 0.0);
    let said = text(&run(&place, "audit --trace sampled").stdout);
    assert!(said.contains("The rate is that of a sample, right within ± "), "{said}");
    let said = text(&run(&place, "audit --trace hashed").stdout);
    assert!(said.contains("so there is no rule to propose") && !said.contains("[[rule]]"), "{said}");
    // Hashes of two recordings have different secrets.
    for both in ["hashed sampled", "sampled hashed"] {
        let refused = run(&place, &format!("audit --trace {both}"));
        assert_eq!(refused.status.code(), Some(64));
        assert!(text(&refused.stderr).contains("audit it by itself"), "{}", text(&refused.stderr));
    }
    assert_eq!(
        self::report(&place, "audit --trace sampled sampled")["source"]["recording"]["traces"],
        json!(2)
    );
}

#[test]
fn what_is_no_whole_recording_is_refused_with_its_line() {
    let place = TestDir::new("audit-trace-bad");
    let good = whole(&header(), &accesses(), &end(4_004));
    place.file("good", &good);
    place.file("newer", &good.replacen("\"version\":1", "\"version\":2", 1));
    place.file("cut", &good[..good.rfind("{\"end\"").unwrap()]);
    place.file("half", &good[..good.len() / 2]);
    place.file("mixed", &good.replacen("{\"end\"", "{\"Item\":{\"pk\":{\"S\":\"a\"}}}\n{\"end\"", 1));
    place.file("twice", &format!("{good}{good}"));
    place.file("none", &whole(&header(), "", &end(0)));
    place.file("items", "{\"Item\":{\"pk\":{\"S\":\"a\"}}}\n");
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(good.as_bytes()).unwrap();
    let gzip = gzip.finish().unwrap();
    std::fs::write(place.0.join("cut.gz"), &gzip[..gzip.len() / 2]).unwrap();
    for (arguments, says, skippable) in [
        ("newer", "newer:1: the trace has version 2, and this build reads version 1", false),
        ("items", "items:1: not a trace of `heatsink serve --record`", false),
        ("cut", "cut: the trace has no last line", true),
        ("half", "half:2028: cannot be read: EOF", true),
        ("mixed", "mixed:4007: cannot be read: ", true),
        ("twice", "twice:4008: a second trace begins here: a file holds one", true),
        ("cut.gz", "the gzip data is cut off or damaged here", true),
        ("none", "the trace holds no access", false),
        ("nowhere", "cannot read nowhere: No such file", false),
        ("good --key pk", "--file <FILE>", false),
    ] {
        let refused = run(&place, &format!("audit --trace {arguments}"));
        assert_eq!(refused.status.code(), Some(64), "{arguments}: {}", text(&refused.stdout));
        assert!(text(&refused.stderr).contains(says), "{arguments}: {}", text(&refused.stderr));
        let skipped = run(&place, &format!("audit --trace {arguments} --skip-bad"));
        assert_eq!(skipped.status.code(), Some(if skippable { 0 } else { 64 }), "{arguments}");
        if skippable {
            let said = text(&skipped.stdout);
            assert!(said.contains("skipped, because they could not be read"), "{arguments}: {said}");
            assert!(said.contains("HOT: "), "{arguments}: {said}");
        }
    }
    for (arguments, says) in [
        ("audit Other --trace good", "the traffic of table Other is not in it, but that of Board"),
        ("audit --file good --key pk", "this is recorded traffic: it is given with --trace"),
    ] {
        let refused = run(&place, arguments);
        assert_eq!(refused.status.code(), Some(64), "{arguments}");
        assert!(text(&refused.stderr).contains(says), "{arguments}: {}", text(&refused.stderr));
    }
}

#[test]
fn what_serve_records_is_audited() {
    let place = TestDir::new("audit-recorded");
    let server = Server::start(&place, &["serve", "--listen", "127.0.0.1:0", "--record", "trace.gz"]);
    let address = server.address();
    let table = r#"{"TableName":"Board","BillingMode":"PAY_PER_REQUEST","KeySchema":[{"AttributeName":"pk","KeyType":"HASH"},{"AttributeName":"sk","KeyType":"RANGE"}],
        "AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"S"},{"AttributeName":"sk","AttributeType":"S"}]}"#;
    post(&address, "CreateTable", table);
    for nth in 0..20 {
        let put = json!({ "TableName": "Board", "Item": { "pk": { "S": "game_x" }, "sk": { "S": nth.to_string() } } });
        post(&address, "PutItem", &put.to_string());
    }
    server.stop();
    let report = report(&place, "audit --trace trace.gz");
    let tables = report["tables"].as_array().unwrap();
    assert_eq!(tables.len(), 1, "{report:#}");
    // The first requests are not counted until the table's description is there.
    assert!((10..=20).contains(&tables[0]["items"].as_u64().unwrap()), "{report:#}");
    assert_eq!(found(&tables[0]), [("game_x", "leave")]);
}
