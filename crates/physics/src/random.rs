//! A small random number generator, so that one seed gives the same run on every machine and in
//! every version.

/// splitmix64: one word of state, no dependency, and good enough to jitter delays and to pick
/// samples.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn seeded(seed: u64) -> Self {
        Random(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    /// Evenly from `from` up to, not including, `to`; `from` if the range is empty.
    pub(crate) fn between(&mut self, from: u64, to: u64) -> u64 {
        let width = u128::from(to.saturating_sub(from));
        let offset = (u128::from(self.next()) * width) >> 64;
        from.saturating_add(u64::try_from(offset).unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn within_the_range_and_repeatable() {
        let mut random = Random::seeded(7);
        let drawn: Vec<u64> = (0..1_000).map(|_| random.between(300, 480)).collect();
        assert!(drawn.iter().all(|value| (300..480).contains(value)));
        assert!(drawn.iter().any(|value| *value < 310) && drawn.iter().any(|value| *value >= 470));
        let mut again = Random::seeded(7);
        assert_eq!(drawn[0], again.between(300, 480));
        assert_eq!(again.between(5, 5), 5);
    }
}
