//! What ought to come of a load, against what came: every key that sharding can help is relieved,
//! no other is touched, none is made worse, and no key gets many more shards than it needs.
//!
//! Whether a change made a key worse is told by the same load without the policy.

use std::collections::BTreeSet;

use crate::ground::{Ground, partition};
use crate::scene::{Asked, Role, Scene};
use crate::world::Story;

/// A key burns while more than this share of it is refused, over [`SPAN`] seconds.
const BURNS: f64 = 0.01;
const SPAN: usize = 3;
/// A key is worse by a change if more than so much more is refused, for more than so many seconds.
const WORSE: f64 = 0.02;
const WORSE_SECONDS: usize = 5;
/// In the last seconds all has to be well.
const LAST: usize = 10;

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

/// Whether less is asked of a key than is worth a move.
fn is_small(scene: &Scene, at: usize) -> bool {
    scene.asked(at).filled(1.0) < 0.1
}

/// Whether a key lies where one lies that nothing helps.
fn beside_fixed(scene: &Scene, story: &Story, at: usize) -> bool {
    let places = |at: usize| own_loads(scene, story, at).into_iter().map(|(partition, _)| partition);
    let fixed = (0..scene.keys.len()).filter(|other| scene.keys[*other].role == Role::Fixed);
    let taken: BTreeSet<usize> = fixed.flat_map(places).collect();
    !scene.keys[at].index && places(at).any(|partition| taken.contains(&partition))
}

fn share(bins: &[(u32, u32)]) -> f64 {
    let (asked, refused) = bins.iter().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    f64::from(refused) / f64::from(asked.max(1))
}

pub fn judge(scene: &Scene, story: &Story, without: &Story) -> Verdict {
    let mut verdict = Verdict {
        fates: Vec::new(),
        wrong: Vec::new(),
        relief: None,
        slowest: None,
        ratios: Vec::new(),
        worse: 0,
    };
    let changed: BTreeSet<usize> = story.changes.iter().map(|change| change.key).collect();
    let loads = [loads(scene, story, false), loads(scene, story, true)];
    let (mut first, mut last) = (usize::MAX, None);
    for (at, key) in scene.keys.iter().enumerate() {
        let bins = &story.bins[at];
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
                let least = least(scene.asked(at), &loads[usize::from(key.index)], &own);
                (story.slots[at].len(), least)
            }),
        };
        let name = &key.name;
        // A small key beside one that cannot be helped is not worth a move of its own.
        let is_beside = is_small(scene, at) && beside_fixed(scene, story, at);
        if key.role != Role::Fixed && !is_beside {
            if refused >= BURNS {
                let why =
                    story.left.get(&at).map_or(String::new(), |(reason, why)| format!(": {reason:?}: {why}"));
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
                verdict.wrong.push(format!("{name} has {shards} shards, and {least} are enough"));
            }
        }
        verdict.fates.push(fate);
    }
    verdict.relief = last.map(|last| last.saturating_sub(first));
    verdict
}

/// What each partition is asked for in the end, as a share of its ceiling by kind.
fn loads(scene: &Scene, story: &Story, index: bool) -> Vec<Asked> {
    let mut ground = Ground::new(scene.partitions, scene.indexed);
    let mut loads = vec![Asked::default(); ground.firsts[usize::from(index)].len()];
    for (at, key) in scene.keys.iter().enumerate().filter(|(_, key)| key.index == index) {
        let asked = scene.asked(at);
        let slots = &story.slots[at];
        for slot in slots {
            let place = ground.place(&key.name, *slot);
            let load = &mut loads[partition(&ground.firsts[usize::from(index)], place)];
            let part = 1.0 / slots.len() as f64;
            load.writes += asked.writes * part;
            load.strong += asked.strong * part;
            load.eventual += asked.eventual * part;
        }
    }
    loads
}

/// What one key asks of each partition.
fn own_loads(scene: &Scene, story: &Story, at: usize) -> Vec<(usize, f64)> {
    let mut ground = Ground::new(scene.partitions, scene.indexed);
    let key = &scene.keys[at];
    let slots = &story.slots[at];
    let part = 1.0 / slots.len() as f64;
    slots
        .iter()
        .map(|slot| {
            let place = ground.place(&key.name, *slot);
            (partition(&ground.firsts[usize::from(key.index)], place), part)
        })
        .collect()
}

/// The least number of shards that fit into the partitions with the least others. A partition is
/// reckoned to take what DynamoDB promises: 3,000 read units, of whatever reads.
fn least(asked: Asked, loads: &[Asked], own: &[(usize, f64)]) -> usize {
    let mut others = loads.to_vec();
    for (partition, part) in own {
        let load = &mut others[*partition];
        load.writes -= asked.writes * part;
        load.strong -= asked.strong * part;
        load.eventual -= asked.eventual * part;
    }
    others.sort_by(|a, b| a.filled(1.0).total_cmp(&b.filled(1.0)));
    let fits = |shards: usize, other: &Asked| {
        let part = 1.0 / shards as f64;
        let sum = Asked {
            writes: other.writes + asked.writes * part,
            strong: other.strong + asked.strong * part,
            eventual: other.eventual + asked.eventual * part,
        };
        (sum.writes / 1_000.0).max((sum.strong + sum.eventual) / 3_000.0) <= 1.0
    };
    (1..=others.len()).find(|shards| fits(*shards, &others[shards - 1])).unwrap_or(others.len())
}
