//! The automatic policy under random loads, in virtual time: the product's counting, drawing,
//! advice, policy, slots and model of partitions, for whole minutes of traffic each.
//!
//! | variable | meaning | default |
//! |---|---|---|
//! | `HEATSINK_SEED` | the first seed; alone, it replays that one and prints what happened | 1 |
//! | `HEATSINK_SEEDS` | how many seeds | 12; 300 on demand |

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "a test fails by panicking; figures are small"
)]

mod cause;
mod false_alarms;
mod filled;
mod gateway;
mod ground;
mod judge;
mod ranges;
mod scene;
mod world;

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use judge::{Verdict, judge};
use scene::Scene;
use world::{Story, play};

/// Seeds of a short run.
const SEEDS: u64 = 12;
/// What is not mended yet, of so few seeds and of 300: keys that are still refused after a minute,
/// keys that a change made worse for more than five seconds, and keys with more than three times the
/// least shards. Most are where the store does not tell its partitions, and keys meet that nobody
/// can know to be neighbours.
const STAY: [usize; 2] = [1, 72];
const WORSE: [usize; 2] = [2, 79];
const MANY: [usize; 2] = [3, 5];

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|value| value.parse().ok())
}

/// Plays a scene with the policy and without.
fn judged(scene: &Scene) -> (Story, Verdict) {
    let (story, without) = (play(scene, true), play(scene, false));
    let verdict = judge(scene, &story, &without);
    (story, verdict)
}

/// What happened, for whoever replays a seed.
fn print(scene: &Scene, story: &Story, verdict: &Verdict) {
    println!(
        "{} partitions{}, {} gateways{}",
        scene.partitions,
        if scene.told { ", told" } else { "" },
        scene.gateways,
        scene.killed.map_or(String::new(), |second| format!(", the first is killed in second {second}")),
    );
    for (at, fate) in verdict.fates.iter().enumerate() {
        let key = &scene.keys[at];
        if fate.burned.is_none() && fate.changes == 0 {
            continue;
        }
        let asks: Vec<String> = scene
            .asks
            .iter()
            .filter(|ask| ask.key == at)
            .map(|ask| {
                format!("{:.0}/s {:?} of {} B from {} s", ask.per_second, ask.act, ask.bytes, ask.begins)
            })
            .collect();
        let asked = scene.asked(at);
        println!(
            "{} ({:?}, {:.2} partitions): {}; burned {:?} s, {:.1} % refused in the end, {:.1} % without the policy, worse for {:?} s, {} \
             changes, shards and least {:?}",
            key.name,
            key.role,
            asked.filled(1.0),
            asks.join(", "),
            fate.burned,
            fate.refused * 100.0,
            fate.without * 100.0,
            fate.worse,
            fate.changes,
            fate.shards
        );
        let shares = story.bins[at].iter().map(|(all, refused)| refused * 100 / (*all).max(1));
        println!("    {}", shares.map(|share| share.to_string()).collect::<Vec<_>>().join(" "));
    }
    for change in &story.changes {
        println!(
            "{} ms: {} gets {}: {}",
            change.at, scene.keys[change.key].name, change.shards, change.sentence
        );
    }
    println!("relief {:?} s, ratios {:?}", verdict.relief, verdict.ratios);
}

#[derive(Default)]
struct Tally {
    ratios: Vec<f64>,
    reliefs: Vec<usize>,
    burned: usize,
    changed: usize,
    stay: usize,
    worse: usize,
    limited: usize,
    causes: BTreeMap<String, usize>,
    failed: Vec<(u64, String)>,
}

/// Plays so many seeds, on all processors.
fn play_seeds(seeds: u64) -> Tally {
    let first = setting("HEATSINK_SEED");
    let count = setting("HEATSINK_SEEDS").unwrap_or(if first.is_some() { 1 } else { seeds });
    let first = first.unwrap_or(1);
    let (next, tally) = (AtomicU64::new(first), Mutex::new(Tally::default()));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= first + count {
                        break;
                    }
                    let scene = Scene::drawn(seed);
                    let (story, verdict) = judged(&scene);
                    if count == 1 {
                        print(&scene, &story, &verdict);
                    }
                    let mut tally = tally.lock().unwrap();
                    tally.ratios.extend(&verdict.ratios);
                    tally.reliefs.extend(verdict.relief);
                    tally.burned += verdict.fates.iter().filter(|fate| fate.burned.is_some()).count();
                    tally.changed += verdict.ratios.len();
                    tally.worse += verdict.worse;
                    tally.stay += verdict.stay;
                    tally.limited += verdict.limited;
                    for cause in &verdict.causes {
                        *tally.causes.entry(cause.clone()).or_default() += 1;
                    }
                    if !verdict.wrong.is_empty() {
                        tally.failed.push((seed, verdict.wrong.join("\n  ")));
                    }
                }
            });
        }
    });
    let mut tally = tally.into_inner().unwrap();
    tally.failed.sort();
    tally.ratios.sort_by(f64::total_cmp);
    tally.reliefs.sort_unstable();
    tally
}

