//! Capacity units, counted in billionths so that integers are exact.

use std::ops::{Add, AddAssign};

/// An amount of read or write capacity. Kept in billionths of a unit: a rate of one unit per second
/// is then one billionth per nanosecond, and no bucket ever rounds.
///
/// Holds up to 18 billion units; sums saturate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Units(u64);

impl Units {
    /// Nothing.
    pub const ZERO: Units = Units(0);
    /// One unit.
    pub const ONE: Units = Units(1_000_000_000);
    /// Half a unit: an eventually consistent read of up to 4 KB
    /// (docs/explain/partitions.md#sources).
    pub const HALF: Units = Units(500_000_000);

    /// Whole units.
    pub const fn whole(count: u64) -> Units {
        Units(count.saturating_mul(Units::ONE.0))
    }

    /// From a figure as it stands in `ConsumedCapacity`; nothing for what is no amount (negative,
    /// not a number).
    pub fn from_f64(figure: f64) -> Units {
        #[allow(
            clippy::cast_possible_truncation,
            reason = "a float to integer cast saturates, and NaN becomes 0"
        )]
        Units((figure * 1e9).round() as u64)
    }

    /// In units, for display.
    pub fn to_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// From billionths of a unit.
    pub const fn from_billionths(billionths: u64) -> Units {
        Units(billionths)
    }

    /// In billionths of a unit.
    pub const fn billionths(self) -> u64 {
        self.0
    }

    /// `self` less `other`; nothing if `other` is more.
    pub const fn less(self, other: Units) -> Units {
        Units(self.0.saturating_sub(other.0))
    }

    /// `count` times as much.
    pub const fn times(self, count: u64) -> Units {
        Units(self.0.saturating_mul(count))
    }

    /// Share `nth` of `self` divided over `count`: shares add up to `self` exactly, the first ones
    /// are the larger.
    pub(crate) fn share(self, nth: usize, count: usize) -> Units {
        let (nth, count) = (nth as u64, (count as u64).max(1));
        Units(self.0 / count + u64::from(nth < self.0 % count))
    }

    /// `self` divided over `count`, in equal shares that add up to it to the last billionth.
    pub fn shares(self, count: usize) -> impl Iterator<Item = Units> {
        (0..count).map(move |nth| self.share(nth, count))
    }
}

impl Add for Units {
    type Output = Units;
    fn add(self, other: Units) -> Units {
        Units(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Units {
    fn add_assign(&mut self, other: Units) {
        *self = *self + other;
    }
}

impl std::iter::Sum for Units {
    fn sum<I: Iterator<Item = Units>>(units: I) -> Units {
        units.fold(Units::ZERO, Add::add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wire_figures_are_exact() {
        assert_eq!(Units::from_f64(0.5), Units::HALF);
        assert_eq!(Units::from_f64(128.5), Units::whole(128) + Units::HALF);
        assert_eq!(Units::from_f64(-1.0), Units::ZERO);
        assert_eq!(Units::from_f64(f64::NAN), Units::ZERO);
    }

    #[test]
    fn shares_add_up() {
        for count in 1..70 {
            assert_eq!(Units::from_f64(128.5).shares(count).sum::<Units>(), Units::from_f64(128.5));
        }
    }
}
