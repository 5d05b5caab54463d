//! How many capacity units a second a mover may take of the drained partition: as many as its other
//! users leave.
//!
//! Nobody can ask a partition for that. So the rate grows while nothing is throttled, and falls
//! when something is: the mover's own requests stand for the clients' that meet the same partition.
//! Not here: when the next units may be spent (`heatsink_reshard::Pace`).

use std::time::Duration;

use heatsink_env::MonotonicInstant;

/// The first rate, as a share of the most: the clients' requests of the cutover, which waited, come
/// first.
const FIRST: f64 = 0.4;
/// Growth per second until the first throttle, as a share of the most. A partition allows more than
/// its rate for half a second's units: the faster the growth, the further the first throttle comes
/// too late.
const GROWTH: f64 = 0.04;
/// The new rate after a throttle, as a share of what was left before it. RFC 9438, section 4.6, has
/// 0.7 of the rate that was throttled, which is more.
const AFTER: f64 = 0.75;
/// How fast the growth grows again, as a share of the most per second to the third power (`C` of
/// RFC 9438, section 5, in units of a partition).
const CURVE: f64 = 0.001;
/// The least, as a share of the most: a move does not stand still, also where another key burns the
/// partition for good.
const LEAST: f64 = 0.04;
/// What is left is the mean of what was taken for so long before a throttle. The rate at that
/// moment is more than is left: the partition allowed it out of what it had kept.
const MEAN: Duration = Duration::from_secs(2);
/// For so long after a throttle it takes the least: the partition has used up what it kept, and
/// would throttle clients. Other throttles do not count meanwhile: of requests that were sent
/// before.
const REST: Duration = Duration::from_millis(100);

/// The rate of one mover. After a throttle it follows the curve of CUBIC congestion control (RFC
/// 9438): soon near what was left, long about there, and then, where nothing is throttled, away
/// from it ever faster, for others need less by now.
#[derive(Clone, Debug)]
pub(crate) struct Spare {
    most: f64,
    begun: MonotonicInstant,
    /// What was left before the last throttle, and when the rest after it ends.
    throttled: Option<(f64, MonotonicInstant)>,
    throttles: u64,
    /// Units that were taken a second, as an exponential mean over [`MEAN`], and as of when.
    taken: (f64, MonotonicInstant),
}

impl Spare {
    /// At most so many units a second. `throttles`: how many requests were throttled before.
    pub(crate) fn new(now: MonotonicInstant, most: u32, throttles: u64) -> Self {
        let most = f64::from(most);
        Spare { most, begun: now, throttled: None, throttles, taken: (FIRST * most, now) }
    }

    /// The same for many movers together, whose partitions leave so much at first, as far as anybody
    /// knows.
    pub(crate) fn beginning_with(now: MonotonicInstant, most: u32, left: u32) -> Self {
        let left = f64::from(left);
        let spare = Spare::new(now, most, 0);
        Spare { throttled: Some((left, now)), taken: (left, now), ..spare }
    }

    /// How many seconds so many units take where nothing is throttled, rounded up: the rate grows
    /// from [`FIRST`] to all of `most`.
    pub(crate) fn seconds(units: u64, most: u32) -> u64 {
        #[allow(clippy::cast_precision_loss, reason = "a number for people")]
        let whole = units as f64 / f64::from(most.max(1));
        let growing = (1.0 - FIRST) / GROWTH;
        let taken_growing = growing * (1.0 + FIRST) / 2.0;
        let seconds = match whole <= taken_growing {
            // FIRST * t + GROWTH * t² / 2 = whole
            true => ((FIRST * FIRST + 2.0 * GROWTH * whole).sqrt() - FIRST) / GROWTH,
            false => growing + whole - taken_growing,
        };
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a number for people")]
        let seconds = seconds.ceil() as u64;
        seconds
    }

    /// So many units were taken.
    pub(crate) fn spent(&mut self, now: MonotonicInstant, units: f64) {
        self.taken = (self.mean(now) + units / MEAN.as_secs_f64(), now);
    }

