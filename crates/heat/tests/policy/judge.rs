//! What ought to come of a load, against what came: every key that sharding can help is relieved,
//! no other is touched, none is made worse, and no key gets many more shards than it needs.
//!
//! Whether a change made a key worse is told by the same load without the policy. What the table's
//! own capacity refuses, or an index's, is counted apart: no layout of keys helps against it.

use std::collections::BTreeSet;

use crate::cause::{of_stay, of_worse};
use crate::filled::{beside_fixed, is_small, least, loads, own_loads};
use crate::scene::{Act, Role, Scene};
use crate::world::Story;

/// A key burns while more than this share of it is refused, over [`SPAN`] seconds.
const BURNS: f64 = 0.01;
const SPAN: usize = 3;
/// A key is worse by a change if more than so much more is refused, for more than so many seconds.
const WORSE: f64 = 0.02;
const WORSE_SECONDS: usize = 5;
/// In the last seconds all has to be well.
pub const LAST: usize = 10;

/// What came of one key.
#[derive(Clone, Debug)]
pub struct Fate {
    /// The second in which it began to burn, and from which on it does no more.
    pub burned: Option<(usize, usize)>,
    /// The share that is refused in the end.
    pub refused: f64,
    /// The same without the policy.
    pub without: f64,
    /// For how many seconds on end it was worse than without the policy, where that is too long.
    pub worse: Option<usize>,
    pub changes: usize,
    /// The shards that it got, and the least that carry it.
    pub shards: Option<(usize, usize)>,
}

pub struct Verdict {
    pub fates: Vec<Fate>,
    /// What is wrong, in words.
    pub wrong: Vec<String>,
    /// Why: of each key that stays refused, that became worse, that has too many shards.
    pub causes: Vec<String>,
    pub stay: usize,
    /// Keys that the capacity of the table or of its index refuses in the end.
    pub limited: usize,
    /// From the first key's first refusal to the last key's relief, in seconds. Keys that begin
    /// together are not refused together: each first uses what its partition has saved.
    pub relief: Option<usize>,
    /// The longest from a key's own first refusal to its relief.
    pub slowest: Option<usize>,
    /// The shards of each key that was changed, over the least.
    pub ratios: Vec<f64>,
    pub worse: usize,
}

/// The refused share of the seconds around each one.
fn shares(bins: &[(u32, u32)]) -> Vec<f64> {
    (0..bins.len())
        .map(|at| {
            let from = (at + 1).saturating_sub(SPAN);
            let (asked, refused) =
                bins[from..=at].iter().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
            // One request of few is no share.
            if refused < 2 { 0.0 } else { f64::from(refused) / f64::from(asked.max(1)) }
        })
        .collect()
}

/// How far the share of three seconds may be off by chance: three standard deviations.
fn noises(bins: &[(u32, u32)], shares: &[f64]) -> Vec<f64> {
    (0..bins.len())
        .map(|at| {
            let asked: u32 = bins[(at + 1).saturating_sub(SPAN)..=at].iter().map(|one| one.0).sum();
            3.0 * (shares[at] * (1.0 - shares[at]) / f64::from(asked.max(1))).sqrt()
        })
        .collect()
}

/// What was asked for in each second, and what partitions alone refused of it.
fn by_partitions(story: &Story, at: usize) -> Vec<(u32, u32)> {
    let of = story.bins[at].iter().zip(&story.limited[at]);
    of.map(|((asked, refused), limited)| (*asked, refused - limited)).collect()
}

fn share(bins: &[(u32, u32)]) -> f64 {
    let (asked, refused) = bins.iter().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    f64::from(refused) / f64::from(asked.max(1))
}

