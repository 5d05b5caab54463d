//! How many requests of one key were throttled in a window, by reason, and how many of them for
//! certain: one that was drawn may stand for many, and be the only one.
//!
//! Not here: how a reason is read from an answer (`gateway`).

use super::access::{Outcome, REASONS};
use super::bounds::Drawn;

/// The counts of one key, by the places of [`REASONS`]. A window has less than 2^32 requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RefusalCounts {
    counts: [Count; REASONS.len()],
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Count {
    all: u32,
    /// Of these: what was drawn, and stands for others.
    drawn: u32,
    /// The most that one of them stands for.
    weight: u32,
}

/// Requests a second that were throttled.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Refusals {
    /// By the draws: the number that is expected.
    pub per_s: f64,
    /// So many for certain, in 99.8 % of windows.
    pub least_per_s: f64,
    /// How many of those that were counted: one that is drawn is one.
    pub counted_per_s: f64,
}

/// Requests a second of one key that were throttled, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RefusedRates {
    /// For any reason.
    pub all: Refusals,
    /// Because of the limit of the partition that the key is on.
    pub by_partition: Refusals,
    /// Because of a partition elsewhere: [`Outcome::ThrottledByIndex`].
    pub by_index: Refusals,
    /// Because of the capacity or the maximum that was set for the table or the index.
    pub by_maximum: Refusals,
    /// Because of the account's limit.
    pub by_account: Refusals,
}

impl RefusalCounts {
    /// Counts an access with that outcome.
    #[inline]
    pub(super) fn add(&mut self, outcome: Outcome, weight: u32) {
        let Some(count) = outcome.reason().and_then(|reason| self.counts.get_mut(reason)) else { return };
        count.add(Count { all: weight, drawn: if weight > 1 { weight } else { 0 }, weight });
    }

    /// Of a window of so many milliseconds.
    pub(super) fn rates(&self, millis: u64) -> RefusedRates {
        let mut all = Count::default();
        self.counts.iter().for_each(|count| all.add(*count));
        let of = |outcome: Outcome| {
            let count = outcome.reason().and_then(|reason| self.counts.get(reason));
            count.map_or_else(Refusals::default, |count| count.rates(millis))
        };
        RefusedRates {
            all: all.rates(millis),
            by_partition: of(Outcome::ThrottledByPartition),
            by_index: of(Outcome::ThrottledByIndex),
            by_maximum: of(Outcome::ThrottledByMaximum),
            by_account: of(Outcome::ThrottledByAccount),
        }
    }
}

impl Count {
    fn add(&mut self, more: Count) {
        self.all = self.all.saturating_add(more.all);
        self.drawn = self.drawn.saturating_add(more.drawn);
        self.weight = self.weight.max(more.weight);
    }

    #[allow(clippy::cast_precision_loss, reason = "milliseconds")]
    fn rates(self, millis: u64) -> Refusals {
        let seconds = millis.max(1) as f64 / 1_000.0;
        let (drawn, one) = (f64::from(self.drawn), f64::from(self.weight));
        let drawn = Drawn { units: drawn, variance: drawn * one, one };
        let all = f64::from(self.all);
        // Where some stand for more than others these are too few.
        let counted = f64::from(self.all - self.drawn) + drawn.units / f64::from(self.weight.max(1));
        Refusals {
            per_s: all / seconds,
            least_per_s: (all - drawn.below()).max(0.0) / seconds,
            counted_per_s: counted / seconds,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_draw_of_many_is_no_evidence_and_many_draws_are() {
        let mut counts = RefusalCounts::default();
        counts.add(Outcome::ThrottledByPartition, 256);
        let one = counts.rates(1_000);
        assert!((one.all.per_s - 256.0).abs() < 1e-9 && one.by_partition.least_per_s < 1.0, "{one:?}");
        (0..99).for_each(|_| counts.add(Outcome::ThrottledByPartition, 256));
        let many = counts.rates(1_000).by_partition;
        assert!(many.least_per_s > 0.7 * many.per_s, "{many:?}");
    }

    #[test]
    fn reasons_are_told_apart_and_what_is_counted_is_certain() {
        let mut counts = RefusalCounts::default();
        for (outcome, times) in REASONS.into_iter().zip(1..) {
            (0..times).for_each(|_| counts.add(outcome, 1));
        }
        counts.add(Outcome::Done, 1);
        let rates = counts.rates(500);
        let all = [rates.all, rates.by_partition, rates.by_index, rates.by_maximum, rates.by_account];
        assert_eq!(all.map(|one| one.per_s), [30.0, 4.0, 6.0, 8.0, 10.0]);
        assert!(all.iter().all(|one| one.per_s == one.least_per_s), "{all:?}");
    }
}
