//! Two shards can meet on one partition: a shard is a key like any other, and its place is a hash. Here is which of a title's do.
//!
//! Not here: how likely that is over all names (`heatsink_heat::some_partition_holds`).

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meeting_shards_are_named() {
        let third = u64::MAX / 3;
        assert_eq!(meetings(&[0, third + 2, 5, u64::MAX], 3), vec![vec![0, 2]]);
        assert!(meetings(&[0, third + 2, u64::MAX], 3).is_empty());
    }
}
