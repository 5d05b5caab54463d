//! How many capacity units a second a mover may take of the drained partition: as many as its other users leave.
//!
//! Nobody can ask a partition for that. So the rate grows while nothing is throttled, and falls when something is: the mover's own requests stand for
//! the clients' that meet the same partition. Not here: when the next units may be spent (`heatsink_reshard::Pace`).

use std::time::Duration;

use heatsink_env::MonotonicInstant;

/// The first rate, as a share of the most: the clients' requests of the cutover, which waited, come first.
const FIRST: f64 = 0.4;
/// Growth per second until the first throttle, as a share of the most. A partition allows more than its rate for half a second's units: the faster the
/// growth, the further the first throttle comes too late.
const GROWTH: f64 = 0.04;
/// The new rate after a throttle, as a share of the one that was throttled (RFC 9438, section 4.6).
const AFTER: f64 = 0.7;
/// How fast the growth grows again, as a share of the most per second to the third power (`C` of RFC 9438, section 5, in units of a partition).
const CURVE: f64 = 0.001;
/// The least, as a share of the most: a move does not stand still.
const LEAST: f64 = 0.02;
/// For so long after a throttle other throttles do not count: of requests that were sent before it.
const REST: Duration = Duration::from_millis(100);

/// The rate of one mover. After a throttle it follows the curve of CUBIC congestion control (RFC 9438): soon near the rate that was throttled, long about
/// there, and then, where nothing is throttled, away from it ever faster, for others need less by now.
#[derive(Clone, Debug)]
pub(crate) struct Spare {
    most: f64,
    begun: MonotonicInstant,
    /// The last rate that was throttled, and when.
    throttled: Option<(f64, MonotonicInstant)>,
    throttles: u64,
}

impl Spare {
    /// At most so many units a second. `throttles`: how many requests were throttled before.
    pub(crate) fn new(now: MonotonicInstant, most: u32, throttles: u64) -> Self {
        Spare { most: f64::from(most), begun: now, throttled: None, throttles }
    }

    /// The rate, when so many requests have been throttled.
    pub(crate) fn rate(&mut self, now: MonotonicInstant, throttles: u64) -> u32 {
        let throttled = throttles > self.throttles;
        self.throttles = throttles;
        if throttled && self.throttled.is_none_or(|(_, at)| now.since(at) >= REST) {
            self.throttled = Some((self.at(now), now));
        }
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and a u32")]
        let rate = self.at(now) as u32;
        rate.max(1)
    }

    fn at(&self, now: MonotonicInstant) -> f64 {
        let rate = match self.throttled {
            None => self.most * (FIRST + GROWTH * now.since(self.begun).as_secs_f64()),
            Some((rate, at)) => {
                let curve = CURVE * self.most;
                // When it is back where it was throttled.
                let back = (rate * (1.0 - AFTER) / curve).cbrt();
                rate + curve * (now.since(at).as_secs_f64() - back).powi(3)
            }
        };
        rate.clamp(self.most * LEAST, self.most)
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
        for (others, least) in [(0.0, 0.95), (300.0, 0.9), (700.0, 0.9)] {
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
    fn what_others_leave_later_is_found_soon() {
        let mut spare = Spare::new(at(0), 1_000, 0);
        let mut throttles = 0;
        for step in 0..2_000 {
            throttles += u64::from(spare.rate(at(step * 10), throttles) > 688);
        }
        // After twenty seconds nobody else is there.
        assert!(spare.rate(at(20_000), throttles) < 700);
        assert_eq!(spare.rate(at(35_000), throttles), 1_000);
    }

    #[test]
    fn throttles_of_before_do_not_count() {
        let mut spare = Spare::new(at(0), 1_000, 7);
        assert_eq!(spare.rate(at(0), 7), 400);
        assert_eq!(spare.rate(at(1_000), 7), 440);
        assert_eq!(spare.rate(at(1_000), 8), 308);
        let rested = spare.rate(at(1_050), 9);
        assert!((308..440).contains(&rested), "sent before it slowed down: {rested}");
        assert!(spare.rate(at(1_200), 10) < rested);
    }
}
