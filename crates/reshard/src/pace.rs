//! How fast a worker may go: units per second, as the drained partition can spare.
//!
//! Not here: how many those are. Whoever drives the worker says it with every look, and may say nought for a pause.

use std::time::Duration;

use heatsink_env::MonotonicInstant;

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
    /// `units` were spent at `now`, at a rate of `rate` units per second. At no rate the clock stands still.
    pub fn spent(&mut self, now: MonotonicInstant, units: u32, rate: u32) {
        let nanos = u64::from(units) * 1_000_000_000 / u64::from(rate.max(1));
        // What was not spent in the past is not saved up.
        self.free = MonotonicInstant(self.free.0.max(now.0)) + Duration::from_nanos(nanos);
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
}
