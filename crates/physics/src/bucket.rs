//! A token bucket that may go into debt, for one request and for many at even intervals.

use crate::units::Units;

/// The most that a bucket can fill, units per second: 300 s of it still fit the count.
const MAX_RATE: u64 = 30_000_000;

/// Fills at `rate` units per second up to what it keeps, is open while it holds more than its floor
/// (nothing, or for an index what may wait in its queue), and pays whatever it is asked to, into
/// debt if need be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bucket {
    /// Units per second, which is billionths per nanosecond.
    rate: u64,
    /// In billionths.
    cap: i64,
    /// In billionths; negative when in debt.
    tokens: i64,
    /// In billionths; zero or less. Open above it.
    floor: i64,
    /// When `tokens` was true, in nanoseconds.
    at: u64,
}

impl Bucket {
    /// Keeps `milliseconds` of its rate. Holds one second's worth at first, if it keeps as much:
    /// credit is *unused* capacity (docs/explain/partitions.md#two-gates), and a new bucket has not
    /// left any unused; one second lets a client use its rate from the start.
    pub(crate) fn new(now: u64, rate: u64, milliseconds: u64) -> Self {
        let rate = rate.min(MAX_RATE);
        let cap = of_rate(rate, milliseconds);
        Bucket { rate, cap, tokens: of_rate(rate, 1_000).min(cap), floor: 0, at: now }
    }

    /// Stays open until it owes `milliseconds` of its rate.
    pub(crate) fn with_queue(self, milliseconds: u64) -> Self {
        Bucket { floor: -of_rate(self.rate, milliseconds), ..self }
    }

    /// Gives half of what it holds to a new bucket of its kind; a debt stays here.
    pub(crate) fn halve(&mut self, now: u64) -> Self {
        self.fill(now);
        let half = self.tokens.max(0) / 2;
        self.tokens -= half;
        Bucket { tokens: half, ..*self }
    }

    /// Changes rate and cap from `now` on. What is held stays, up to the new cap.
    pub(crate) fn change(&mut self, now: u64, rate: u64, milliseconds: u64) {
        self.fill(now);
        let full = Bucket::new(now, rate, milliseconds);
        *self = Bucket { tokens: self.tokens.min(full.cap), ..full };
    }

    #[inline]
    pub(crate) fn open(&mut self, now: u64) -> bool {
        self.fill(now);
        self.tokens > self.floor
    }

    #[inline]
    pub(crate) fn pay(&mut self, units: Units) {
        self.tokens = self.tokens.saturating_sub(signed(units));
    }

    /// Refunds an overpaid amount.
    pub(crate) fn refund(&mut self, units: Units) {
        self.tokens = self.tokens.saturating_add(signed(units)).min(self.cap);
    }

    /// The time until the debt is filled, in nanoseconds: the lag of an index.
    pub(crate) fn lag(&mut self, now: u64) -> u64 {
        self.fill(now);
        self.tokens.min(0).unsigned_abs() / self.rate.max(1)
    }

    /// A clock that runs backwards fills nothing.
    #[inline]
    fn fill(&mut self, now: u64) {
        let passed = now.saturating_sub(self.at);
        if passed > 0 {
            self.at = now;
            let missing = self.cap.saturating_sub(self.tokens).unsigned_abs();
            let filled = u128::from(passed) * u128::from(self.rate);
            // The smaller of the two fits, as the missing part does.
            let filled = u64::try_from(filled).map_or(missing, |filled| filled.min(missing));
            self.tokens = self.tokens.saturating_add_unsigned(filled);
        }
    }

    // For requests at even distances: the first one comes at the moment up to which the bucket is
    // filled, each next one `step` nanoseconds later.

    /// How many requests find it closed before one finds it open.
    pub(crate) fn closed_for(&self, step: u64) -> u64 {
        if self.tokens > self.floor {
            return 0;
        }
        let lacking = i128::from(self.floor) - i128::from(self.tokens);
        let filled = i128::from(step) * i128::from(self.rate);
        if filled == 0 { u64::MAX } else { u64::try_from(lacking / filled + 1).unwrap_or(u64::MAX) }
    }

    /// How many requests in a row find it open if each pays `units`.
    pub(crate) fn open_for(&self, step: u64, units: Units) -> u64 {
        let above = i128::from(self.tokens) - i128::from(self.floor);
        let drained = i128::from(signed(units)) - i128::from(step) * i128::from(self.rate);
        match (above > 0, drained > 0) {
            (false, _) => 0,
            (true, false) => u64::MAX,
            (true, true) => u64::try_from((above + drained - 1) / drained).unwrap_or(u64::MAX),
        }
    }

