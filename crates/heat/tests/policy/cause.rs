//! Why a key is not as it ought to be, by where keys lie in truth: for the tally of many seeds.
//!
//! Not here: what is wrong (`judge`).

use crate::filled::{beside_fixed, is_small, loads, own_loads};
use crate::judge::LAST;
use crate::scene::Scene;
use crate::world::Story;

/// A change is under way for so many milliseconds after it was decided.
const UNDER_WAY: u64 = 6_000;

fn kind(scene: &Scene, at: usize) -> String {
    let told = if scene.told { "told" } else { "not told" };
    let what = match (scene.keys[at].index, is_small(scene, at)) {
        (true, _) => "value of an index",
        (false, true) => "small key",
        (false, false) => "key",
    };
    format!("{told}, {what}")
}

/// Why it is still refused.
pub fn of_stay(scene: &Scene, story: &Story, at: usize) -> String {
    let filled = loads(scene, story, scene.keys[at].index);
    let own = own_loads(scene, story, at);
    let fullest = own.iter().map(|(partition, _)| filled[*partition].filled(1.0)).fold(0.0, f64::max);
    let of_last = |change: u64| change + UNDER_WAY >= (scene.seconds - LAST as u64) * 1_000;
    let is_new = story.changes.iter().any(|change| change.key == at && of_last(change.at));
    let why = if beside_fixed(scene, story, at) {
        "beside a key that nothing helps".to_owned()
    } else if is_new {
        "changed of late".to_owned()
    } else if fullest < 1.0 {
        "its partitions are not full in the end".to_owned()
    } else if fullest < 1.05 {
        "its partitions are full by less than a twentieth".to_owned()
    } else {
        format!("its partition is full: {:?}", story.left.get(&at).map(|(reason, _)| *reason))
    };
    format!("stays: {}: {why}", kind(scene, at))
}

/// Why it became worse from that second on.
pub fn of_worse(scene: &Scene, story: &Story, at: usize, second: usize) -> String {
    let begins = second as u64 * 1_000;
    let just = |change: u64| (begins.saturating_sub(10_000)..begins + 2_000).contains(&change);
    let own = story.changes.iter().any(|change| change.key == at && just(change.at));
    let others = story.changes.iter().any(|change| change.key != at && just(change.at));
    let why = match (own, others) {
        (true, _) => "by its own change",
        (false, true) => "by another key's change",
        (false, false) => "by no change",
    };
    format!("worse: {}: {why}", kind(scene, at))
}
