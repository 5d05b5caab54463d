//! The least shard count that relieves a key: by what is asked of it, and the real partitions with
//! what else lies in them.
//!
//! Not here: what the policy chooses (`heatsink-heat`).

/// The least number of equal shards of `units` a second that fit below `ceiling` when each is laid
/// in one of the partitions with the least `others`; `None` where no number does.
pub fn least(units: f64, others: &[f64], ceiling: f64) -> Option<u16> {
    let mut others = others.to_vec();
    others.sort_by(f64::total_cmp);
    let fits =
        |(shards, other): (u16, &f64)| (other + units / f64::from(shards) <= ceiling).then_some(shards);
    (1..).zip(&others).find_map(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_go_where_it_is_cool() {
        assert_eq!(least(1_100.0, &[0.0; 60], 1_000.0), Some(2));
        assert_eq!(least(700.0, &[700.0, 0.0], 1_000.0), Some(1));
        assert_eq!(least(1_100.0, &[0.0, 600.0, 600.0], 1_000.0), Some(3));
        assert_eq!(least(5_000.0, &[0.0; 3], 1_000.0), None);
    }
}
