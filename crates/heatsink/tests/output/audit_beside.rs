//! `heatsink audit --file RECORDS --trace TRACE`: the writes that no recorded request explains are
//! counted and named.

use serde_json::{Value as Json, json};

use crate::command::{TestDir, report, text};

/// 2026-06-22T18:00:00Z, in seconds.
const BEGIN: u64 = 1_782_151_200;

/// A recording of 100 seconds in which 90 votes were given: one a second from the fifth on.
fn recording(header: &Json) -> String {
    let mut lines = format!("{}\n", json!({ "trace": header }));
    lines += &format!("{}\n", json!({ "table": { "name": "Votes", "sort_key": true } }));
    for nth in 5..95_u64 {
        let us = nth * 1_000_000;
        let access = json!({ "us": us, "table": "Votes", "op": "put", "key": "C#A", "sort": format!("v{nth}"), "units": 1_000 });
        lines += &format!("{}\n", json!({ "access": access }));
    }
    lines
        + &format!(
            "{}\n",
            json!({ "end": { "us": 100_000_000, "recorded": 90, "dropped": 0, "because": "stopped" } })
        )
}

fn header() -> Json {
    json!({ "version": 1, "unix_millis": BEGIN * 1_000 })
}

fn record(second: u64, key: &str, sort: &str, service: bool) -> Json {
    let keys = json!({ "pk": { "S": key }, "sk": { "S": sort } });
    let body = json!({ "ApproximateCreationDateTime": BEGIN + second, "Keys": keys, "NewImage": keys });
    let mut record = json!({ "eventName": "INSERT", "eventSourceARN": "arn:aws:dynamodb:us-east-1:1:table/Votes/stream/1", "dynamodb": body });
    if service {
        record["userIdentity"] = json!({ "type": "Service", "principalId": "dynamodb.amazonaws.com" });
    }
    record
}

/// Those votes, spread over four shards; in the middle ten more that nobody recorded, and five
/// items whose time to live was over.
fn records() -> String {
    let mut all = Vec::new();
    for nth in 5..95 {
        let shard = if nth % 4 == 0 { "C#A".to_owned() } else { format!("C#A#~{}", nth % 4) };
        all.push(record(nth, &shard, &format!("v{nth}"), false));
    }
    all.extend((0..10).map(|nth| record(50, "C#B", &format!("x{nth}"), false)));
    all.extend((0..5).map(|nth| record(50, "C#B", &format!("old{nth}"), true)));
    all.into_iter().map(|record| format!("{record}\n")).collect()
}

fn past(place: &TestDir, arguments: &str) -> Json {
    report(place, &format!("audit {arguments}"))["past_gateways"].clone()
}

#[test]
fn writes_past_the_gateways_are_counted_and_named() {
    let place = TestDir::new("beside");
    place.file("records", &records());
    place.file("trace", &recording(&header()));
    let found = past(&place, "--file records --trace trace --key pk");
    // The first five and the last five seconds are not judged.
    assert_eq!(
        (&found["writes"], &found["outside"], &found["unexplained"]),
        (&json!(91), &json!(9), &json!(10))
    );
    assert_eq!(found["keys"], json!([{ "key": "C#B", "writes": 10, "unexplained": 10 }]), "{found:#}");
    assert_eq!(found["at_least"], json!(false));
    let done = place.run(&["audit", "--file", "records", "--trace", "trace", "--key", "pk"]);
    let said = text(&done.stdout);
    for line in [
        "11 % of the writes of table Votes (10 of 91) did not come through the gateways that recorded",
        "\n  C#B: 10 of 10 writes\n",
        "`heatsink verify Votes` finds such items",
        "3 keys end like those of shards (`#~3`)",
        "Records of other times than the recordings, which are left out: 9.",
        "A gateway whose recording is not given counts as past the gateways",
    ] {
        assert!(said.contains(line), "{line}\nin\n{said}");
    }

    // What another gateway recorded explains them; of hashed keys only the number can be compared.
    let other =
        recording(&header()).replace("\"C#A\"", "\"C#B\"").replace("\"us\":50000000,", "\"us\":51000000,");
    let other: String =
        (0..10).fold(other, |text, nth| text.replacen(&format!("\"v4{nth}\""), &format!("\"x{nth}\""), 1));
    place.file("other", &other);
    let found = past(&place, "--file records --trace trace other --key pk");
    assert_eq!((&found["unexplained"], &found["keys"]), (&json!(0), &json!([])), "{found:#}");
    place.file("hashed", &recording(&json!({ "version": 1, "unix_millis": BEGIN * 1_000, "hashed": true })));
    let found = past(&place, "--file records --trace hashed --key pk");
    assert_eq!(
        (&found["unexplained"], &found["at_least"], &found["keys"]),
        (&json!(1), &json!(true), &json!([]))
    );
}

#[test]
fn what_cannot_be_held_against_a_recording_is_refused() {
    let place = TestDir::new("beside-refused");
    place.file("trace", &recording(&header()));
    place.file("records", &records());
    place.file("items", "{\"Item\":{\"pk\":{\"S\":\"a\"}}}\n");
    place.file("unnamed", &records().replace("\"eventSourceARN\"", "\"eventSource\""));
    place.file("several", &recording(&header()).replacen("\"table\":\"Votes\"", "\"table\":\"Other\"", 1));
    place.file("late", &recording(&json!({ "version": 1, "unix_millis": (BEGIN + 9_000) * 1_000 })));
    for (arguments, says) in [
        (
            "--file items --trace trace --key pk",
            "only stream records say when an item was written, and the file holds items of an export to S3",
        ),
        ("--file unnamed --trace several --key pk", "the records do not say of which table they are"),
        ("--file records --trace records --key pk", "records:1: not a trace of `heatsink serve --record`"),
        ("--file records --trace trace --data x --key pk", "cannot be used with"),
    ] {
        let done = place.run(&format!("audit {arguments}").split(' ').collect::<Vec<_>>());
        assert_eq!(done.status.code(), Some(64), "{arguments}: {}", text(&done.stdout));
        assert!(text(&done.stderr).contains(says), "{arguments}: {}", text(&done.stderr));
    }
    // The only table of a recording is that of records that do not name theirs.
    assert_eq!(past(&place, "--file unnamed --trace trace --key pk")["unexplained"], json!(10));
    // A name that is in no recording is said.
    let done = place.run(&["audit", "votes", "--file", "records", "--trace", "trace", "--key", "pk"]);
    let said = text(&done.stdout);
    assert!(
        said.contains("No write of table votes is recorded. The tables with recorded writes: Votes."),
        "{said}"
    );
    let done = place.run(&["audit", "--file", "records", "--trace", "late", "--key", "pk"]);
    assert!(
        text(&done.stdout).contains("nothing can be said of writes of table Votes"),
        "{}",
        text(&done.stdout)
    );
}
