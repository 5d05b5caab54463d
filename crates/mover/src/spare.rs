//! How many capacity units a second a mover may take of the drained partition: as many as its other users leave.
//!
//! Nobody can ask a partition for that. So the rate grows while nothing is throttled, and falls when something is: the mover's own requests stand for
//! the clients' that meet the same partition. Not here: when the next units may be spent (`heatsink_reshard::Pace`).

use std::time::Duration;

use heatsink_env::MonotonicInstant;

/// The first rate, as a share of the most: the clients' requests of the cutover, which waited, come first.
const FIRST: f64 = 0.4;
/// Growth per second, as a share of the most.
const GROWTH: f64 = 0.08;
/// The same above the rate that was throttled last: to find out that others need less by now.
const SLOW_GROWTH: f64 = 0.004;
/// The new rate after a throttle, as a share of the one that was throttled; and up to where it grows as fast as before.
const AFTER: f64 = 0.7;
const NEAR: f64 = 0.9;
/// The least, as a share of the most: a move does not stand still.
const LEAST: f64 = 0.02;
/// How long after a throttle it does not change.
const REST: Duration = Duration::from_secs(2);

/// The rate of one mover.
#[derive(Clone, Debug)]
pub(crate) struct Spare {
    most: f64,
    rate: f64,
    /// Up to here it grows fast.
    near: f64,
    /// When it was looked at last; in the future, while it rests.
    since: MonotonicInstant,
    throttles: u64,
}

impl Spare {
    /// At most so many units a second. `throttles`: how many requests were throttled before.
    pub(crate) fn new(now: MonotonicInstant, most: u32, throttles: u64) -> Self {
        let most = f64::from(most);
        Spare { most, rate: most * FIRST, near: most, since: now, throttles }
    }

    /// The rate, when so many requests have been throttled.
    pub(crate) fn rate(&mut self, now: MonotonicInstant, throttles: u64) -> u32 {
        let throttled = throttles > self.throttles;
        self.throttles = throttles;
        if now >= self.since {
            if throttled {
                self.near = self.rate * NEAR;
                self.rate *= AFTER;
                self.since = now + REST;
            } else {
                let growth = if self.rate < self.near { GROWTH } else { SLOW_GROWTH };
                self.rate += now.since(self.since).as_secs_f64() * growth * self.most;
                self.since = now;
            }
            self.rate = self.rate.clamp(self.most * LEAST, self.most);
        }
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and a u32")]
        let rate = self.rate as u32;
        rate.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> MonotonicInstant {
        MonotonicInstant(millis * 1_000_000)
    }

    /// The shares of a partition's units that the mover takes, and that are asked for in excess, over so many seconds beside `others` units a second.
    fn beside(others: f64) -> (f64, f64) {
        let mut spare = Spare::new(at(0), 1_000, 0);
        let (mut throttles, mut taken, mut excess) = (0, 0.0, 0.0);
        let seconds = 300;
        for step in 0..seconds * 100 {
            let asked = f64::from(spare.rate(at(step * 10), throttles));
            let over = (asked + others - 1_000.0).max(0.0);
            throttles += u64::from(over > 0.0);
            taken += asked - over;
            excess += over;
        }
        let all = 1_000.0 * 100.0 * seconds as f64;
        (taken / all, excess / all)
    }

    #[test]
    fn it_takes_most_of_what_others_leave_and_hardly_more() {
        for (others, least) in [(0.0, 0.95), (300.0, 0.8), (700.0, 0.75)] {
            let (taken, excess) = beside(others);
            let spare = 1.0 - others / 1_000.0;
            assert!(taken >= least * spare, "{others}: {taken} of {spare}");
            assert!(excess <= 0.002, "{others}: {excess}");
        }
        // Where nothing is left it does not stand still.
        let (taken, excess) = beside(1_000.0);
        assert!(taken < 0.001 && excess < 0.05, "{taken} {excess}");
    }

    #[test]
    fn throttles_of_before_do_not_count() {
        let mut spare = Spare::new(at(0), 1_000, 7);
        assert_eq!(spare.rate(at(0), 7), 400);
        assert_eq!(spare.rate(at(1_000), 7), 480);
        assert_eq!(spare.rate(at(1_000), 8), 336);
        assert_eq!(spare.rate(at(2_900), 9), 336, "it rests");
    }
}