    fn mean(&self, now: MonotonicInstant) -> f64 {
        let (mean, at) = self.taken;
        mean * (-now.since(at).as_secs_f64() / MEAN.as_secs_f64()).exp()
    }

    /// The rate, when so many requests have been throttled.
    pub(crate) fn rate(&mut self, now: MonotonicInstant, throttles: u64) -> u32 {
        let throttled = throttles > self.throttles;
        self.throttles = throttles;
        if throttled && self.throttled.is_none_or(|(_, rested)| now >= rested) {
            self.throttled = Some((self.mean(now).min(self.at(now)), now + REST));
        }
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and a u32")]
        let rate = self.at(now) as u32;
        rate.max(1)
    }

    fn at(&self, now: MonotonicInstant) -> f64 {
        let rate = match self.throttled {
            None => self.most * (FIRST + GROWTH * now.since(self.begun).as_secs_f64()),
            Some((_, rested)) if now < rested => 0.0,
            Some((left, rested)) => {
                let curve = CURVE * self.most;
                // When it takes again what was left.
                let back = (left * (1.0 - AFTER) / curve).cbrt();
                left + curve * (now.since(rested).as_secs_f64() - back).powi(3)
            }
        };
        rate.clamp(self.most * LEAST, self.most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_told_for_so_many_units_is_what_the_rate_gives() {
        for (units, most) in
            [(0_u32, 1_000), (4, 1_000), (4_000, 1_000), (10_500, 1_000), (60_000, 1_000), (900, 40)]
        {
            let spare = Spare::new(at(0), most, 0);
            let (mut taken, mut millis) = (0.0, 0);
            while taken < f64::from(units) {
                taken += spare.at(at(millis)) / 1_000.0;
                millis += 1;
            }
            let told = Spare::seconds(units.into(), most);
            assert!(told.abs_diff(millis.div_ceil(1_000)) <= 1, "{units} at {most}: {told} s, {millis} ms");
        }
        assert_eq!((Spare::seconds(0, 1_000), Spare::seconds(1, 1_000)), (0, 1));
    }

    fn at(millis: u64) -> MonotonicInstant {
        MonotonicInstant(millis * 1_000_000)
    }

    /// Takes so many units a second for 10 ms.
    fn take(spare: &mut Spare, now: MonotonicInstant, rate: f64) {
        spare.spent(now, rate * 0.01);
    }

    /// The shares of a partition's units that the mover takes, and that are asked for in excess,
    /// over so many seconds beside `others` units a second.
    fn beside(others: f64) -> (f64, f64) {
        let mut spare = Spare::new(at(0), 1_000, 0);
        let (mut throttles, mut taken, mut excess) = (0, 0.0, 0.0);
        let seconds = 300;
        for step in 0..seconds * 100 {
            let asked = f64::from(spare.rate(at(step * 10), throttles));
            let over = (asked + others - 1_000.0).max(0.0);
            throttles += u64::from(over > 0.0);
            take(&mut spare, at(step * 10), asked - over);
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
            let rate = spare.rate(at(step * 10), throttles);
            throttles += u64::from(rate > 688);
            take(&mut spare, at(step * 10), f64::from(rate.min(688)));
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
        assert_eq!(spare.rate(at(1_000), 8), 40, "it rests");
        assert_eq!(spare.rate(at(1_050), 9), 40);
        assert!(spare.rate(at(1_100), 9) > 100, "sent before it rested");
        assert_eq!(spare.rate(at(1_101), 10), 40);
    }

    #[test]
    fn what_was_left_is_what_was_taken_on_the_way_to_a_throttle() {
        let mut spare = Spare::new(at(0), 1_000, 0);
        let mut now = at(0);
        while now < at(10_000) {
            let rate = spare.rate(now, 0);
            take(&mut spare, now, f64::from(rate));
            now = now + Duration::from_millis(10);
        }
        // 600 of 800 were left, and the partition had kept 500 units.
        assert_eq!(spare.rate(now, 0), 800);
        assert_eq!(spare.rate(now, 1), 40);
        let after = spare.rate(now + REST, 1);
        assert!((450..=570).contains(&after), "{after}");
    }
}
