//! A chat: messages of a conversation in order of time, one conversation far busier than all
//! others.
//!
//! The message id is a part of the sort key, and the shard follows from it: a message that is sent
//! twice is one message. The registry knows of four shards for the busy conversation and of nothing
//! for the others.

use heatsink_dynamo::Operation;
use heatsink_heat::sharing_a_partition;
use serde_json::{Value as Json, json};

use crate::live::{Live, Pace};
use crate::stage::{Fault, Load, Stage, create, strings};
use crate::story::Story;

const TABLE: &str = "Messages";
const HOT: &str = "conv_abc123";
/// The load of the busy conversation.
const RATE: u32 = 4_000;
const SECONDS: u32 = 2;
/// Messages on a page of history.
const PAGE: usize = 200;

/// The one conversation, four shards, by the message id: the part of the sort key behind `#`.
const RULE: &str = include_str!("../../../examples/chat/heatsink.toml");

/// Names of the phases.
pub const BEFORE: &str = "one key, no rule";
/// With the rule.
pub const AFTER: &str = "4 shards for the one conversation";
/// Another busy conversation under the same rule: two of its shards meet.
pub const MET: &str = "4 shards, two of which share a partition";
/// The same with as many shards as `heatsink shards` recommends against that.
pub const ROOM: &str = "12 shards for that one";
/// Without a rule, before the conversation is sharded.
pub const LIVE_BEFORE: &str = "no rule, before `heatsink reshard start`";
/// The same load goes on, and the conversation has shards.
pub const LIVE_AFTER: &str = "no rule, 12 shards by `heatsink reshard start`, from the cutover on";

/// A conversation of whose four shards two are on one of the partitions that begin at `firsts`.
/// With 80 partitions this is true of one name in fourteen.
fn meeting(firsts: &[u64]) -> String {
    let position = |name: &str, shard| {
        let key = heatsink_layout::codec::encode(name.as_bytes(), shard).unwrap_or_default();
        heatsink_physics::position(&key)
    };
    let meet = |name: &String| {
        let positions = [0, 1, 2, 3].map(|shard| position(name, shard));
        !sharing_a_partition(&positions, firsts).is_empty()
    };
    (0..).map(|nth: u32| format!("conv_{nth:03}")).find(meet).unwrap_or_default()
}

/// A rule like [`RULE`] for another conversation.
fn rule_for(conversation: &str, shards: u16) -> String {
    RULE.replace(HOT, conversation).replace("shards   = 4", &format!("shards   = {shards}"))
}

/// The sort key of a message: when it was sent, and its id.
fn sent(nth: u32) -> String {
    format!("2026-06-22T18:{:02}:{:02}.{:03}Z#m{nth:06}", nth / 60_000, nth / 1_000 % 60, nth % 1_000)
}

fn message(conversation: &str, nth: u32) -> (Operation, Json) {
    let item = json!({
        "conversation": {"S": conversation},
        "sent": {"S": sent(nth)},
        "author": {"S": if nth.is_multiple_of(2) { "Alice" } else { "Bob" }},
        "text": {"S": format!("message {nth}")},
    });
    (Operation::PutItem, json!({"TableName": TABLE, "Item": item}))
}

/// The Query for a page of history.
fn all(conversation: &str, forward: bool) -> Json {
    json!({
        "TableName": TABLE,
        "KeyConditionExpression": "conversation = :conversation",
        "ExpressionAttributeValues": {":conversation": {"S": conversation}},
        "ScanIndexForward": forward,
        "Limit": PAGE,
    })
}

/// The whole history, page by page as an application reads it, and the physical requests it took.
async fn history(stage: &Stage, conversation: &str, forward: bool) -> Result<(Vec<String>, u64), Fault> {
    let mut query = all(conversation, forward);
    let (mut messages, mut calls) = (Vec::new(), 0);
    loop {
        let (answer, more) = stage.counted(Operation::Query, &query).await?;
        calls += more;
        messages.extend(strings(&answer, "sent"));
        // What the client is shown is what it wrote: no key has a suffix.
        let keys = strings(&answer, "conversation");
        if let Some(wrong) = keys.iter().find(|key| *key != conversation) {
            return Err(Fault(format!("an answer shows the key {wrong}")));
        }
        match &answer["LastEvaluatedKey"] {
            Json::Null => return Ok((messages, calls)),
            last => query["ExclusiveStartKey"] = last.clone(),
        }
    }
}

