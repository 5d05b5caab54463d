//! A leaderboard: the top 100 of a game, the pages behind it, a player's own score and rank. One
//! game goes viral.
//!
//! Two tables: with the score in the sort key, as the account has it, and keyed by player with the
//! score on an index. Shards follow from the player, so a player's score is found by its key, and
//! in the second table a new score replaces the old one.

use futures::future::{Either, FutureExt, select};
use heatsink_dynamo::Operation;
use heatsink_workers::{AdoptionReport, Direction};
use serde_json::{Value as Json, json};

use crate::stage::{Fault, Load, Stage, strings};
use crate::story::Story;

const GAME: &str = "game_x";
const RATE: u32 = 5_000;
const SECONDS: u32 = 2;
const SHARDS: u64 = 10;

/// Shards by player: the second part of the sort key of one table, all of it in the other.
const RULES: &str = include_str!("../../../examples/leaderboard/heatsink.toml");

/// Names of the phases.
pub const BEFORE: &str = "one key, no rule";
/// With the rule.
pub const AFTER: &str = "10 shards by player";
/// With the rule, and with scores from before it.
pub const ADOPTED: &str = "10 shards, yesterday's scores adopted";

fn player(nth: u32) -> String {
    format!("p{nth:06}")
}

/// A score that looks random and follows from the player (splitmix64's last steps). Two players
/// never have the same one and the same name.
fn score(nth: u32) -> String {
    let z = u64::from(nth).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    format!("{:010}", (z ^ (z >> 31)) % 1_000_000)
}

/// The sort key by score: zero-padded, so that text sorts like numbers.
fn by_score(nth: u32) -> String {
    format!("{}#{}", score(nth), player(nth))
}

fn put(nth: u32) -> (Operation, Json) {
    let item = json!({"pk": {"S": GAME}, "sk": {"S": by_score(nth)}, "name": {"S": format!("player {nth}")}});
    (Operation::PutItem, json!({"TableName": "Leaderboards", "Item": item}))
}

/// The sort keys that a leaderboard of these players shows, best first.
fn best_first(players: &[u32]) -> Vec<String> {
    let mut keys: Vec<String> = players.iter().map(|nth| by_score(*nth)).collect();
    keys.sort_unstable_by(|a, b| b.cmp(a));
    keys
}

fn top(table: &str, count: usize) -> Json {
    json!({
        "TableName": table,
        "KeyConditionExpression": "pk = :game",
        "ExpressionAttributeValues": {":game": {"S": GAME}},
        "ScanIndexForward": false,
        "Limit": count,
        "ReturnConsumedCapacity": "TOTAL",
    })
}

/// Runs the system.
///
/// # Errors
/// When a request is refused for another reason than throughput.
pub async fn run() -> Result<Story, Fault> {
    let mut story = Story::default();
    for (name, rules) in [(BEFORE, ""), (AFTER, RULES)] {
        let stage = Stage::start(rules).await?;
        stage.create("Leaderboards", ["pk", "sk"], &[]).await?;
        let load = stage.offer(RATE, SECONDS, put).await?;
        story.load(name, &load);
        stage.rest();
        questions(&stage, &load, name, &mut story).await?;
    }
    yesterday(&mut story).await?;
    by_player(&mut story).await?;
    Ok(story)
}

/// Yesterday's scores are under the plain key when the rule is added. They are adopted while
/// clients continue to read, brought back and adopted again; then today's scores are written.
async fn yesterday(story: &mut Story) -> Result<(), Fault> {
    let old = Stage::start("").await?;
    old.create("Leaderboards", ["pk", "sk"], &[]).await?;
    let before = old.offer(300, 2, put).await?;
    let best: Vec<String> = best_first(&before.accepted).into_iter().take(100).collect();

    // Until then, a gateway with the rule does not guess.
    let refused = match old.again(RULES).await?.call(Operation::Query, &top("Leaderboards", 100)).await {
        Err(Fault(reason)) => reason.contains("`heatsink adopt Leaderboards`"),
        Ok(_) => false,
    };
    story.check("yesterday: a gateway with the rule refuses the table and names the way", &refused, &true);

    let (report, [exact, refused, wrong]) = adopt_beside_readers(&old, &best).await?;
    story.check("yesterday: scores adopted", &report.items, &(before.accepted.len() as u64));
    story.check("yesterday: wrong answers while that ran", &wrong, &0);
    let both = (exact > 0, refused > 0);
    story.check("yesterday: exact answers first, then refusals that clients retry", &both, &(true, true));
    questions(&old.again(RULES).await?, &before, "yesterday adopted", story).await?;

    let back = old.adopt("Leaderboards", "", Direction::Back).await?;
    story.check("yesterday: scores brought back", &back.moved, &report.moved);
    questions(&old.again("").await?, &before, "yesterday brought back", story).await?;

    old.adopt("Leaderboards", RULES, Direction::Adopt).await?;
    let stage = old.again(RULES).await?;
    let first = before.accepted.last().map_or(0, |last| last + 1);
    let today = stage.offer(RATE, SECONDS, |nth| put(first + nth)).await?;
    story.load(ADOPTED, &today);
    stage.rest();
    let accepted = before.accepted.into_iter().chain(today.accepted.iter().map(|nth| first + nth)).collect();
    questions(&stage, &Load { accepted, throttled: 0 }, ADOPTED, story).await
}

