//! `heatsink audit --file`: every form of file, told by what is in it; what is cut off or mixed;
//! and keys that would act on a terminal.

use std::io::Write;
use std::path::PathBuf;
use std::process::Stdio;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value as Json, json};

use crate::command::{TestDir, report, run, text};

fn item(key: &str, nth: u32) -> Json {
    let sort = format!("2026-06-22T01:00:{:02}.{:03}Z#{nth}", nth / 900, nth % 900);
    json!({ "pk": { "S": key }, "sk": { "S": sort }, "text": { "S": "x".repeat(100) } })
}

/// 900 items in one second under `HOT`, and two under `COLD`.
fn items() -> Vec<Json> {
    (0..900).map(|nth| item("HOT", nth)).chain((0..2).map(|nth| item("COLD", nth * 900))).collect()
}

fn lines(values: impl IntoIterator<Item = Json>) -> String {
    values.into_iter().map(|value| format!("{value}\n")).collect()
}

fn export() -> String {
    lines(items().into_iter().map(|item| json!({ "Item": item })))
}

fn record(item: &Json) -> Json {
    let keys = json!({ "pk": item["pk"], "sk": item["sk"] });
    let body = json!({ "ApproximateCreationDateTime": 1_782_151_200, "Keys": keys, "NewImage": item });
    json!({ "eventName": "INSERT", "eventSourceARN": "arn:aws:dynamodb:us-east-1:1:table/Log/stream/1", "dynamodb": body })
}

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

fn bytes(place: &TestDir, name: &str, content: &[u8]) -> PathBuf {
    let path = place.0.join(name);
    std::fs::write(&path, content).unwrap();
    path
}

/// What it says when it is refused, with 64.
fn refused(place: &TestDir, arguments: &str) -> String {
    let done = run(place, arguments);
    assert_eq!(done.status.code(), Some(64), "{arguments}: {}", text(&done.stdout));
    text(&done.stderr)
}

/// Items, and each pattern with its action.
fn found(report: &Json) -> (u64, Vec<(String, String)>) {
    let of = |one: &Json| {
        let text = |value: &Json| value.as_str().unwrap().to_owned();
        (text(&one["pattern"]), text(&one["verdict"]["action"]))
    };
    (report["items"].as_u64().unwrap(), report["patterns"].as_array().unwrap().iter().map(of).collect())
}

fn hot_and_cold() -> (u64, Vec<(String, String)>) {
    let pair = |pattern: &str, action: &str| (pattern.to_owned(), action.to_owned());
    (902, vec![pair("HOT", "shard"), pair("COLD", "leave")])
}