async fn started(rules: &str) -> Result<Stage, Fault> {
    let stage = Stage::start(rules).await?;
    stage.create(TABLE, ["conversation", "sent"], &[]).await?;
    Ok(stage)
}

/// Runs the system.
///
/// # Errors
/// When a request is refused for another reason than throughput.
pub async fn run() -> Result<Story, Fault> {
    let mut story = Story::default();
    for (name, rules) in [(BEFORE, ""), (AFTER, RULE)] {
        let stage = started(rules).await?;
        let load = stage.offer(RATE, SECONDS, |nth| message(HOT, nth)).await?;
        story.load(name, &load);
        stage.rest();
        // A client that heard nothing sends again.
        for nth in load.accepted.iter().take(100) {
            let (operation, body) = message(HOT, *nth);
            stage.call(operation, &body).await?;
        }
        let mut expected: Vec<String> = load.accepted.iter().map(|nth| sent(*nth)).collect();
        let (found, _) = history(&stage, HOT, true).await?;
        story.rows(&format!("{name}: history in order, 100 messages sent twice"), &found, &expected);
        expected.reverse();
        let (found, _) = history(&stage, HOT, false).await?;
        story.rows(&format!("{name}: the same from the newest on"), &found, &expected);
        if name == AFTER {
            cold(&stage, &mut story).await?;
        }
    }
    live(&mut story).await?;
    let unlucky = meeting(&started("").await?.partitions(TABLE));
    for (phase, shards) in [(MET, 4), (ROOM, 12)] {
        let stage = started(&rule_for(&unlucky, shards)).await?;
        story.load(phase, &stage.offer(RATE, SECONDS, |nth| message(&unlucky, nth)).await?);
    }
    Ok(story)
}

/// The conversation is sharded while messages are sent. No client gets an error but that the one
/// key is too hot, and every message is there.
async fn live(story: &mut Story) -> Result<(), Fault> {
    let live = Live::start(&create(TABLE, ["conversation", "sent"], &[])).await?;
    let pace = Pace { per_second: RATE, seconds: [1, 1] };
    let sharded = live.shard((TABLE, HOT), 12, pace, |nth| message(HOT, nth)).await?;
    story.load(LIVE_BEFORE, &sharded.before);
    story.load(LIVE_AFTER, &sharded.after);
    let loads = [&sharded.before, &sharded.cutover, &sharded.after];
    let mut expected: Vec<String> =
        loads.iter().flat_map(|load: &&Load| &load.accepted).map(|nth| sent(*nth)).collect();
    expected.sort_unstable();
    let found = live.pages(&all(HOT, true), "sent").await?;
    story.rows("sharded while messages were sent: history in order", &found, &expected);
    story.check("and its shards", &u64::from(sharded.report.to), &12);
    Ok(())
}

/// Other conversations cost nothing more: one physical request for each of their requests.
async fn cold(stage: &Stage, story: &mut Story) -> Result<(), Fault> {
    let (mut requests, mut calls) = (0, 0);
    for conversation in ["conv_xyz999", "conv_family", "conv_abc1234"] {
        for nth in 0..20 {
            let (operation, body) = message(conversation, nth);
            calls += stage.counted(operation, &body).await?.1;
        }
        let (found, pages) = history(stage, conversation, true).await?;
        let expected: Vec<String> = (0..20).map(sent).collect();
        story.rows(&format!("{conversation}: history"), &found, &expected);
        calls += pages;
        requests += 21;
    }
    story.check("physical requests of three cold conversations, as many as theirs", &calls, &requests);
    let get = json!({"TableName": TABLE, "Key": {"conversation": {"S": HOT}, "sent": {"S": sent(0)}}});
    let (_, calls) = stage.counted(Operation::GetItem, &get).await?;
    story.check("physical requests: one message of the hot conversation, by its key", &calls, &1);
    Ok(())
}