/// Adopts while clients read the top through a gateway with an older state. Counts exact answers,
/// retryable refusals and wrong answers.
async fn adopt_beside_readers(old: &Stage, best: &[String]) -> Result<(AdoptionReport, [u32; 3]), Fault> {
    let query = top("Leaderboards", 100);
    let [mut exact, mut refused, mut wrong] = [0; 3];
    let mut count = |answer: Result<Json, Fault>| match answer {
        Ok(answer) if strings(&answer, "sk") == best => exact += 1,
        Err(Fault(reason)) if reason.starts_with("ServiceUnavailable") => refused += 1,
        _ => wrong += 1,
    };
    // At least once before it begins, however fast it is.
    count(old.call(Operation::Query, &query).await);
    let mut adoption = old.adopt("Leaderboards", RULES, Direction::Adopt).boxed();
    let report = loop {
        match select(adoption, old.call(Operation::Query, &query).boxed()).await {
            Either::Left((report, _)) => break report?,
            Either::Right((answer, going_on)) => {
                adoption = going_on;
                count(answer);
            }
        }
    };
    Ok((report, [exact, refused, wrong]))
}

/// A game's requests to the table with the score in its sort key.
async fn questions(stage: &Stage, load: &Load, name: &str, story: &mut Story) -> Result<(), Fault> {
    let ranking = best_first(&load.accepted);
    let mut page = top("Leaderboards", 100);
    for (at, expected) in ranking.chunks(100).take(3).enumerate() {
        let answer = stage.call(Operation::Query, &page).await?;
        story.rows(&format!("{name}: page {} of the leaderboard", at + 1), &strings(&answer, "sk"), expected);
        page["ExclusiveStartKey"] = answer["LastEvaluatedKey"].clone();
    }
    // A player whose sort key is known: one request, whatever the shards.
    let at = ranking.len() / 3;
    let Some(own) = ranking.get(at) else { return Err(Fault("no score was accepted".to_owned())) };
    let get = json!({"TableName": "Leaderboards", "Key": {"pk": {"S": GAME}, "sk": {"S": own}}});
    let (answer, calls) = stage.counted(Operation::GetItem, &get).await?;
    story.check(&format!("{name}: own score"), &answer["Item"]["sk"]["S"].as_str(), &Some(own.as_str()));
    story.check(&format!("{name}: physical requests of own score"), &calls, &1);
    let rank = json!({
        "TableName": "Leaderboards",
        "KeyConditionExpression": "pk = :game AND sk > :own",
        "ExpressionAttributeValues": {":game": {"S": GAME}, ":own": {"S": own}},
        "Select": "COUNT",
        "ReturnConsumedCapacity": "TOTAL",
    });
    let (above, units) = counted_over_pages(stage, rank).await?;
    story.check(&format!("{name}: own rank, the scores above"), &above, &at);
    // At some 50 bytes a row and half a unit for each 4 KB read, in each shard. It is dear: 1 MB of
    // scores is 128 units.
    story.at_most(&format!("{name}: read units of that rank"), units, at as u64 * 60 / 8_192 + SHARDS);
    Ok(())
}

/// A COUNT pages like any other Query. The sum, and the read units it took.
async fn counted_over_pages(stage: &Stage, mut query: Json) -> Result<(usize, u64), Fault> {
    let (mut count, mut units) = (0, 0.0);
    loop {
        let answer = stage.call(Operation::Query, &query).await?;
        count += answer["Count"].as_u64().unwrap_or(0);
        units += answer["ConsumedCapacity"]["CapacityUnits"].as_f64().unwrap_or(0.0);
        match &answer["LastEvaluatedKey"] {
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few units")]
            Json::Null => return Ok((usize::try_from(count).unwrap_or(usize::MAX), units.ceil() as u64)),
            last => query["ExclusiveStartKey"] = last.clone(),
        }
    }
}

/// The other table: keyed by player, the score on an index of its own. A new score replaces the old
/// one; the top comes from the index.
async fn by_player(story: &mut Story) -> Result<(), Fault> {
    let stage = Stage::start(RULES).await?;
    stage.create("Players", ["pk", "sk"], &[("by_score", ["pk", "score"])]).await?;
    let players: Vec<u32> = (0..300).collect();
    for round in [1, 0] {
        for nth in &players {
            let item = json!({
                "pk": {"S": GAME}, "sk": {"S": player(*nth)}, "score": {"S": by_score(*nth + round)},
            });
            stage.call(Operation::PutItem, &json!({"TableName": "Players", "Item": item})).await?;
        }
    }
    let mut query = top("Players", 100);
    query["IndexName"] = json!("by_score");
    let ranking = best_first(&players);
    for (at, expected) in ranking.chunks(100).enumerate() {
        let answer = stage.call(Operation::Query, &query).await?;
        let what = format!("by player: page {} of the index by score", at + 1);
        story.rows(&what, &strings(&answer, "score"), expected);
        query["ExclusiveStartKey"] = answer["LastEvaluatedKey"].clone();
    }
    let get = json!({"TableName": "Players", "Key": {"pk": {"S": GAME}, "sk": {"S": player(7)}}});
    let (answer, calls) = stage.counted(Operation::GetItem, &get).await?;
    let shown = answer["Item"]["score"]["S"].as_str().map(str::to_owned);
    story.check("by player: own score, known by the player alone", &shown, &Some(by_score(7)));
    story.check("by player: physical requests of that", &calls, &1);
    Ok(())
}
