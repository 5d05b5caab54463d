//! What partitions are asked for by where keys lie in the end, and the fewest shards that fit.
//!
//! Not here: what follows from it (`judge`, `cause`).

use std::collections::BTreeSet;

use crate::ground::{Ground, partition};
use crate::scene::{Asked, Role, Scene};
use crate::world::Story;

/// Whether less is asked of a key than is worth a move.
pub fn is_small(scene: &Scene, at: usize) -> bool {
    scene.asked(at).filled(1.0) < 0.1
}

/// Whether a key lies where one lies that nothing helps.
pub fn beside_fixed(scene: &Scene, story: &Story, at: usize) -> bool {
    let places = |at: usize| own_loads(scene, story, at).into_iter().map(|(partition, _)| partition);
    let fixed = (0..scene.keys.len()).filter(|other| scene.keys[*other].role == Role::Fixed);
    let taken: BTreeSet<usize> = fixed.flat_map(places).collect();
    !scene.keys[at].index && places(at).any(|partition| taken.contains(&partition))
}

/// What is asked of a key with so many shards: of ranges as of a whole key.
fn asked_of(scene: &Scene, at: usize, shards: usize) -> Asked {
    scene.asked_over(at, if scene.ranges { 1 } else { shards })
}

/// What each partition is asked for in the end, as a share of its ceiling by kind.
pub fn loads(scene: &Scene, story: &Story, index: bool) -> Vec<Asked> {
    let mut ground = Ground::new(scene.partitions, scene.indexed);
    let mut loads = vec![Asked::default(); ground.firsts[usize::from(index)].len()];
    for (at, key) in scene.keys.iter().enumerate().filter(|(_, key)| key.index == index) {
        let slots = &story.slots[at];
        let asked = asked_of(scene, at, slots.len());
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
pub fn own_loads(scene: &Scene, story: &Story, at: usize) -> Vec<(usize, f64)> {
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
pub fn least(scene: &Scene, at: usize, loads: &[Asked], own: &[(usize, f64)]) -> usize {
    let mut others = loads.to_vec();
    let asked = asked_of(scene, at, own.len());
    for (partition, part) in own {
        let load = &mut others[*partition];
        load.writes -= asked.writes * part;
        load.strong -= asked.strong * part;
        load.eventual -= asked.eventual * part;
    }
    others.sort_by(|a, b| a.filled(1.0).total_cmp(&b.filled(1.0)));
    let fits = |shards: usize, other: &Asked| {
        let asked = asked_of(scene, at, shards);
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
