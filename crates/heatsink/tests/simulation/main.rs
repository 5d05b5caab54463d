//! Deterministic simulation: real gateways and workers over the embedded store, on one thread, in
//! virtual time and before a network whose mischief follows a seed. The answers to all clients'
//! calls are held against what one item could have answered (`heatsink-history`).
//!
//! | variable | meaning | default |
//! |---|---|---|
//! | `HEATSINK_SEED` | the first seed; alone, it replays that one and prints its log. Scenarios with a name of their own print theirs too | 1 |
//! | `HEATSINK_SEEDS` | how many seeds | 300 of all stories, 300 of keys that move, 150 of counters that widen, 100 of tables that turn, 60 of layouts that stand still; 1 where `HEATSINK_SEED` is given |
//! | `HEATSINK_STORY` | only stories of that name, such as `Birth` | all |

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking, its helper functions included"
)]

mod adoption;
mod book;
mod carried;
mod client;
mod clock;
mod counters;
mod ending;
mod faults;
mod fenced;
mod former_tables;
mod log;
mod network;
mod process;
mod reshard;
mod reshard_client;
mod reshard_expiry;
mod reshard_hazards;
mod reshard_high_water;
mod reshard_safety;
mod safety;
mod scene;
mod stories;
mod table;
mod turning;
mod walk;
mod widening;
mod widening_client;
mod widening_safety;
mod world;

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::stories::{Played, Story, play};

/// The table, its hot partition key, and its index on the attribute `status`.
const TABLE: &str = "Board";
const KEY: &str = "game";
/// Another key, which moves beside it in some stories.
const OTHER: &str = "game2";
/// Other keys than [`KEY`]: their items' names begin so.
const BESIDE: [(&str, &str); 4] =
    [("other", OTHER), ("third", "game3"), ("fourth", "game4"), ("idle", "idle")];
const INDEX: &str = "by-status";

/// A run ends after so many failing seeds: the first few of a long one tell more than the first.
const MOST_FAILURES: usize = 5;

/// After so many seeds a long run says how far it is.
const PROGRESS: u64 = 1_000;

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|value| value.parse().ok())
}

/// Plays the story of every seed, on all processors. Panics with those that failed. `test`: its
/// name, for the command that replays one.
fn play_seeds(test: &str, seeds: u64, story: impl Fn(u64) -> Story + Sync) {
    let first = setting("HEATSINK_SEED");
    let count = setting("HEATSINK_SEEDS").unwrap_or(if first.is_some() { 1 } else { seeds });
    let only = std::env::var("HEATSINK_STORY").ok();
    let first = first.unwrap_or(1);
    let (next, tally) = (AtomicU64::new(first), Mutex::new(Tally::default()));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| {
                while tally.lock().unwrap().failed.len() < MOST_FAILURES {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= first + count {
                        break;
                    }
                    let story = story(seed);
                    if only.as_ref().is_some_and(|only| *only != format!("{story:?}")) {
                        continue;
                    }
                    let played = play(seed, story);
                    if count == 1 {
                        played.log.iter().for_each(|line| println!("{line}"));
                    }
                    let mut tally = tally.lock().unwrap();
                    tally.add(test, seed, story, played);
                    if tally.seeds.is_multiple_of(PROGRESS) {
                        println!("{} of {count} seeds, {} failed", tally.seeds, tally.failed.len());
                    }
                }
            });
        }
    });
    tally.into_inner().unwrap().tell();
}

#[derive(Default)]
struct Tally {
    seeds: u64,
    calls: usize,
    writes: usize,
    by_story: BTreeMap<String, (u64, u64)>,
    failed: Vec<String>,
}

impl Tally {
    fn add(&mut self, test: &str, seed: u64, story: Story, played: Played) {
        let Played { wrong, calls, writes, .. } = played;
        self.seeds += 1;
        self.calls += calls;
        self.writes += writes;
        let (seeds, failed) = self.by_story.entry(format!("{story:?}")).or_default();
        *seeds += 1;
        if !wrong.is_empty() {
            *failed += 1;
            self.failed.push(format!(
                "seed {seed}, {story:?}:\n{}\nreplay: HEATSINK_SEED={seed} cargo test -p heatsink --test simulation {test} -- --nocapture",
                wrong.join("\n")
            ));
        }
    }

    fn tell(self) {
        let Tally { seeds, calls, writes, by_story, failed } = self;
        println!("{seeds} seeds: {calls} calls on items, {writes} of them writes that were acknowledged");
        for (story, (seeds, failed)) in by_story {
            println!("  {story}: {seeds} seeds, {failed} failed");
        }
        assert!(failed.is_empty(), "{}", failed.join("\n\n"));
        assert!(writes > 0 || seeds == 1, "nothing was done");
    }
}

#[test]
fn layouts_that_stand_still_hold_in_any_weather() {
    play_seeds("layouts_that_stand_still", 60, |_| Story::Steady);
}

#[test]
fn one_seed_gives_one_log() {
    for seed in 1..=12 {
        let log = || play(seed, Story::of(seed)).log;
        let (first, second) = (log(), log());
        let part = first.iter().zip(&second).find(|(first, second)| first != second);
        assert_eq!(part, None, "seed {seed}");
        assert_eq!(first.len(), second.len(), "seed {seed}");
        assert!(first.len() > 100, "seed {seed}: hardly anything happened");
    }
}
