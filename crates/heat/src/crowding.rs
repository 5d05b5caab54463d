//! Shards of one key that share a partition: which they are, and the probability over all key
//! names.
//!
//! Shards are keys, and keys are hashed onto partitions: N shards over P partitions are N balls
//! thrown into P bins.
//!
//! Not here: the position of a key and the ranges of partitions (`heatsink-physics`).

use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The groups of shards that share a partition, the largest group first. `positions` are the
/// shards' places on the line of hashes, by shard; `firsts` are the first places of the partitions,
/// in order.
pub fn sharing_a_partition(positions: &[u64], firsts: &[u64]) -> Vec<Vec<usize>> {
    let mut groups: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (shard, position) in positions.iter().enumerate() {
        let partition = firsts.partition_point(|first| first <= position);
        groups.entry(partition).or_default().push(shard);
    }
    let mut shared: Vec<Vec<usize>> = groups.into_values().filter(|group| group.len() > 1).collect();
    // Equally large groups stay in the order of their first shards.
    shared.sort_by_key(|group| (Reverse(group.len()), group.first().copied()));
    shared
}

/// The probability that at least one of `partitions` equal ranges holds `together` or more of
/// `shards`, each of which is equally likely on any of them. Exact except for rounding.
///
/// Counted by bins with Poisson weights, so that no number on the way is large or small: the
/// probability that no bin holds as many, given that all together hold `shards`.
pub fn some_partition_holds(shards: u16, partitions: u32, together: u32) -> f64 {
    let shards = usize::from(shards);
    if together == 0 || shards == 0 || partitions == 0 {
        return 1.0;
    }
    let together = usize::try_from(together).unwrap_or(usize::MAX);
    if together > shards {
        return 0.0;
    }
    // Some bin holds one; and where all bins are as full as they may be, one shard more is too
    // many. Both without counting.
    let room = usize::try_from(partitions).unwrap_or(usize::MAX).saturating_mul(together - 1);
    if together == 1 || shards > room {
        return 1.0;
    }
    let mean = count(shards) / f64::from(partitions);
    let all = sum_of(poisson(mean, shards), partitions, shards);
    let mut few = poisson(mean, shards);
    few.iter_mut().skip(together).for_each(|weight| *weight = 0.0);
    let few = sum_of(few, partitions, shards);
    (1.0 - few / all).clamp(0.0, 1.0)
}

/// A lower bound of [`some_partition_holds`] that is close to it and quick to compute.
///
/// Bins that share the same balls are negatively associated (Joag-Dev and Proschan, "Negative
/// Association of Random Variables", 1983), so that none holds as many is at most as likely as if
/// each were on its own.
pub(crate) fn at_least(shards: u16, partitions: u32, together: u32) -> f64 {
    let (balls, bins) = (f64::from(shards), f64::from(partitions));
    if partitions <= 1 || together > u32::from(shards) {
        return 0.0;
    }
    let mut weight = ((1.0 - 1.0 / bins).ln() * balls).exp();
    let mut fewer = 0.0;
    for held in 0..together {
        fewer += weight;
        weight *= (balls - f64::from(held)) / f64::from(held + 1) / (bins - 1.0);
    }
    // Rounding is not to make a bound of nothing.
    (1.0 - fewer.powf(bins) - 1e-9).max(0.0)
}

/// The Poisson weights of 0 to `most`.
fn poisson(mean: f64, most: usize) -> Vec<f64> {
    let mut weights = Vec::with_capacity(most + 1);
    let mut weight = (-mean).exp();
    for number in 0..=most {
        weights.push(weight);
        weight *= mean / count(number + 1);
    }
    weights
}

/// The weight of `total` in the sum of `bins` independent numbers with these weights, by repeated
/// squaring.
fn sum_of(weights: Vec<f64>, bins: u32, total: usize) -> f64 {
    let mut sum = vec![0.0; total + 1];
    sum[0] = 1.0;
    let (mut power, mut left) = (weights, bins);
    while left > 0 {
        if left & 1 == 1 {
            sum = convolved(&sum, &power);
        }
        left >>= 1;
        if left > 0 {
            power = convolved(&power, &power);
        }
    }
    sum.get(total).copied().unwrap_or(0.0)
}

