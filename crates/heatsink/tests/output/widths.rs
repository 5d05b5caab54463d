//! Output fits the screen that it is printed on.

use crate::command::{Server, TestDir, text};

/// Longest lines at that width, and all that was printed.
fn printed(place: &TestDir, columns: usize, arguments: &[&str]) -> String {
    let done = place.command(arguments).env("COLUMNS", columns.to_string()).output().unwrap();
    let said = text(&done.stdout);
    assert!(!said.is_empty(), "{arguments:?}: {}", text(&done.stderr));
    for line in said.lines() {
        assert!(line.chars().count() <= columns, "{arguments:?} at {columns}:\n{line}\nin\n{said}");
    }
    said
}

const RULES: &str = "[[rule]]\ntable = \"Board\"\nkeys = \"OPS_LOG_OF_A_NAME_THAT_IS_RATHER_LONG*\"\nstrategy = \"calculated\"\nshards = 4\n\
    [[rule]]\ntable = \"B*\"\nstrategy = \"calculated\"\nby = { attribute = \"sk\", separator = \"#\", part = 1 }\nshards = 16\n";
const TABLE: &str = r#"{"TableName":"Board","BillingMode":"PAY_PER_REQUEST","KeySchema":[{"AttributeName":"pk","KeyType":"HASH"},{"AttributeName":"sk","KeyType":"RANGE"}],
    "AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"S"},{"AttributeName":"sk","AttributeType":"S"}]}"#;

const TRACE: &str = r#"{"trace":{"version":1,"unix_millis":1782151200000}}
{"access":{"us":1,"table":"Board","op":"put","key":"OPS_LOG_OF_A_NAME_THAT_IS_RATHER_LONG_2026-06-22","sort":"a","units":12000000}}
{"access":{"us":2,"table":"Board","op":"query","key":"OPS_LOG_OF_A_NAME_THAT_IS_RATHER_LONG_2026-06-22","page":"a","units":12000000,"throttled":true}}
{"end":{"us":3,"recorded":2,"dropped":7,"because":"limit"}}
"#;

#[test]
fn every_command_fits_60_80_and_100_columns() {
    let place = TestDir::new("widths");
    place.data();
    place.file("heatsink.toml", RULES);
    place.file("table.json", TABLE);
    let query = r#"{"TableName":"Board","KeyConditionExpression":"pk = :p","ExpressionAttributeValues":{":p":{"S":"a-key-that-is-as-long-as-keys-are-in-life-and-a-bit-more"}},"Limit":20}"#;
    place.file("query.json", query);
    place.file("trace", TRACE);
    let server = Server::start(&place, &["serve", "--listen", "127.0.0.1:0"]);
    crate::rules::post(&server.address(), "CreateTable", TABLE);
    let partitions = ["partitions", "Board", "--server", &server.address()].map(str::to_owned);
    let partitions: Vec<&str> = partitions.iter().map(String::as_str).collect();
    for columns in [60, 80, 100] {
        for (arguments, whole) in [
            (&["shards", "--writes", "5000", "--peak", "7000", "--partitions", "60"][..], "recommended"),
            (&["shards", "--writes", "500", "--reads", "20000"], "throttle"),
            (&["audit", "Board", "--data", "data.db"], "OPS_LOG"),
            (&["audit", "--trace", "trace"], "OPS_LOG"),
            (&["simulate"], "leaderboard"),
            (&["simulate", "votes"], "partitions"),
            (&["demo"], "leaderboard"),
            (&["demo", "votes"], "one item"),
            (&["config", "check"], "spread over"),
            (&["config", "check", "--data", "data.db"], "Board"),
            (&["adopt", "Board", "--data", "data.db", "--dry-run"], "would move"),
            (&["status", "--data", "data.db"], "registry"),
            (&["leave", "--dry-run", "--data", "data.db"], "Nothing was changed"),
            (&["explain", "query.json", "--op", "Query", "--table", "table.json"], "physical"),
            (&partitions, "on-demand"),
        ] {
            let said = printed(&place, columns, arguments);
            assert!(said.contains(whole), "{arguments:?} at {columns} breaks {whole}:\n{said}");
        }
    }
}

#[test]
fn the_viral_leaderboards_report_fits_and_counts_what_got_no_answer() {
    let place = TestDir::new("viral");
    let demo = ["demo", "leaderboard", "--seconds", "1", "--games", "1", "--writes", "1500", "--reads", "10"];
    let said = printed(&place, 80, &demo);
    for row in ["puts failed", "puts unanswered", "top 100 failed or unanswered"] {
        assert!(said.contains(row), "no row {row}:\n{said}");
    }
    let story = place.run(&[&demo[..], &["--output", "json"]].concat());
    let story: serde_json::Value = serde_json::from_slice(&story.stdout).unwrap();
    for phase in ["before", "after"] {
        let count = |name: &str| story[phase][name].as_u64().unwrap();
        let sum: u64 = ["accepted", "throttled", "failed", "unanswered"].into_iter().map(count).sum();
        assert_eq!(count("offered"), sum, "{story}");
    }
    // The count is the one that `heatsink shards` recommends for these rates.
    let partitions = story["odds"]["partitions"].to_string();
    let asked =
        ["shards", "--writes", "1500", "--reads", "10", "--partitions", &partitions, "--output", "json"];
    let advice: serde_json::Value = serde_json::from_slice(&place.run(&asked).stdout).unwrap();
    assert_eq!(story["settings"]["shards"], advice["recommended"]["shards"]);
    assert_eq!(story["odds"]["fill"], advice["recommended"]["risk"]);
}