pub fn judge(scene: &Scene, story: &Story, without: &Story) -> Verdict {
    let mut verdict = Verdict {
        fates: Vec::new(),
        wrong: Vec::new(),
        causes: Vec::new(),
        stay: 0,
        limited: 0,
        relief: None,
        slowest: None,
        ratios: Vec::new(),
        worse: 0,
    };
    let changed: BTreeSet<usize> = story.changes.iter().map(|change| change.key).collect();
    let loads = [loads(scene, story, false), loads(scene, story, true)];
    let (mut first, mut last) = (usize::MAX, None);
    for (at, key) in scene.keys.iter().enumerate() {
        let bins = &by_partitions(story, at);
        let of = shares(bins);
        let of_without = shares(&without.bins[at]);
        let begun = of.iter().zip(&of_without).position(|(one, other)| one.max(*other) >= BURNS);
        // A share of three seconds goes on for two after the last refusal.
        let over = of.iter().rposition(|share| *share >= BURNS).map_or(0, |at| (at + 2).saturating_sub(SPAN));
        let refused = share(&bins[bins.len() - LAST..]);
        let noise = noises(bins, &of_without);
        let runs: Vec<bool> = (0..of.len()).map(|at| of[at] > of_without[at] + WORSE + noise[at]).collect();
        let worst = runs.split(|is_worse| !is_worse).map(<[bool]>::len).max().unwrap_or(0);
        let worse = Some(worst).filter(|worst| *worst > WORSE_SECONDS + SPAN - 1);
        let fate = Fate {
            burned: begun.map(|begun| (begun, over.max(begun))),
            refused,
            without: share(&without.bins[at][bins.len() - LAST..]),
            worse,
            changes: story.changes.iter().filter(|change| change.key == at).count(),
            shards: changed.contains(&at).then(|| {
                let own = own_loads(scene, story, at);
                let least = least(scene, at, &loads[usize::from(key.index)], &own);
                (story.slots[at].len(), least)
            }),
        };
        let name = &key.name;
        let of_last = |bins: &[(u32, u32)]| share(&bins[bins.len() - LAST..]);
        verdict.limited += usize::from(of_last(&story.bins[at]) - refused >= BURNS);
        // A small key beside one that cannot be helped is not worth a move of its own.
        let is_beside = is_small(scene, at) && beside_fixed(scene, story, at);
        if key.role != Role::Fixed && !is_beside {
            if refused >= BURNS {
                let why =
                    story.left.get(&at).map_or(String::new(), |(reason, why)| format!(": {reason:?}: {why}"));
                verdict.stay += 1;
                verdict.causes.push(of_stay(scene, story, at));
                verdict.wrong.push(format!("{name} stays refused: {:.1} %{why}", refused * 100.0));
            }
            if let Some((begun, over)) = fate.burned {
                first = first.min(begun);
                last = last.max(Some(over));
                verdict.slowest = verdict.slowest.max(Some(over - begun));
            }
        }
        if let Some(seconds) = worse {
            verdict.worse += 1;
            let begins = runs.windows(seconds).position(|run| run.iter().all(|is_worse| *is_worse));
            verdict.causes.push(of_worse(scene, story, at, begins.unwrap_or_default()));
            verdict.wrong.push(format!("{name} was made worse for {seconds} s"));
        }
        if changed.contains(&at) {
            let ever = begun.is_some();
            if !ever || key.role == Role::Fixed {
                verdict.wrong.push(format!("{name} was changed without need"));
            }
        }
        if let Some((shards, least)) = fate.shards {
            let ratio = shards as f64 / least.max(1) as f64;
            verdict.ratios.push(ratio);
            if ratio > 3.0 {
                let reads = scene.asks.iter().any(|ask| ask.key == at && matches!(ask.act, Act::Query(_)));
                let told = if scene.told { "told" } else { "not told" };
                let what = if reads { "of pages" } else { "of others" };
                verdict.causes.push(format!("too many shards: {what}, {told}"));
                verdict.wrong.push(format!("{name} has {shards} shards, and {least} are enough"));
            }
        }
        verdict.fates.push(fate);
    }
    verdict.relief = last.map(|last| last.saturating_sub(first));
    verdict
}