    /// Whether `count` requests at one moment, each paying `units`, all find it open.
    #[inline]
    pub(crate) fn covers(&self, count: u64, units: Units) -> bool {
        let others = i64::try_from(count.saturating_sub(1)).unwrap_or(i64::MAX);
        self.tokens.saturating_sub(self.floor) > signed(units).saturating_mul(others)
    }

    /// Pays for `count` requests, all of which found it open; it is then filled up to the moment of
    /// the last.
    pub(crate) fn pay_each(&mut self, step: u64, count: u64, units: Units) {
        let Some(gaps) = count.checked_sub(1) else { return };
        let (cost, filled) = (i128::from(signed(units)), i128::from(step) * i128::from(self.rate));
        // It either drains from the first to the last, or fills, and stays at the cap once it is
        // there.
        let last = (i128::from(self.tokens) + i128::from(gaps) * (filled - cost)).min(i128::from(self.cap));
        let left = (last - cost).max(i128::from(i64::MIN));
        self.tokens = i64::try_from(left).unwrap_or(i64::MAX);
        self.at = self.at.saturating_add(step.saturating_mul(gaps));
    }
}

/// A rate of one unit per second is a million billionths per millisecond.
fn of_rate(rate: u64, milliseconds: u64) -> i64 {
    i64::try_from(rate.saturating_mul(milliseconds).saturating_mul(1_000_000)).unwrap_or(i64::MAX)
}

#[inline]
fn signed(units: Units) -> i64 {
    i64::try_from(units.billionths()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn debt_is_paid_back_at_the_rate() {
        let mut bucket = Bucket::new(0, 1_000, 1_000);
        assert!(bucket.open(0));
        bucket.pay(Units::whole(1_500));
        assert!(!bucket.open(SECOND / 2));
        assert!(!bucket.open(SECOND / 4), "a clock that runs backwards fills nothing");
        assert!(bucket.open(SECOND / 2 + 1));
    }

    #[test]
    fn credit_grows_to_the_cap_and_no_further() {
        let mut bucket = Bucket::new(0, 10, 300_000);
        assert!(bucket.open(10_000 * SECOND));
        bucket.pay(Units::whole(3_000));
        assert!(!bucket.open(10_000 * SECOND));
    }

    #[test]
    fn a_changed_rate_keeps_no_more_than_its_cap() {
        let mut bucket = Bucket::new(0, 1_000, 300_000);
        assert!(bucket.open(300 * SECOND));
        bucket.change(300 * SECOND, 10, 300_000);
        bucket.pay(Units::whole(3_000));
        assert!(!bucket.open(300 * SECOND));
    }

    #[test]
    fn a_queue_stays_open_in_debt() {
        let mut bucket = Bucket::new(0, 1_000, 1_000).with_queue(1_000);
        bucket.pay(Units::whole(1_999));
        assert!(bucket.open(0));
        bucket.pay(Units::ONE);
        assert!(!bucket.open(0));
        assert_eq!(bucket.lag(0), SECOND);
    }

    #[test]
    fn amounts_beyond_all_sense_do_not_wrap() {
        let mut bucket = Bucket::new(0, u64::MAX, 300_000);
        bucket.pay(Units::whole(u64::MAX));
        bucket.pay(Units::whole(u64::MAX));
        assert!(!bucket.open(1));
        assert!(!bucket.open(u64::MAX) || bucket.tokens <= bucket.cap);
    }

    proptest! {
        /// Runs of requests are what they would be one by one.
        #[test]
        fn runs_are_exact(
            rate in 1u64..5_000, kept in 300u64..4_000, queue in 0u64..2_000, spent in 0u64..12_000, rest in 0u64..3_000_000_000,
            step in 0u64..3_000_000, units in 1u64..5_000_000_000, count in 1u64..300,
        ) {
            let units = Units::from_billionths(units);
            let mut bucket = Bucket::new(0, rate, kept).with_queue(queue);
            bucket.pay(Units::whole(spent));
            bucket.fill(rest);
            let (mut one, mut closed, mut open) = (bucket, 0, 0);
            while closed < count && !one.open(rest + closed * step) {
                closed += 1;
            }
            prop_assert_eq!(bucket.closed_for(step).min(count), closed);
            let mut one = bucket;
            while open < count && one.open(rest + open * step) {
                one.pay(units);
                open += 1;
            }
            prop_assert_eq!(bucket.open_for(step, units).min(count), open);
            if open > 0 {
                let mut many = bucket;
                many.pay_each(step, open, units);
                let end = rest + open * step;
                one.fill(end);
                many.fill(end);
                prop_assert_eq!(many.tokens, one.tokens);
            }
        }
    }
}
