//! Every system keeps its promise: throttled before, not after, and answered exactly.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use heatsink_systems::{Story, chat, events, leaderboard, ops_log, votes};

/// Throttled shares by phase; everything that had to hold did.
fn shares<const N: usize>(story: &Story, phases: [&str; N]) -> [f64; N] {
    println!("{story}");
    assert!(!story.findings.is_empty() && story.holds(), "{story}");
    phases.map(|phase| story.throttled_share(phase).unwrap_or_else(|| panic!("no phase {phase}")))
}

#[tokio::test]
async fn ops_log_needs_shards_in_its_buckets() {
    let story = ops_log::run().await.unwrap();
    let all =
        [ops_log::BEFORE, ops_log::DAY, ops_log::DAY_AND_SHARDS, ops_log::INDEX, ops_log::INDEX_SHARDED];
    let [before, day, shards, index, index_sharded] = shares(&story, all);
    assert!(before > 0.5, "{before}");
    assert!(day > 0.5, "a bucket of days lifts nothing: {day}");
    assert!(shards < 0.001, "{shards}");
    assert!(index > 0.4, "the index's one key holds the table back: {index}");
    assert!(index_sharded < 0.001, "{index_sharded}");
}

#[tokio::test]
async fn chat_shards_one_conversation_and_no_other() {
    let story = chat::run().await.unwrap();
    let [before, after, met, room] = shares(&story, [chat::BEFORE, chat::AFTER, chat::MET, chat::ROOM]);
    assert!(before > 0.6, "{before}");
    assert!(after < 0.001, "{after}");
    assert!(met > 0.1, "peak / 1,000 leaves no room for two that meet: {met}");
    assert!(room < 0.001, "{room}");
    let [before, after] = shares(&story, [chat::LIVE_BEFORE, chat::LIVE_AFTER]);
    assert!(before > 0.6 && after < 0.01, "{before} {after}");
}

#[tokio::test]
async fn leaderboard_is_exact_under_shards() {
    let story = leaderboard::run().await.unwrap();
    let [before, after, adopted] =
        shares(&story, [leaderboard::BEFORE, leaderboard::AFTER, leaderboard::ADOPTED]);
    assert!(before > 0.6, "{before}");
    for after in [after, adopted] {
        assert!(after < 0.001, "{after}");
    }
}

#[tokio::test]
async fn events_by_every_pattern() {
    let story = events::run().await.unwrap();
    for before in shares(&story, [events::USER_BEFORE, events::TENANT_BEFORE]) {
        assert!(before > 0.5, "{before}");
    }
    for after in shares(&story, [events::USER_AFTER, events::USER_BY_HAND, events::TENANT_AFTER]) {
        assert!(after < 0.001, "{after}");
    }
}

#[tokio::test]
async fn votes_and_the_index_that_holds_ballots_back() {
    let story = votes::run().await.unwrap();
    for before in shares(&story, [votes::ITEM, votes::INDEX]) {
        assert!(before > 0.5, "{before}");
    }
    for after in shares(&story, [votes::ITEM_COUNTED, votes::ITEM_BY_HAND, votes::INDEX_SHARDED]) {
        assert!(after < 0.001, "{after}");
    }
    let combined = story.phases.iter().find(|phase| phase.name == votes::ITEM_COMBINED).unwrap();
    assert_eq!((combined.offered, combined.throttled), (10_000, 0));
}

#[test]
fn values_are_shown_as_people_write_them() {
    let mut story = Story::default();
    story.check("one", &Some("0000680388#p003261"), &None);
    story.check("many", &vec![("OPS_LOG", 1_u64, "shard")], &Vec::new());
    story.check("both", &(true, false), &(true, true));
    let shown: Vec<(&str, &str)> =
        story.findings.iter().map(|one| (one.found.as_str(), one.expected.as_str())).collect();
    assert_eq!(shown, [("0000680388#p003261", "none"), ("OPS_LOG, 1, shard", ""), ("yes, no", "yes, yes")]);
}
