//! An election: a running total for each candidate, and a ballot for each voter, which an index
//! lists by election.
//!
//! Two hot keys: the one item that every vote is added to, and the one key of the index. The second
//! is easily missed: each ballot has a key of its own, but its writes are refused nevertheless.

use std::time::Duration;

use heatsink_dynamo::Operation;
use serde_json::{Value as Json, json};

use crate::stage::{Fault, Stage};
use crate::story::Story;

const TABLE: &str = "ElectionData";
const CANDIDATE: &str = "CANDIDATE#A";
const ELECTION: &str = "ELECTION#2024";
const RATE: u32 = 4_000;
const SECONDS: u32 = 2;
/// Keys of the application's own counter.
const SHARDS: u32 = 10;

/// The index's key, spread.
const RULES: &str = include_str!("../../../examples/votes/index.toml");

/// The one item, a counter with ten fragments.
const COUNTER: &str = include_str!("../../../examples/votes/heatsink.toml");

/// The one item stays one: its writes go together.
const COMBINE: &str = include_str!("../../../examples/votes/combine.toml");
const TOGETHER_RATE: u32 = 5_000;
/// What DynamoDB takes for a write.
const TAKES: Duration = Duration::from_millis(5);
/// The item's writes a second that may reach the store: one at a time, and a few at the end.
const MOST_SENT: u64 = 210;

/// Names of the phases.
pub const ITEM: &str = "votes: one item, no rule";
/// The same calls, with a rule.
pub const ITEM_COUNTED: &str = "votes: a counter over 10 shards";
/// The same calls, more of them, on the one item, whose rule combines them.
pub const ITEM_COMBINED: &str = "votes: one item, 5,000/s, combined";
/// The account's random suffixes, through Heatsink unchanged.
pub const ITEM_BY_HAND: &str = "votes: the account's ten items";
/// Ballots, with the constant key in the index.
pub const INDEX: &str = "ballots: one key in the index, no rule";
/// Ballots, with a rule for the index.
pub const INDEX_SHARDED: &str = "ballots: 12 shards of the index's key";

/// A vote, as the application sends it.
fn vote(candidate: &str) -> (Operation, Json) {
    let update = json!({
        "TableName": TABLE,
        "Key": {"PK": {"S": candidate}, "SK": {"S": "METADATA"}},
        "UpdateExpression": "ADD votes :one",
        "ExpressionAttributeValues": {":one": {"N": "1"}},
    });
    (Operation::UpdateItem, update)
}

async fn votes(stage: &Stage, candidate: &str) -> Result<u64, Fault> {
    let get = json!({"TableName": TABLE, "Key": {"PK": {"S": candidate}, "SK": {"S": "METADATA"}}});
    let answer = stage.call(Operation::GetItem, &get).await?;
    let votes = answer["Item"]["votes"]["N"].as_str().unwrap_or("0");
    votes.parse().map_err(|_| Fault(format!("{candidate} has {votes} votes")))
}

fn cast(nth: u32) -> String {
    format!("2024-11-05T09:{:02}:{:02}.{:03}Z#{nth}", nth / 60_000, nth / 1_000 % 60, nth % 1_000)
}

fn ballot(nth: u32) -> (Operation, Json) {
    let item = json!({
        "PK": {"S": format!("VOTER#{nth}")},
        "SK": {"S": "BALLOT"},
        "GSI1PK": {"S": ELECTION},
        "GSI1SK": {"S": cast(nth)},
    });
    (Operation::PutItem, json!({"TableName": TABLE, "Item": item}))
}

/// Runs the system.
///
/// # Errors
/// When a request is refused for another reason than throughput.
pub async fn run() -> Result<Story, Fault> {
    let mut story = Story::default();
    for (name, rules) in [(ITEM, ""), (ITEM_COUNTED, COUNTER)] {
        let stage = started(rules).await?;
        let load = stage.offer(RATE, SECONDS, |_| vote(CANDIDATE)).await?;
        story.load(name, &load);
        stage.rest();
        let total = votes(&stage, CANDIDATE).await?;
        story.check(&format!("{name}: the total"), &total, &(load.accepted.len() as u64));
    }

    let stage = started(COMBINE).await?;
    let (load, sent) = stage.offer_late(TOGETHER_RATE, SECONDS, TAKES, |_| vote(CANDIDATE)).await?;
    story.load(ITEM_COMBINED, &load);
    stage.rest();
    let total = votes(&stage, CANDIDATE).await?;
    story.check(&format!("{ITEM_COMBINED}: the total"), &total, &(load.accepted.len() as u64));
    let a_second = sent / u64::from(SECONDS);
    story.at_most(&format!("{ITEM_COMBINED}: physical writes a second"), a_second, MOST_SENT);

    let stage = started("").await?;
    let own = |shard: u32| format!("{CANDIDATE}#{shard}");
    // As good as random: no two neighbours alike.
    let load = stage.offer(RATE, SECONDS, |nth| vote(&own(nth.wrapping_mul(7) % SHARDS))).await?;
    story.load(ITEM_BY_HAND, &load);
    let mut total = 0;
    for shard in 0..SHARDS {
        total += votes(&stage, &own(shard)).await?;
    }
    story.check(&format!("{ITEM_BY_HAND}: the total"), &total, &(load.accepted.len() as u64));

    for (name, rules) in [(INDEX, ""), (INDEX_SHARDED, RULES)] {
        let stage = started(rules).await?;
        let load = stage.offer(RATE, SECONDS, ballot).await?;
        story.load(name, &load);
        stage.rest();
        let list = json!({
            "TableName": TABLE,
            "IndexName": "GSI1",
            "KeyConditionExpression": "GSI1PK = :election",
            "ExpressionAttributeValues": {":election": {"S": ELECTION}},
            "Limit": 1_000,
        });
        let expected: Vec<String> = load.accepted.iter().map(|nth| cast(*nth)).collect();
        let (found, _) = stage.pages(list, "GSI1SK").await?;
        story.rows(&format!("{name}: all ballots of the election, in order"), &found, &expected);
    }
    Ok(story)
}

async fn started(rules: &str) -> Result<Stage, Fault> {
    let stage = Stage::start(rules).await?;
    stage.create(TABLE, ["PK", "SK"], &[("GSI1", ["GSI1PK", "GSI1SK"])]).await?;
    Ok(stage)
}
