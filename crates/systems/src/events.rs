//! Events of users and tenants: one user's stream is far busier than the others', one tenant's too.
//!
//! The patterns that people write by hand, each as a rule: a random suffix, a suffix that follows
//! from the event, days, and days with shards. The table whose own code appends `md5(event) % 10`
//! is read and written unchanged, while that code continues to use it.

use heatsink_dynamo::Operation;
use serde_json::{Value as Json, json};

use crate::stage::{Fault, Stage, strings};
use crate::story::Story;

const TABLE: &str = "Events";
const USER: &str = "user-12345";
const TENANT: &str = "tenant-456";
const RATE: u32 = 3_000;
const SECONDS: u32 = 2;

const RULES: &str = include_str!("../../../examples/events/heatsink.toml");

/// The same keys as the code below writes them.
const BY_HAND: &str = include_str!("../../../examples/events/by_hand.toml");

/// Names of the phases.
pub const USER_BEFORE: &str = "a busy user, no rule";
/// With `random`.
pub const USER_AFTER: &str = "a busy user, random over 8";
/// With the account's own suffixes.
pub const USER_BY_HAND: &str = "a busy user, the account's own md5 % 10 as a template";
/// The tenant.
pub const TENANT_BEFORE: &str = "a busy tenant, no rule";
/// With days and shards.
pub const TENANT_AFTER: &str = "a busy tenant, days of 8 shards";

/// When and what: the sort key.
fn event(day: u32, nth: u32) -> String {
    let (second, milli) = (nth / 1_000, nth % 1_000);
    format!("2024-01-{day:02}T10:{:02}:{:02}.{milli:03}Z#event-{nth}", second / 60, second % 60)
}

fn put(key: &str, day: u32, nth: u32) -> (Operation, Json) {
    let item = json!({"owner": {"S": key}, "at": {"S": event(day, nth)}, "kind": {"S": "page_view"}});
    (Operation::PutItem, json!({"TableName": TABLE, "Item": item}))
}

fn between(key: &str, from: &str, to: &str) -> Json {
    json!({
        "TableName": TABLE,
        "KeyConditionExpression": "#owner = :key AND #at BETWEEN :from AND :to",
        "ExpressionAttributeNames": {"#owner": "owner", "#at": "at"},
        "ExpressionAttributeValues": {":key": {"S": key}, ":from": {"S": from}, ":to": {"S": to}},
    })
}

async fn started(rules: &str) -> Result<Stage, Fault> {
    let stage = Stage::start(rules).await?;
    stage.create(TABLE, ["owner", "at"], &[]).await?;
    Ok(stage)
}

/// Runs the system.
///
/// # Errors
/// When a request is refused for another reason than throughput.
pub async fn run() -> Result<Story, Fault> {
    let mut story = Story::default();
    for (name, rules, key) in [
        (USER_BEFORE, "", USER),
        (USER_AFTER, RULES, USER),
        (USER_BY_HAND, BY_HAND, USER),
        (TENANT_BEFORE, "", TENANT),
        (TENANT_AFTER, RULES, TENANT),
    ] {
        let stage = started(rules).await?;
        let load = stage.offer(RATE, SECONDS, |nth| put(key, 15, nth)).await?;
        story.load(name, &load);
        stage.rest();
        for nth in load.accepted.iter().take(100) {
            let (operation, body) = put(key, 15, *nth);
            stage.call(operation, &body).await?;
        }
        let expected: Vec<String> = load.accepted.iter().map(|nth| event(15, *nth)).collect();
        let (found, _) = stage.pages(between(key, "2024-01-15", "2024-01-16"), "at").await?;
        story.rows(&format!("{name}: the day in order, 100 events sent twice"), &found, &expected);
        if name == USER_AFTER {
            batch(&stage, &mut story).await?;
        }
    }
    tenants(&mut story).await?;
    random(&mut story).await?;
    by_hand(&mut story).await?;
    Ok(story)
}