#[test]
fn every_form_is_told_by_what_is_in_it() {
    let place = TestDir::new("forms");
    let page = json!({ "Items": items(), "Count": 902, "ScannedCount": 902, "ConsumedCapacity": null });
    let records: Vec<Json> = items().iter().map(record).collect();
    // Names that say nothing, or the wrong thing.
    for (name, content, kind) in [
        ("a.csv", export().into_bytes(), "items of an export to S3"),
        ("b.txt", gzip(&export()), "items of an export to S3"),
        ("two-members.gz", [gzip(&export()), gzip("")].concat(), "items of an export to S3"),
        ("c.gz", lines(items()).into_bytes(), "items in DynamoDB JSON"),
        ("d", page.to_string().into_bytes(), "items in DynamoDB JSON"),
        ("e", serde_json::to_vec_pretty(&page).unwrap(), "items in DynamoDB JSON"),
        ("f", gzip(&serde_json::to_string_pretty(&items()).unwrap()), "items in DynamoDB JSON"),
        (
            "g",
            format!("\u{feff}{}", lines(items()).replace('\n', "\r\n\r\n")).into_bytes(),
            "items in DynamoDB JSON",
        ),
        ("h", lines(records.clone()).into_bytes(), "stream records"),
        ("i", serde_json::to_vec_pretty(&json!({ "Records": records })).unwrap(), "stream records"),
        (
            "j",
            lines(records.chunks(100).map(|some| json!({ "Records": some }))).into_bytes(),
            "stream records",
        ),
    ] {
        bytes(&place, name, &content);
        let report = report(&place, &format!("audit --file {name} --key pk,sk"));
        assert_eq!(
            (report["source"]["kind"].as_str(), found(&report)),
            (Some(kind), hot_and_cold()),
            "{name}"
        );
        assert_eq!((&report["whole"], &report["source"]["skipped"]), (&json!(true), &json!(0)), "{name}");
        assert_eq!(report["measured"], json!(kind == "stream records"), "{name}");
        let named = if kind == "stream records" { "Log" } else { "TABLE" };
        assert_eq!(report["table"], named, "{name}");
    }
    // Several files, standard input, and the names of the key from a description.
    let report = report(&place, "audit Named --file a.csv b.txt --key pk,sk");
    assert_eq!((report["items"].as_u64(), &report["table"]), (Some(1_804), &json!("Named")));
    place.file("table.json", &json!({ "Table": {
        "TableName": "Described", "TableStatus": "ACTIVE", "CreationDateTime": "2026-01-01T00:00:00.000000+00:00", "TableId": "1",
        "KeySchema": [{ "AttributeName": "pk", "KeyType": "HASH" }, { "AttributeName": "sk", "KeyType": "RANGE" }],
        "AttributeDefinitions": [{ "AttributeName": "pk", "AttributeType": "S" }, { "AttributeName": "sk", "AttributeType": "S" }],
    } }).to_string());
    let mut child = place
        .command(&["audit", "--file", "-", "--schema", "table.json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(&gzip(&export())).unwrap();
    let said = text(&child.wait_with_output().unwrap().stdout);
    assert!(
        said.starts_with("table Described: 902 items read from 1 file (items of an export to S3)\n"),
        "{said}"
    );
    assert!(
        said.contains("HOT: shard, because its one key took 900.0 write units in its busiest second"),
        "{said}"
    );
}

#[test]
fn an_export_is_held_to_its_manifest() {
    let place = TestDir::new("export");
    let data = place.0.join("copy/AWSDynamoDB/01/data");
    std::fs::create_dir_all(&data).unwrap();
    let parts: Vec<Vec<u8>> = [&items()[..500], &items()[500..]]
        .iter()
        .map(|part| gzip(&lines(part.iter().map(|item| json!({ "Item": item })))))
        .collect();
    let manifest = |changed: Option<(&str, Json)>| {
        let mut listed = String::new();
        for (nth, part) in parts.iter().enumerate() {
            std::fs::write(data.join(format!("{nth}.json.gz")), part).unwrap();
            let md5 = STANDARD.encode(md5::compute(part).0);
            let mut line = json!({ "itemCount": if nth == 0 { 500 } else { 402 }, "md5Checksum": md5, "etag": "x", "dataFileS3Key": format!("AWSDynamoDB/01/data/{nth}.json.gz") });
            if let (1, Some((member, value))) = (nth, &changed) {
                line[*member] = value.clone();
            }
            listed += &format!("{line}\n");
        }
        std::fs::write(data.join("../manifest-files.json"), listed).unwrap();
    };
    let summary = json!({ "tableArn": "arn:aws:dynamodb:us-east-1:1:table/Exported", "outputFormat": "DYNAMODB_JSON", "exportType": "FULL_EXPORT", "itemCount": 902 });
    std::fs::write(data.join("../manifest-summary.json"), summary.to_string()).unwrap();
    manifest(None);
    for folder in ["copy", "copy/AWSDynamoDB/01"] {
        let report = report(&place, &format!("audit --file {folder} --key pk,sk"));
        assert_eq!((found(&report), &report["table"]), (hot_and_cold(), &json!("Exported")));
    }
    for (changed, says) in [
        (("itemCount", json!(403)), "1.json.gz: it has 402 items, and the manifest says 403"),
        (
            ("md5Checksum", json!("sQMSpEILNgoQmarvDFonGQ==")),
            "1.json.gz: its MD5 is not the one in the manifest",
        ),
        (
            ("dataFileS3Key", json!("AWSDynamoDB/01/data/../gone.json.gz")),
            "gone.json.gz: the manifest lists this file, and it is not there",
        ),
        (("itemCount", json!("x")), "manifest-files.json:2: this is no line of the manifest"),
    ] {
        manifest(Some(changed));
        let said = refused(&place, "audit --file copy --key pk,sk");
        assert!(said.contains(says), "{said}");
    }
    manifest(Some(("itemCount", json!(403))));
    let report = report(&place, "audit --file copy --key pk,sk --skip-bad");
    assert_eq!((report["items"].as_u64(), report["source"]["skipped"].as_u64()), (Some(902), Some(1)));
    let ion = summary.to_string().replace("DYNAMODB_JSON", "ION");
    std::fs::write(data.join("../manifest-summary.json"), ion).unwrap();
    assert!(refused(&place, "audit --file copy --key pk,sk").contains("Amazon Ion"));
    std::fs::create_dir(place.0.join("empty")).unwrap();
    assert!(
        refused(&place, "audit --file empty --key pk,sk").contains("there is no manifest-files.json in it")
    );
}

#[test]
fn what_cannot_be_read_is_named_with_its_line_or_counted() {
    let place = TestDir::new("bad-files");
    let whole = export();
    let half = &whole[..whole.len() - 40];
    let mixed = format!("{whole}{}\n{whole}", record(&item("HOT", 1)));
    let cut = gzip(&whole);
    let page = serde_json::to_string_pretty(&json!({ "Items": items() })).unwrap();
    let page_lines = page.lines().count();
    for (name, content, says, items, skipped) in [
        ("half", half.as_bytes(), "half:902: this is not one whole JSON value".to_owned(), 901, 1),
        (
            "mixed",
            mixed.as_bytes(),
            "mixed:903: stream records among items of an export to S3".to_owned(),
            1_804,
            1,
        ),
        (
            "wrong",
            b"{\"Item\":{\"a\":{\"S\":\"b\"}}}\n\n{\"Item\":{}}\nx\n",
            "wrong:1: the item has no key attribute pk".to_owned(),
            0,
            3,
        ),
        ("cut.gz", &cut[..cut.len() / 2], "the gzip data is cut off or damaged here".to_owned(), 1, 1),
        (
            "crc.gz",
            &[&cut[..cut.len() - 8], &[0; 8]].concat(),
            "crc.gz:903: the gzip data is cut off or damaged here".to_owned(),
            902,
            1,
        ),
        (
            "cut.json",
            &page.as_bytes()[..page.len() - 10],
            format!("cut.json:{}: the file ends in the middle", page_lines - 12),
            901,
            1,
        ),
        ("utf16", b"\xFF\xFE{\0", "utf16: this is UTF-16".to_owned(), 0, 0),
    ] {
        bytes(&place, name, content);
        let said = refused(&place, &format!("audit --file {name} --key pk,sk"));
        assert!(said.contains(&says), "{name}: {said}");
        if items == 0 {
            assert!(
                refused(&place, &format!("audit --file {name} --key pk,sk --skip-bad")).contains(&says),
                "{name}"
            );
            continue;
        }
        assert!(said.contains("--skip-bad"), "{name}: {said}");
        let report = report(&place, &format!("audit --file {name} --key pk,sk --skip-bad"));
        assert!(report["items"].as_u64() >= Some(items), "{name}: {report}");
        assert_eq!(report["source"]["skipped"], skipped, "{name}");
        assert!(report["source"]["faults"][0].as_str().unwrap().contains(&says), "{name}: {report}");
        let said = text(&run(&place, &format!("audit --file {name} --key pk,sk --skip-bad")).stdout);
        assert!(
            said.contains("1 line or file was skipped, because they could not be read:\n    "),
            "{name}: {said}"
        );
    }
    bytes(&place, "good", whole.as_bytes());
    // After a file that is cut off the next one is read.
    let report = report(&place, "audit --file cut.json good --key pk,sk --skip-bad");
    assert_eq!(report["items"].as_u64(), Some(1_803));
    for (arguments, says) in [
        (
            "audit --file good",
            "good:1: the names of the table's key are not known. Give --key PK[,SK], or --schema FILE",
        ),
        ("audit --file good", "Attributes there: pk, sk, text"),
        ("audit --file good --key a,b,c", "expected PK or PK,SK"),
        ("audit --file good --key ,sk", "expected PK or PK,SK"),
        ("audit --file good --schema good", "this is no description of a table"),
        ("audit --file nowhere --key pk", "cannot read nowhere: No such file or directory"),
        ("audit --file good --data good", "cannot be used with"),
        ("audit Board", "required"),
        ("audit Board --key pk --data good", "cannot be used with"),
    ] {
        let said = refused(&place, arguments);
        assert!(said.contains(says), "{arguments}: {said}");
    }
}

#[test]
fn a_sample_says_what_it_may_have_missed() {
    let place = TestDir::new("sample");
    bytes(&place, "plain", export().as_bytes());
    bytes(&place, "gzip", &gzip(&export()));
    for name in ["plain", "gzip"] {
        let report = report(&place, &format!("audit --file {name} --key pk,sk --items 451"));
        assert_eq!((report["items"].as_u64(), &report["whole"]), (Some(451), &json!(false)));
        let unseen = report["may_be_unseen"].as_f64().unwrap();
        assert!((0.45..0.55).contains(&unseen), "{name}: {unseen}");
        let said = text(&run(&place, &format!("audit --file {name} --key pk,sk --items 451")).stdout);
        assert!(
            said.contains("a pattern with up to 5") && said.contains("% of the items may not be in it"),
            "{said}"
        );
        // As many as there are is all of it.
        let all = self::report(&place, &format!("audit --file {name} --key pk,sk --items 902"));
        assert_eq!((found(&all), &all["whole"]), (hot_and_cold(), &json!(true)));
    }
}

#[test]
fn hostile_keys_are_inert_on_a_terminal() {
    let place = TestDir::new("hostile");
    let hostile = [
        "<script>alert(1)</script>",
        "\u{1b}[2J\u{1b}]0;x\u{7}",
        "a\nb: shard\r",
        "\u{202e}gpj.exe\u{2066}",
        "\u{9b}31m\u{7f}",
    ];
    let long = "k".repeat(2_048);
    let mut all = Vec::new();
    for key in hostile.iter().copied().chain([long.as_str()]) {
        all.extend((0..800).map(|nth| json!({ "Item": item(key, nth) })));
    }
    place.file("hostile", &lines(all));
    // So does an error that quotes what a file holds.
    place.file("names", "{\"\\u001b[31m\":{\"S\":\"a\"},\"\\u202e\":{\"S\":\"b\"}}\n");
    let done = run(&place, "audit --file hostile --key pk,sk");
    let refused = run(&place, "audit --file names");
    for said in [text(&done.stdout), text(&refused.stderr)] {
        assert!(!said.is_empty());
        let turns = |c: char| matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}');
        let acts = |c: &char| (c.is_control() && *c != '\n') || turns(*c);
        assert_eq!(said.chars().find(acts), None, "{said}");
        // But for the rule, which names the whole key.
        for line in said.lines().filter(|line| !line.starts_with("    keys ")) {
            assert!(line.chars().count() < 1_000, "{line}");
        }
    }
    let said = text(&done.stdout);
    for shown in [
        "<script>",
        "\\u{1b}[{n}J",
        "a\\nb: shard\\r: shard, because",
        "\\u{202e}gpj.exe",
        "\\u{9b}{n}m\\u{7f}",
        "kkk…",
    ] {
        assert!(said.contains(shown), "{shown} in {said}");
    }
    // The rules can be pasted all the same.
    let report = report(&place, "audit --file hostile --key pk,sk");
    let rules =
        report["patterns"].as_array().unwrap().iter().filter_map(|one| one["verdict"]["rule"].as_str());
    let rules: String = rules.collect();
    place.file("heatsink.toml", &rules);
    let checked = run(&place, "config check");
    assert_eq!(checked.status.code(), Some(0), "{}\n{rules}", text(&checked.stderr));
    let said = text(&checked.stdout);
    assert_eq!(said.chars().find(|c| c.is_control() && *c != '\n'), None, "{said}");
}
