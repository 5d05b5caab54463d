//! An operations log: every call of an AI agent is a line under the one key `OPS_LOG`, newest first
//! on a dashboard; alerts per brand in the same table, and a list of all brands.
//!
//! Shown: a bucket of days alone does not lift the rate of today; with shards in each bucket it
//! does; the last 50 lines come back over as many days as they take; the account's index over all
//! days throttles the table as the key did; the list of brands stays whole and pays nothing.

use heatsink_dynamo::Operation;
use heatsink_dynamo::value::read_item;
use heatsink_heat::audit::Audit;
use serde_json::{Value as Json, json};

use crate::stage::{Fault, Load, Stage, strings};
use crate::story::Story;

const TABLE: &str = "AntiCounterfeit";
/// Lines per second today.
const RATE: u32 = 3_000;
const SECONDS: u32 = 2;
/// Quiet days before today, in June 2026, and lines on each.
const DAYS: std::ops::RangeInclusive<u32> = 16..=22;
const LINES: u32 = 12;

/// Buckets of days alone: what the account did.
const BUCKETS: &str = include_str!("../../../examples/ops-log/buckets.toml");

/// Days with eight shards each, alerts by month, and nothing for the list of brands.
const BUCKETS_AND_SHARDS: &str = include_str!("../../../examples/ops-log/heatsink.toml");

/// Names of the phases.
pub const BEFORE: &str = "one key, no rule";
/// As the account has it.
pub const DAY: &str = "buckets of days";
/// As it works.
pub const DAY_AND_SHARDS: &str = "buckets of days, 8 shards in each";
/// As it works, but for the account's index.
pub const INDEX: &str = "the same, with the account's index over all days";
/// As it works, the index too.
pub const INDEX_SHARDED: &str = "the same, with 8 shards of the index's key";

/// The rule for the account's index.
const INDEX_SHARDS: &str = include_str!("../../../examples/ops-log/index.toml");

/// The log application, as its code would be with any store.
struct Log<'a> {
    stage: &'a Stage,
}

/// The sort key of a line: when, and who.
fn line_key(day: u32, nth: u32) -> String {
    let (second, milli) = (nth / 1_000, nth % 1_000);
    format!("2026-06-{day:02}T01:{:02}:{:02}.{milli:03}Z#agent-{:02}", second / 60, second % 60, nth % 7)
}

fn line(day: u32, nth: u32, indexed: bool) -> (Operation, Json) {
    let mut item = json!({
        "PK": {"S": "OPS_LOG"},
        "SK": {"S": line_key(day, nth)},
        "latencyMs": {"N": (nth % 900).to_string()},
        "aiSeverity": {"S": "HIGH"},
    });
    if indexed {
        item["GSI1PK"] = json!({"S": "OPS_LOG"});
        item["GSI1SK"] = json!({"S": line_key(day, nth)});
    }
    (Operation::PutItem, json!({"TableName": TABLE, "Item": item}))
}

impl Log<'_> {
    async fn history(&self) -> Result<(), Fault> {
        for day in DAYS {
            for nth in 0..LINES {
                let (operation, body) = line(day, nth, false);
                self.stage.call(operation, &body).await?;
            }
        }
        Ok(())
    }

    /// The last lines, newest first, and what they took.
    async fn last(&self, count: usize) -> Result<(Vec<String>, u64), Fault> {
        let query = json!({
            "TableName": TABLE,
            "KeyConditionExpression": "PK = :log",
            "ExpressionAttributeValues": {":log": {"S": "OPS_LOG"}},
            "ScanIndexForward": false,
            "Limit": count,
        });
        let (answer, calls) = self.stage.counted(Operation::Query, &query).await?;
        Ok((strings(&answer, "SK"), calls))
    }

    async fn today(&self, indexed: bool) -> Result<Load, Fault> {
        self.stage.offer(RATE, SECONDS, |nth| line(23, nth, indexed)).await
    }
}

/// Runs the system: the account's key, its buckets, the buckets that work, and its index.
///
/// # Errors
/// When a request is refused for another reason than throughput.
pub async fn run() -> Result<Story, Fault> {
    let mut story = Story::default();
    for (name, rules) in [(BEFORE, ""), (DAY, BUCKETS), (DAY_AND_SHARDS, BUCKETS_AND_SHARDS)] {
        let stage = Stage::start(rules).await?;
        stage.create(TABLE, ["PK", "SK"], &[]).await?;
        let log = Log { stage: &stage };
        log.history().await?;
        let over_days: Vec<String> =
            DAYS.rev().flat_map(|day| (0..LINES).rev().map(move |nth| line_key(day, nth))).take(50).collect();
        let (found, calls) = log.last(50).await?;
        story.rows(&format!("{name}: the last 50 lines, over 5 days"), &found, &over_days);
        let load = log.today(false).await?;
        stage.rest();
        let newest: Vec<String> = load.accepted.iter().rev().take(50).map(|nth| line_key(23, *nth)).collect();
        let (found, calls_today) = log.last(50).await?;
        story.rows(&format!("{name}: the last 50 lines, all of today"), &found, &newest);
        story.load(name, &load);
        if name == DAY_AND_SHARDS {
            // The directory, the plain key and the newest day's eight; then the days before it, two
            // and four at a time, and none after.
            story.check("physical requests: 50 lines over 5 days", &calls, &(10 + 2 * 8 + 4 * 8));
            // Some shards hold more than their share of the 50 and are asked again.
            story.at_most("physical requests: 50 lines of today", calls_today, 10 + 8);
            alerts(&stage, &mut story).await?;
            brands(&stage, &mut story).await?;
            audit(&stage, &mut story).await?;
        }
    }
    for (name, more) in [(INDEX, ""), (INDEX_SHARDED, INDEX_SHARDS)] {
        let stage = Stage::start(&format!("{BUCKETS_AND_SHARDS}{more}")).await?;
        stage.create(TABLE, ["PK", "SK"], &[("GSI1", ["GSI1PK", "GSI1SK"])]).await?;
        story.load(name, &Log { stage: &stage }.today(true).await?);
    }
    Ok(story)
}

