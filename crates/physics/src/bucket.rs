//! A token bucket that may go into debt.

use crate::units::Units;

/// Fills at `rate` units per second up to `rate × seconds`, is open while it holds more than nothing, and pays
/// whatever it is asked to, into debt if need be.
#[derive(Clone, Debug)]
pub(crate) struct Bucket {
    /// Units per second, which is billionths per nanosecond.
    rate: u64,
    /// In billionths.
    cap: i128,
    /// In billionths; negative when in debt.
    tokens: i128,
    /// When `tokens` was true, in nanoseconds.
    at: u64,
}

impl Bucket {
    /// Holds one second's worth at first. Credit is *unused* capacity (PHYSICS §3.1), and a new bucket has not left
    /// any unused; one second lets a client use its rate from the start.
    pub(crate) fn new(now: u64, rate: u64, seconds: u64) -> Self {
        let second = i128::from(Units::whole(rate).billionths());
        Bucket { rate, cap: second * i128::from(seconds), tokens: second, at: now }
    }

    /// Changes rate and cap from `now` on. What is held stays, up to the new cap.
    pub(crate) fn change(&mut self, now: u64, rate: u64, seconds: u64) {
        self.fill(now);
        let full = Bucket::new(now, rate, seconds);
        *self = Bucket { tokens: self.tokens.min(full.cap), ..full };
    }

    pub(crate) fn open(&mut self, now: u64) -> bool {
        self.fill(now);
        self.tokens > 0
    }

    pub(crate) fn pay(&mut self, units: Units) {
        self.tokens -= i128::from(units.billionths());
    }

    /// Gives back what was paid too much.
    pub(crate) fn refund(&mut self, units: Units) {
        self.tokens = (self.tokens + i128::from(units.billionths())).min(self.cap);
    }

    /// A clock that runs backwards fills nothing.
    fn fill(&mut self, now: u64) {
        let passed = now.saturating_sub(self.at);
        self.tokens = (self.tokens + i128::from(passed) * i128::from(self.rate)).min(self.cap);
        self.at = self.at.max(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn debt_is_paid_back_at_the_rate() {
        let mut bucket = Bucket::new(0, 1_000, 1);
        assert!(bucket.open(0));
        bucket.pay(Units::whole(1_500));
        assert!(!bucket.open(SECOND / 2));
        assert!(bucket.open(SECOND / 2 + 1));
    }

    #[test]
    fn credit_grows_to_the_cap_and_no_further() {
        let mut bucket = Bucket::new(0, 10, 300);
        assert!(bucket.open(10_000 * SECOND));
        bucket.pay(Units::whole(3_000));
        assert!(!bucket.open(10_000 * SECOND));
    }

    #[test]
    fn a_changed_rate_keeps_no_more_than_its_cap() {
        let mut bucket = Bucket::new(0, 1_000, 300);
        assert!(bucket.open(300 * SECOND));
        bucket.change(300 * SECOND, 10, 300);
        bucket.pay(Units::whole(3_000));
        assert!(!bucket.open(300 * SECOND));
    }

    #[test]
    fn a_clock_that_runs_backwards_fills_nothing() {
        let mut bucket = Bucket::new(SECOND, 1, 1);
        bucket.pay(Units::ONE);
        assert!(!bucket.open(0));
        assert!(!bucket.open(SECOND));
    }
}