impl Tally {
    fn tell(&self, seeds: u64) {
        let at = |share: f64, of: usize| ((of as f64 * share) as usize).min(of.saturating_sub(1));
        let ratio = |share| self.ratios.get(at(share, self.ratios.len()));
        let relief = |share| self.reliefs.get(at(share, self.reliefs.len()));
        println!(
            "{seeds} seeds: {} keys burned, {} were changed; shards ÷ least: median {:?}, 99 % {:?}, worst {:?}; all relieved after (s): \
             median {:?}, 90 % {:?}, worst {:?}; {} keys stay refused, {} were made worse; {} seeds failed",
            self.burned,
            self.changed,
            ratio(0.5),
            ratio(0.99),
            ratio(1.0),
            relief(0.5),
            relief(0.9),
            relief(1.0),
            self.stay,
            self.worse,
            self.failed.len(),
        );
        println!(
            "{} keys are refused by the capacity of their table or index, which no layout helps",
            self.limited
        );
        for (cause, keys) in &self.causes {
            println!("{keys:5} {cause}");
        }
        for (seed, wrong) in &self.failed {
            println!("seed {seed}:\n  {wrong}");
        }
    }

    /// Panics where more is wrong than that.
    fn judge(&self, [stay, worse, many]: [usize; 3]) {
        let all: String =
            self.failed.iter().map(|(seed, wrong)| format!("seed {seed}:\n  {wrong}\n")).collect();
        let replay =
            "replay one: HEATSINK_SEED=1 cargo test -p heatsink-heat --test policy of_random -- --nocapture";
        assert!(self.stay <= stay && self.worse <= worse, "{all}{replay}");
        let too_many = self.ratios.iter().filter(|ratio| **ratio > 3.0).count();
        assert!(too_many <= many, "{too_many} keys have too many shards\n{all}{replay}");
        assert!(!all.contains("without need"), "{all}{replay}");
        let median = self.ratios.get(self.ratios.len() / 2);
        assert!(median.is_none_or(|median| *median <= 1.5), "{median:?} times the least shards");
    }
}

#[test]
#[ignore = "what is wanted, which the policy does not hold yet; on demand"]
fn of_random_loads_each_key_that_shards_help_is_relieved() {
    let tally = play_seeds(SEEDS);
    tally.tell(SEEDS);
    tally.judge([STAY[0], WORSE[0], MANY[0]]);
}

#[test]
#[ignore = "minutes; on demand"]
fn of_hundreds_of_random_loads_each_key_that_shards_help_is_relieved() {
    let tally = play_seeds(300);
    tally.tell(300);
    tally.judge([STAY[1], WORSE[1], MANY[1]]);
}

/// Whether all keys of a load are relieved within so many seconds from the first refusal, and
/// nothing else is wrong. Prints what happened if not.
fn is_relieved(name: &str, scene: &Scene, within: usize) -> bool {
    let (story, verdict) = judged(scene);
    println!(
        "{name}: each relieved {:?} s after its first refusal, wanted {within}; {:?} s from the first of all to the last relief",
        verdict.slowest, verdict.relief
    );
    let holds = verdict.wrong.is_empty() && verdict.slowest.is_some_and(|seconds| seconds <= within);
    if !holds {
        print(scene, &story, &verdict);
        println!("{}", verdict.wrong.join("\n"));
    }
    holds
}

#[test]
fn keys_are_relieved_within_the_seconds_that_are_promised() {
    let killed = Scene { killed: Some(scene::BEGIN + 1), ..Scene::equal(10, 1_100.0, 3) };
    let loads = [
        ("one key", Scene::equal(1, 5_000.0, 1), 5),
        ("ten keys", Scene::equal(10, 1_100.0, 1), 8),
        ("a hundred keys", Scene::equal(100, 1_100.0, 1), 15),
        ("a value of an index", Scene::one_value(), 8),
        ("one key, three gateways", Scene::equal(1, 5_000.0, 3), 8),
        ("ten keys, three gateways", Scene::equal(10, 1_100.0, 3), 8),
        ("ten keys, the deciding gateway killed", killed, 15),
        ("a hundred and twenty keys", Scene::equal(120, 1_100.0, 1), 20),
    ];
    let mut missed = Vec::new();
    for (name, scene, within) in loads {
        if !is_relieved(name, &scene, within) {
            missed.push(name);
        }
    }
    assert_eq!(missed, Vec::<&str>::new());
}