/// The keys of the table that matter, by its items: the account's audit, with rates and
/// cardinalities.
async fn audit(stage: &Stage, story: &mut Story) -> Result<(), Fault> {
    let mut audit = Audit::default();
    let mut scan = json!({"TableName": TABLE});
    loop {
        let mut answer = stage.call(Operation::Scan, &scan).await?;
        for item in answer["Items"].as_array().into_iter().flatten() {
            audit.add_item(&read_item(item.to_string().as_bytes())?, "PK", Some("SK"));
        }
        match answer["LastEvaluatedKey"].take() {
            Json::Null => break,
            last => scan["ExclusiveStartKey"] = last,
        }
    }
    let report = audit.report(TABLE);
    let said: Vec<(String, u64, &str)> = report
        .patterns
        .iter()
        .map(|one| (one.pattern.clone(), one.keys, one.verdict.action.words()))
        .collect();
    let expected =
        [("OPS_LOG", 1, "shard"), ("THREAT#abc", 1, "do not shard"), ("BRAND_INDEX", 1, "do not shard")];
    let expected = expected.map(|(pattern, keys, words)| (pattern.to_owned(), keys, words)).to_vec();
    story.check("audit: cardinality 1 three times, and one that matters", &said, &expected);
    let rate = report.patterns.first().and_then(|log| log.busiest.as_ref()?.peak_units);
    story.check(
        "audit: write units of the log's busiest second, by the times of its lines",
        &rate,
        &Some(1_000.0),
    );
    Ok(())
}

/// Alerts of one brand: buckets of months, read over three of them, oldest first and newest first.
async fn alerts(stage: &Stage, story: &mut Story) -> Result<(), Fault> {
    let key = |month: u32, nth: u32| format!("ALERT#2026-{month:02}-{:02}T01:00:00Z#geographic", nth + 1);
    for month in 3..=6 {
        for nth in 0..20 {
            let item =
                json!({"PK": {"S": "THREAT#abc"}, "SK": {"S": key(month, nth)}, "severity": {"S": "HIGH"}});
            stage.call(Operation::PutItem, &json!({"TableName": TABLE, "Item": item})).await?;
        }
    }
    let query = json!({
        "TableName": TABLE,
        "KeyConditionExpression": "PK = :brand AND SK BETWEEN :from AND :to",
        "ExpressionAttributeValues": {
            ":brand": {"S": "THREAT#abc"},
            ":from": {"S": "ALERT#2026-04"},
            ":to": {"S": "ALERT#2026-07"},
        },
    });
    let found = strings(&stage.call(Operation::Query, &query).await?, "SK");
    let expected: Vec<String> = (4..=6).flat_map(|month| (0..20).map(move |nth| key(month, nth))).collect();
    story.rows("a brand's alerts of three months, in order", &found, &expected);
    Ok(())
}

/// The list of brands: a few hundred of writes a day under one key. It is not sharded and costs
/// nothing more.
async fn brands(stage: &Stage, story: &mut Story) -> Result<(), Fault> {
    let key = |nth: u32| format!("BRAND#2026-06-22T01:00:{nth:02}Z#{nth}");
    let mut writes = 0;
    for nth in 0..30 {
        let item = json!({"PK": {"S": "BRAND_INDEX"}, "SK": {"S": key(nth)}});
        let put = json!({"TableName": TABLE, "Item": item});
        writes += stage.counted(Operation::PutItem, &put).await?.1;
    }
    story.check("physical requests: 30 brands registered", &writes, &30);
    let query = json!({
        "TableName": TABLE,
        "KeyConditionExpression": "PK = :all",
        "ExpressionAttributeValues": {":all": {"S": "BRAND_INDEX"}},
    });
    let (answer, reads) = stage.counted(Operation::Query, &query).await?;
    story.rows("all brands, in order", &strings(&answer, "SK"), &(0..30).map(key).collect::<Vec<_>>());
    story.check("physical requests: all brands listed", &reads, &1);
    Ok(())
}
