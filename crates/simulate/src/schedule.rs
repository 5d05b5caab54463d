//! The number of requests of a workload in each tick.

use crate::scenario::{Burst, Changing, Length, Load};

/// A tick, the step of virtual time, in nanoseconds.
pub(crate) const TICK: u64 = 50_000_000;

const REQUEST: u128 = 1_000_000_000_000_000;

/// A rate over time, and how many of its requests were given out.
#[derive(Clone, Debug)]
pub(crate) struct Schedule {
    load: Load,
    burst: Option<Burst>,
    start: u64,
    end: u64,
    /// The fraction of a request that is due and not yet given out, in 10^-15, so that whole rates
    /// give whole numbers.
    due: u128,
}

impl Schedule {
    pub(crate) fn new(
        load: Load,
        burst: Option<Burst>,
        start: Option<Length>,
        end: Option<Length>,
    ) -> Schedule {
        Schedule {
            load,
            burst,
            start: start.unwrap_or_default().0,
            end: end.map_or(u64::MAX, |end| end.0),
            due: 0,
        }
    }

    /// The whole requests that are due in the tick from `now` on. The fraction that is left is
    /// added to the next tick.
    pub(crate) fn due(&mut self, now: u64, tick: u64) -> u64 {
        if now < self.start || now >= self.end {
            return 0;
        }
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "rates are bounded")]
        let millionths = (self.rate(now - self.start, tick) * 1e6).round() as u128;
        self.due += millionths * u128::from(tick);
        let whole = self.due / REQUEST;
        self.due %= REQUEST;
        u64::try_from(whole).unwrap_or(u64::MAX)
    }

    /// Requests per second in the tick from `now` on.
    pub(crate) fn per_second(&self, now: u64) -> f64 {
        if now < self.start || now >= self.end { 0.0 } else { self.rate(now - self.start, TICK) }
    }

    /// Requests per second `since` the workload's start.
    fn rate(&self, since: u64, tick: u64) -> f64 {
        if let Some(burst) = &self.burst
            && since % burst.every.0 >= burst.every.0 - burst.lasts.0
        {
            return burst.rate.0;
        }
        match &self.load {
            Load::Constant(rate) => rate.0,
            Load::Changing(Changing::Growth(growth)) => {
                growth.from.0 * growth.factor.0.powf((since / growth.every.0) as f64)
            }
            Load::Changing(Changing::Curve(points)) => {
                let middle = since + tick / 2;
                let after = points.partition_point(|(at, _)| at.0 <= middle);
                match (after.checked_sub(1).and_then(|before| points.get(before)), points.get(after)) {
                    (Some((from, low)), Some((to, high))) => {
                        let share = (middle - from.0) as f64 / (to.0 - from.0) as f64;
                        low.0 + share * (high.0 - low.0)
                    }
                    (Some((_, rate)), None) | (None, Some((_, rate))) => rate.0,
                    (None, None) => 0.0,
                }
            }
        }
        .min(crate::scenario::MAX_RATE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{Growth, Rate};

    fn total(schedule: &mut Schedule, seconds: u64) -> u64 {
        (0..seconds * 20).map(|nth| schedule.due(nth * TICK, TICK)).sum()
    }

    #[test]
    fn nothing_is_lost_between_ticks() {
        let of = |load| Schedule::new(load, None, None, None);
        assert_eq!(total(&mut of(Load::Constant(Rate(0.5))), 100), 50);
        assert_eq!(total(&mut of(Load::Constant(Rate(333.0))), 100), 33_300);
        let curve = vec![(Length::seconds(10), Rate(100.0)), (Length::seconds(20), Rate(200.0))];
        let curve = Load::Changing(Changing::Curve(curve));
        assert_eq!(total(&mut of(curve), 30), 1_000 + 1_500 + 2_000);
        let growth = Growth { from: Rate(100.0), factor: Rate(1.5), every: Length::seconds(10) };
        assert_eq!(total(&mut of(Load::Changing(Changing::Growth(growth))), 30), 1_000 + 1_500 + 2_250);
    }

    #[test]
    fn bursts_end_each_period_and_start_and_end_bound_all() {
        let burst = Burst { rate: Rate(50.0), every: Length::seconds(10), lasts: Length::seconds(2) };
        let (start, end) = (Some(Length::seconds(5)), Some(Length::seconds(25)));
        let mut schedule = Schedule::new(Load::Constant(Rate(10.0)), Some(burst), start, end);
        assert_eq!(total(&mut schedule, 100), 2 * (80 + 100));
    }
}
