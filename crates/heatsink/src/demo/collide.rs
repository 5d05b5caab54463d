//! Two shards can meet on one partition. Which do, and how likely that is.
//!
//! A shard is a key like any other: its place is a hash. N keys thrown onto P equal partitions meet more often than people
//! expect (the birthday problem), so N = peak / 1,000 leaves no room.

/// Groups of shards that share a partition, the largest group first. `positions` are the shards' places on the number line,
/// `partitions` how many equal ranges it is cut into.
pub fn meetings(positions: &[u64], partitions: usize) -> Vec<Vec<usize>> {
    let mut groups: Vec<(usize, Vec<usize>)> = Vec::new();
    for (shard, position) in positions.iter().enumerate() {
        let at = range_of(*position, partitions);
        match groups.iter_mut().find(|(range, _)| *range == at) {
            Some((_, group)) => group.push(shard),
            None => groups.push((at, vec![shard])),
        }
    }
    let mut met: Vec<Vec<usize>> =
        groups.into_iter().map(|(_, group)| group).filter(|group| group.len() > 1).collect();
    met.sort_by_key(|group| std::cmp::Reverse(group.len()));
    met
}

fn range_of(position: u64, partitions: usize) -> usize {
    let range = (u128::from(position) * partitions as u128) >> 64;
    usize::try_from(range).unwrap_or(0)
}

/// The probability that some partition holds at least `together` of `shards` keys, over all ways to hash the keys onto
/// `partitions` equal ranges. Exact: one minus N! × [x^N] (Σ_{j<together} x^j / j!)^P ÷ P^N.
pub fn probability(shards: u32, partitions: u32, together: u32) -> f64 {
    if together <= 1 || partitions == 0 {
        return 1.0;
    }
    let n = shards as usize;
    // ways[k]: the weight of k shards on the partitions so far. Scaled by k! / P^k as we go, so that it stays in range.
    let mut ways = vec![0.0; n + 1];
    ways[0] = 1.0;
    let share = 1.0 / f64::from(partitions);
    for _ in 0..partitions {
        let mut next = vec![0.0; n + 1];
        for (held, weight) in ways.iter().enumerate() {
            let mut term = 1.0;
            for more in 0..(together as usize).min(n + 1 - held) {
                if more > 0 {
                    // Choose which of the held + more shards are the new ones, each here with probability 1/P.
                    #[allow(clippy::cast_precision_loss, reason = "shard counts are small")]
                    {
                        term *= (held + more) as f64 / more as f64 * share;
                    }
                }
                next[held + more] += weight * term;
            }
        }
        ways = next;
    }
    (1.0 - ways[n]).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_birthday_problem() {
        // 23 people, 365 days: 50.7 %.
        assert!((probability(23, 365, 2) - 0.5073).abs() < 1e-4);
        assert!(probability(10, 60, 2) > probability(10, 60, 3));
        assert!((probability(3, 2, 2) - 1.0).abs() < 1e-12);
        assert!(probability(2, 60, 3).abs() < 1e-12);
    }

    #[test]
    fn meeting_shards_are_named() {
        let third = u64::MAX / 3;
        assert_eq!(meetings(&[0, third + 2, 5, u64::MAX], 3), vec![vec![0, 2]]);
        assert!(meetings(&[0, third + 2, u64::MAX], 3).is_empty());
    }
}
