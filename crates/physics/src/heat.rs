//! Measures how hot a partition is, and samples the keys that cause it.

use crate::demand::Access;
use crate::key_position::KeyPosition;
use crate::random::Random;
use crate::units::Units;

/// Heat is judged over windows of 10 s.
pub(crate) const WINDOW: u64 = 10_000_000_000;

/// Heat of a partition at its ceiling over one window: see [`work`].
const FULL: u64 = 9_000 * 1_000 * (WINDOW / 1_000_000_000);

/// The samples of the last half minute or so at the ceiling; fewer seconds where much more is asked
/// for.
const KEPT: usize = 256;

/// One sample per this much heat on average: about nine a second at the ceiling.
const EVERY: u64 = 1_000 * 1_000;

/// A partition cooler than a quarter of its ceiling takes no samples: it is far from splitting.
const SAMPLED_FROM: u64 = 250;

/// One request that was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sample {
    pub point: KeyPosition,
    pub writes: bool,
}

/// The heat of `units`, in thousandths of a ninth of a write unit. Reads and writes add up (a third
/// of a write unit per strongly consistent read unit), because both are work for one node: a guess,
/// see docs/explain/partitions.md. An eventually consistent unit counts two thirds of that, because
/// three replicas share it (4,500 are a full partition).
#[inline]
pub(crate) fn work(access: Access, units: Units, linear: bool) -> u64 {
    let weight = match access {
        Access::Write => 9,
        Access::Strong => 3,
        Access::Eventual => 2 + u64::from(linear),
    };
    (units.billionths() / 1_000_000).saturating_mul(weight)
}

#[derive(Clone, Debug)]
pub(crate) struct Heat {
    /// Admitted in the window so far.
    used: u64,
    /// The last whole window, in thousandths of the ceiling.
    last: u64,
    /// How many windows in a row were hot.
    streak: u64,
    /// Heat until the next sample.
    until: u64,
    samples: Vec<Sample>,
    /// Where the next sample goes once all are kept.
    oldest: usize,
}

impl Heat {
    pub(crate) fn new() -> Self {
        Heat { used: 0, last: 0, streak: 0, until: EVERY, samples: Vec::new(), oldest: 0 }
    }

    /// Counts what was admitted.
    #[inline]
    pub(crate) fn add(&mut self, work: u64) {
        self.used = self.used.saturating_add(work);
    }

    pub(crate) fn take_back(&mut self, work: u64) {
        self.used = self.used.saturating_sub(work);
    }

    /// Whether it takes samples in this window.
    #[inline]
    pub(crate) fn is_sampled(&self) -> bool {
        self.last >= SAMPLED_FROM
    }

    /// Looks at `count` requests of `work` each at one point, admitted or not: the split point
    /// follows what is asked for. Samples come at random distances, so that no rhythm of the
    /// traffic hides a key from them.
    #[inline]
    pub(crate) fn see(
        &mut self,
        point: KeyPosition,
        writes: bool,
        work: u64,
        count: u64,
        random: &mut Random,
    ) {
        if self.is_sampled() {
            let mut left = work.saturating_mul(count);
            while left >= self.until {
                left -= self.until;
                self.keep(Sample { point, writes });
                self.until = random.between(1, 2 * EVERY);
            }
            self.until -= left;
        }
    }

    fn keep(&mut self, sample: Sample) {
        if self.samples.len() < KEPT {
            self.samples.push(sample);
        } else {
            self.samples[self.oldest] = sample;
            self.oldest = (self.oldest + 1) % KEPT;
        }
    }

    /// Ends the window. `hot`: from how many thousandths of the ceiling on. True if nothing at all
    /// was used.
    pub(crate) fn close(&mut self, hot: u64) -> bool {
        let used = std::mem::take(&mut self.used);
        self.last = used / (FULL / 1_000);
        self.streak = if self.last >= hot { self.streak + 1 } else { 0 };
        if self.last < SAMPLED_FROM {
            self.samples = Vec::new();
            self.oldest = 0;
        }
        used == 0
    }

    /// The last whole window, in thousandths of the ceiling.
    pub(crate) fn last(&self) -> u64 {
        self.last
    }

    /// How long it has been hot, in nanoseconds.
    pub(crate) fn hot_for(&self) -> u64 {
        self.streak * WINDOW
    }

    /// The samples kept, oldest first.
    pub(crate) fn samples(&self) -> Vec<Sample> {
        let (newer, older) = self.samples.split_at(self.oldest);
        older.iter().chain(newer).copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_at_the_ceiling() {
        for (access, units) in [(Access::Write, 10_000), (Access::Strong, 30_000), (Access::Eventual, 45_000)]
        {
            let mut heat = Heat::new();
            heat.add(work(access, Units::whole(units), false));
            assert!(!heat.close(850));
            assert_eq!((heat.last(), heat.hot_for()), (1_000, WINDOW), "{access:?}");
            assert!(heat.close(850));
            assert_eq!(heat.hot_for(), 0);
        }
    }

    #[test]
    fn samples_are_the_same_for_many_at_once_and_follow_the_traffic() {
        let points = [KeyPosition::first(1), KeyPosition::first(2), KeyPosition::first(3)];
        let (mut one, mut many) = (Heat::new(), Heat::new());
        for heat in [&mut one, &mut many] {
            heat.last = 1_000;
        }
        let (mut a, mut b) = (Random::seeded(1), Random::seeded(1));
        for nth in 0..30_000 {
            let point = points[nth % 3];
            let count = if nth % 3 == 0 { 2 } else { 1 };
            for _ in 0..count {
                one.see(point, true, 9_000, 1, &mut a);
            }
            many.see(point, true, 9_000, count, &mut b);
        }
        assert_eq!(one.samples(), many.samples());
        let first = one.samples().iter().filter(|sample| sample.point == points[0]).count();
        assert!((100..156).contains(&first), "{first} of 256, where half is due");
    }
}
