//! The load on one partition: the units that it admitted, and those that it refused at its own
//! ceiling.
//!
//! Not here: refusals by the table's or index's bucket. They say nothing about the partition.

use crate::ceilings::{PARTITION_READS, PARTITION_WRITES};
use crate::demand::Access;
use crate::units::Units;

/// Capacity units requested from one partition since the start, admitted or refused at its own
/// ceiling.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PartitionLoad {
    /// By strongly consistent reads.
    pub strong: f64,
    /// By eventually consistent reads.
    pub eventual: f64,
    /// By writes.
    pub writes: f64,
    /// Requests refused at its own ceiling.
    pub refused: u64,
}

impl PartitionLoad {
    /// The load since `earlier`.
    pub fn since(&self, earlier: &PartitionLoad) -> PartitionLoad {
        let more = |now: f64, then: f64| (now - then).max(0.0);
        PartitionLoad {
            strong: more(self.strong, earlier.strong),
            eventual: more(self.eventual, earlier.eventual),
            writes: more(self.writes, earlier.writes),
            refused: self.refused.saturating_sub(earlier.refused),
        }
    }

    /// The rate over `seconds` as a share of the ceiling that it is nearest to: 1 is full. Three
    /// nodes answer reads, each 3,000 of up to 4 KB a second; only one of them answers the strongly
    /// consistent ones.
    pub fn of_ceiling(&self, seconds: f64) -> f64 {
        let node = PARTITION_READS as f64 * seconds;
        let reads = (self.strong + 2.0 * self.eventual) / (3.0 * node);
        (self.strong / node).max(reads).max(self.writes / (PARTITION_WRITES as f64 * seconds))
    }
}

/// A partition load in billionths of units, as it is counted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LoadCounter {
    billionths: [u64; 3],
    refused: u64,
}

impl LoadCounter {
    #[inline]
    pub(crate) fn take(&mut self, access: Access, billionths: u64) {
        let sum = &mut self.billionths[access as usize];
        *sum = sum.saturating_add(billionths);
    }

    pub(crate) fn refuse(&mut self, access: Access, units: Units, count: u64) {
        self.take(access, units.billionths().saturating_mul(count));
        self.refused = self.refused.saturating_add(count);
    }

    pub(crate) fn take_back(&mut self, access: Access, billionths: u64) {
        let sum = &mut self.billionths[access as usize];
        *sum = sum.saturating_sub(billionths);
    }

    pub(crate) fn load(&self) -> PartitionLoad {
        let units = |access: Access| self.billionths[access as usize] as f64 / 1e9;
        PartitionLoad {
            strong: units(Access::Strong),
            eventual: units(Access::Eventual),
            writes: units(Access::Write),
            refused: self.refused,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_ceiling_is_one() {
        let asked = |strong, eventual, writes| PartitionLoad { strong, eventual, writes, refused: 0 };
        for full in [
            asked(30_000.0, 0.0, 0.0),
            asked(0.0, 45_000.0, 0.0),
            asked(30_000.0, 30_000.0, 0.0),
            asked(0.0, 0.0, 10_000.0),
            asked(30_000.0, 0.0, 10_000.0),
        ] {
            assert!((full.of_ceiling(10.0) - 1.0).abs() < 1e-9, "{full:?}");
            assert!((full.of_ceiling(5.0) - 2.0).abs() < 1e-9, "{full:?}");
        }
        assert_eq!(asked(1.0, 2.0, 3.0).since(&asked(0.5, 2.0, 4.0)), asked(0.5, 0.0, 0.0));
    }
}