/// A batch over the shards of one user, by key.
async fn batch(stage: &Stage, story: &mut Story) -> Result<(), Fault> {
    let keys: Vec<Json> =
        (0..100).map(|nth| json!({"owner": {"S": USER}, "at": {"S": event(15, nth)}})).collect();
    let get = json!({"RequestItems": {TABLE: {"Keys": keys}}});
    let answer = stage.call(Operation::BatchGetItem, &get).await?;
    let mut found = strings(&json!({"Items": answer["Responses"][TABLE]}), "at");
    found.sort_unstable();
    let mut expected: Vec<String> = (0..100).map(|nth| event(15, nth)).collect();
    expected.sort_unstable();
    story.rows("100 events of the user by key, in one batch", &found, &expected);
    Ok(())
}

/// Nine days of a quiet and of a busy tenant: the requests that a read of one day takes, and a read
/// of all days.
async fn tenants(story: &mut Story) -> Result<(), Fault> {
    let stage = started(RULES).await?;
    let expected = |days: std::ops::RangeInclusive<u32>| -> Vec<String> {
        days.flat_map(|day| (0..5).map(move |nth| event(day, nth))).collect()
    };
    for (key, day_takes) in [("tenant-7", 2), (TENANT, 9)] {
        for day in 1..=9 {
            for nth in 0..5 {
                let (operation, body) = put(key, day, nth);
                stage.call(operation, &body).await?;
            }
        }
        let (found, calls) = stage.pages(between(key, "2024-01-04", "2024-01-04T24"), "at").await?;
        story.rows(&format!("{key}: one day"), &found, &expected(4..=4));
        story.check(&format!("{key}: physical requests of one day"), &calls, &day_takes);
        let (found, _) = stage.pages(between(key, "2024-01-01", "2024-01-10"), "at").await?;
        story.rows(&format!("{key}: nine days, one Query"), &found, &expected(1..=9));
    }
    Ok(())
}

/// What the random suffix costs: an event that is sent again is another event.
async fn random(story: &mut Story) -> Result<(), Fault> {
    let stage = started("").await?;
    let mut draws = 1_u32;
    let mut rows = 0;
    for _again in 0..2 {
        for nth in 0..100 {
            draws = draws.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let (operation, body) = put(&format!("{USER}#{}", (draws >> 16) % 10), 15, nth);
            stage.call(operation, &body).await?;
        }
    }
    for shard in 0..10 {
        let query = between(&format!("{USER}#{shard}"), "2024", "2025");
        rows += stage.pages(query, "at").await?.0.len();
    }
    story.check(
        "the account's random suffix: 100 events sent twice are more than 100 rows",
        &(rows > 150),
        &true,
    );
    Ok(())
}

/// The account's suffix: which of ten keys an event lies under.
fn hand_key(at: &str) -> String {
    let digest = u128::from_be_bytes(*md5::compute(at));
    format!("{USER}#{}", digest % 10)
}

/// Code on the same table that computes shards itself and bypasses Heatsink.
async fn by_hand(story: &mut Story) -> Result<(), Fault> {
    let stage = started(BY_HAND).await?;
    let events: Vec<String> = (0..60).map(|nth| event(15, nth)).collect();
    let (old, new) = events.split_at(40);
    for at in old {
        let item = json!({"owner": {"S": hand_key(at)}, "at": {"S": at}});
        stage.past(Operation::PutItem, &json!({"TableName": TABLE, "Item": item})).await?;
    }
    for at in new {
        let item = json!({"owner": {"S": USER}, "at": {"S": at}});
        stage.call(Operation::PutItem, &json!({"TableName": TABLE, "Item": item})).await?;
    }
    let (found, _) = stage.pages(between(USER, "2024", "2025"), "at").await?;
    story.rows("by hand: both codes' events through Heatsink", &found, &events);
    let mut seen = Vec::new();
    for at in &events {
        let get = json!({"TableName": TABLE, "Key": {"owner": {"S": hand_key(at)}, "at": {"S": at}}});
        let answer = stage.past(Operation::GetItem, &get).await?;
        seen.extend(answer["Item"]["at"]["S"].as_str().map(str::to_owned));
    }
    story.rows("by hand: both codes' events by the account's own code", &seen, &events);
    Ok(())
}
