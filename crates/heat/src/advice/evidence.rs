//! How much a key asks for, by what was counted and by what its partition refused.
//!
//! A partition that refuses takes as much as its ceiling. So a key that is alone there and of which
//! the share s is refused asks for ceiling ÷ (1 − s), whatever was counted: units of updates, of
//! old gateways or of batches may be counted too low. Requests that are tried again are taken as
//! asked for again, so that the figure is at least what clients need.
//!
//! Not here: which other keys lie on the partition (`policy`).

use super::limits::{NEAR, THROTTLED};
use super::observed::Observed;
use crate::{PARTITION_READS, PARTITION_WRITES};

/// From this share on, a key is not alone: that much less than its partition takes was counted of
/// it.
const ALONE: f64 = 0.85;
/// No refused share above this one is reckoned with: it would be a hundred times the ceiling.
const MOST_REFUSED: f64 = 0.99;

/// What a partition with that ceiling is asked for, of which that share is refused.
pub(crate) fn asked_of(ceiling: f64, refused: f64) -> f64 {
    ceiling / (1.0 - refused.clamp(0.0, MOST_REFUSED))
}

/// Whether so many units are all that a partition is asked for.
pub(crate) fn is_alone(units: f64, asked: f64) -> bool {
    units >= ALONE * asked
}

impl Observed {
    /// Write units a second that it asks for, by both.
    pub fn asked_writes(&self) -> f64 {
        self.asked(self.peak_writes.max(self.writes), self.writes_by_partition, PARTITION_WRITES)
    }

    /// Read units a second that it asks for, by both.
    pub fn asked_reads(&self) -> f64 {
        self.asked(self.reads, self.reads_by_partition, PARTITION_READS)
    }

    /// Of these: by requests for single items.
    pub(super) fn asked_gets(&self) -> f64 {
        if self.reads > 0.0 { self.asked_reads() * (self.gets / self.reads).min(1.0) } else { 0.0 }
    }

    fn asked(&self, counted: f64, refused: f64, ceiling: f64) -> f64 {
        if refused < THROTTLED || self.shards > 1 {
            return counted;
        }
        counted.max(asked_of(ceiling, refused) - self.beside)
    }

    /// Which share of a partition's write units and read units the key's busiest partition is asked
    /// for, if no two of its shards share one.
    pub(super) fn filled(&self) -> (f64, f64) {
        let shards = f64::from(self.shards.max(1));
        (self.asked_writes() / shards / PARTITION_WRITES, self.asked_reads() / shards / PARTITION_READS)
    }

    /// The same load, at least.
    fn least(&self) -> Observed {
        let less = |rate: f64, error: f64| (rate - error).max(0.0);
        Observed {
            writes: less(self.writes, self.write_error),
            peak_writes: less(self.peak_writes, self.write_error),
            reads: less(self.reads, self.read_error),
            ..*self
        }
    }

    /// Whether it is certainly near a ceiling, or over one.
    pub fn is_hot(&self) -> bool {
        let least = self.least();
        let (writes, reads) = least.filled();
        writes.max(reads) >= NEAR || (self.throttled >= THROTTLED && least.writes + least.reads >= 1.0)
    }

    /// Whether a partition refuses it.
    pub(crate) fn is_refused_by_partition(&self) -> bool {
        self.writes_by_partition.max(self.reads_by_partition) >= THROTTLED
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_refused_beats_what_was_counted() {
        // An update of an item of 60 KB that was counted as one unit: 30 of 1,770 units.
        let seen = Observed { writes: 30.0, writes_by_partition: 0.435, shards: 1, ..Observed::default() };
        assert!((1_760.0..1_780.0).contains(&seen.asked_writes()), "{}", seen.asked_writes());
        let read = Observed { reads: 100.0, reads_by_partition: 0.25, shards: 1, ..Observed::default() };
        assert!((read.asked_reads() - 4_000.0).abs() < 1e-9);
        let beside = Observed { beside: 900.0, writes: 500.0, writes_by_partition: 0.3, ..seen };
        assert!((beside.asked_writes() - 528.6).abs() < 0.1, "{}", beside.asked_writes());
    }

    proptest! {
        /// Whatever a key asks for alone on its partition: evidence finds it, from what is served
        /// and refused, even if a tenth of the units is counted.
        #[test]
        fn evidence_finds_what_is_asked_for(asked in 1_020.0..50_000.0f64, counted in 0.1..1.0f64) {
            let refused = 1.0 - PARTITION_WRITES / asked;
            let seen = Observed { writes: asked * counted, writes_by_partition: refused, shards: 1, ..Observed::default() };
            prop_assert!((seen.asked_writes() / asked - 1.0).abs() < 1e-6);
            prop_assert!(is_alone(asked, asked_of(PARTITION_WRITES, refused)));
        }
    }
}
