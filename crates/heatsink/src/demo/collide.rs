//! Two shards can meet on one partition: a shard is a key like any other, and its place is a hash. Here is which of a title's do.
//!
//! Not here: how likely that is over all names (`heatsink_heat::some_partition_holds`).

/// Groups of shards that share a partition, the largest group first. `positions` are the shards' places on the number line,
/// `firsts` where the partitions begin, in order.
pub fn meetings(positions: &[u64], firsts: &[u64]) -> Vec<Vec<usize>> {
    let mut groups: Vec<(usize, Vec<usize>)> = Vec::new();
    for (shard, position) in positions.iter().enumerate() {
        let at = firsts.partition_point(|first| first <= position);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meeting_shards_are_named() {
        let third = u64::MAX / 3;
        let equal = [0, third, 2 * third];
        assert_eq!(meetings(&[0, third + 2, 5, u64::MAX], &equal), vec![vec![0, 2]]);
        assert!(meetings(&[0, third + 2, u64::MAX], &equal).is_empty());
        // A range that was split for heat is narrower than the others.
        assert_eq!(meetings(&[0, third + 2, 5, u64::MAX], &[0, 5, u64::MAX]), vec![vec![1, 2]]);
    }
}
