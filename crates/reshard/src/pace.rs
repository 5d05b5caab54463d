//! How fast a worker may go: units per second, as the drained partition can spare.
//!
//! Not here: how many those are. Whoever drives the worker says it with every look, and may say
//! nought for a pause.

use std::time::Duration;

use heatsink_env::MonotonicInstant;

/// Up to so much lateness is made up for. A timer of whole milliseconds wakes who waits for 4 ms
/// after 5: without this a fifth of the rate is lost. It is longer than a timer or a request is
/// late, and far shorter than what a partition keeps for bursts.
const LATE: Duration = Duration::from_millis(100);

/// When the next units may be spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pace {
    free: MonotonicInstant,
}

impl Default for Pace {
    fn default() -> Self {
        Pace { free: MonotonicInstant(0) }
    }
}

impl Pace {
    /// `units` were spent at `now`, at a rate of `rate` units per second. At no rate the clock
    /// stands still.
    pub fn spent(&mut self, now: MonotonicInstant, units: u32, rate: u32) {
        let nanos = u64::from(units) * 1_000_000_000 / u64::from(rate.max(1));
        // Who is late keeps the rate. What was not spent for longer is not saved up.
        let from = if now.since(self.free) > LATE { now } else { self.free };
        self.free = from + Duration::from_nanos(nanos);
    }

    /// When to go on; `None` if at once.
    pub fn wait(&self, now: MonotonicInstant) -> Option<MonotonicInstant> {
        (self.free > now).then_some(self.free)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> MonotonicInstant {
        MonotonicInstant(millis * 1_000_000)
    }

    #[test]
    fn units_are_spread_over_time_and_none_are_saved_up() {
        let mut pace = Pace::default();
        assert_eq!(pace.wait(at(0)), None);
        pace.spent(at(5_000), 50, 100);
        assert_eq!(pace.wait(at(5_000)), Some(at(5_500)));
        pace.spent(at(5_000), 50, 100);
        assert_eq!(pace.wait(at(5_999)), Some(at(6_000)));
        assert_eq!(pace.wait(at(6_000)), None);
    }

    #[test]
    fn who_wakes_up_late_keeps_the_rate() {
        let mut pace = Pace::default();
        let (mut now, mut units) = (5_000, 0);
        while now < 15_000 {
            pace.spent(at(now), 4, 1_000);
            units += 4;
            // A timer of whole milliseconds that is one late, and every second a pause for
            // something else.
            let until = pace.wait(at(now)).map_or(now, |until| until.0.div_ceil(1_000_000) + 1);
            now = until + if units % 1_000 == 0 { 40 } else { 0 };
        }
        assert!((9_950..=10_050).contains(&units), "{units} of 10,000");
    }
}