fn convolved(a: &[f64], b: &[f64]) -> Vec<f64> {
    let mut sum = vec![0.0; a.len()];
    for (at, left) in a.iter().enumerate().filter(|(_, left)| **left != 0.0) {
        for (to, right) in sum.iter_mut().skip(at).zip(b) {
            *to += left * right;
        }
    }
    sum
}

#[allow(clippy::cast_precision_loss, reason = "at most the shards of a key")]
fn count(number: usize) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn near(found: f64, expected: f64) -> bool {
        (found - expected).abs() < 1e-9
    }

    #[test]
    fn shards_of_one_partition_are_grouped() {
        let third = u64::MAX / 3;
        let equal = [0, third, 2 * third];
        assert_eq!(sharing_a_partition(&[0, third + 2, 5, u64::MAX], &equal), vec![vec![0, 2]]);
        assert!(sharing_a_partition(&[0, third + 2, u64::MAX], &equal).is_empty());
        // A range that was split for heat is narrower than the others.
        assert_eq!(sharing_a_partition(&[0, third + 2, 5, u64::MAX], &[0, 5, u64::MAX]), vec![vec![1, 2]]);
        // The largest group first, then by first shard.
        let two = [u64::MAX, 1, third + 1, u64::MAX - 1, 2, third + 2, third + 3];
        assert_eq!(sharing_a_partition(&two, &equal), vec![vec![2, 5, 6], vec![0, 3], vec![1, 4]]);
    }

    #[test]
    fn birthdays() {
        // 23 people, 365 days: the classic.
        let two = some_partition_holds(23, 365, 2);
        assert!((two - 0.507_297_234).abs() < 1e-8, "{two}");
        assert!(near(some_partition_holds(2, 4, 2), 0.25));
        assert!(near(some_partition_holds(5, 4, 2), 1.0), "five shards do not fit apart on four");
        assert!(near(some_partition_holds(3, 2, 3), 0.25));
        assert!(near(some_partition_holds(7, 1, 7), 1.0));
        assert!(near(some_partition_holds(7, 60, 8), 0.0));
    }

    #[test]
    fn the_most_shards_of_a_rule_are_counted_too() {
        let likely = some_partition_holds(1000, 600, 9);
        assert!((0.0..=1.0).contains(&likely) && likely > 0.0, "{likely}");
        assert!(some_partition_holds(1000, 10_000, 2) > 0.999_999);
    }

    proptest! {
        #[test]
        fn the_bound_is_below(shards in 1_u16..120, partitions in 1_u32..200, together in 1_u32..9) {
            let (found, bound) = (some_partition_holds(shards, partitions, together), at_least(shards, partitions, together));
            prop_assert!(bound <= found + 1e-9, "{bound} {found}");
        }

        #[test]
        fn it_is_what_throwing_shows(shards in 1_u16..30, partitions in 1_u32..40, together in 1_u32..6, seed: u64) {
            let mut rng = fastrand::Rng::with_seed(seed);
            let throws = 4_000;
            let hits = (0..throws)
                .filter(|_| {
                    let mut bins = vec![0; usize::try_from(partitions).unwrap()];
                    let bin = bins.len();
                    (0..shards).for_each(|_| bins[rng.usize(..bin)] += 1);
                    bins.into_iter().any(|held| held >= together)
                })
                .count();
            let found = some_partition_holds(shards, partitions, together);
            // Five standard deviations.
            let off = 5.0 * (found * (1.0 - found) / f64::from(throws)).sqrt() + 1e-9;
            prop_assert!((count(hits) / f64::from(throws) - found).abs() <= off + 0.002, "{found} {hits}");
        }
    }
}
