//! The growth of an on-demand table or index: previous peak, doubling, the 30-minute rule
//! (docs/explain/partitions.md#how-much-a-table-may-take).

use crate::units::Units;

/// A peak counts as the previous peak once this much time has passed since traffic first went over
/// the last one.
const REGISTERED_AFTER: u64 = 30 * 60 * 1_000_000_000;

/// One of reads and writes. On-demand capacity serves twice the previous peak at any moment; this
/// is also the warm throughput, and never sinks
/// (docs/explain/partitions.md#how-much-a-table-may-take).
#[derive(Clone, Debug)]
pub(crate) struct Growth {
    /// Units per second that can be served.
    limit: u64,
    /// Admitted in this minute, in billionths.
    used: u64,
    /// Since when traffic has gone over half the limit, and the highest minute since, units per
    /// second.
    rising: Option<(u64, u64)>,
}

impl Growth {
    pub(crate) fn new(limit: u64) -> Self {
        Growth { limit, used: 0, rising: None }
    }

    pub(crate) fn limit(&self) -> u64 {
        self.limit
    }

    /// At least this much can be served: a provisioned rate, a configured warm throughput.
    pub(crate) fn at_least(&mut self, limit: u64) {
        self.limit = self.limit.max(limit);
    }

    #[inline]
    pub(crate) fn add(&mut self, billionths: u64) {
        self.used = self.used.saturating_add(billionths);
    }

    pub(crate) fn take_back(&mut self, units: Units) {
        self.used = self.used.saturating_sub(units.billionths());
    }

    /// Forgets what was counted: provisioned capacity does not grow by use.
    pub(crate) fn rest(&mut self) {
        (self.used, self.rising) = (0, None);
    }

    /// Whether nothing is being counted or waited for.
    pub(crate) fn quiet(&self) -> bool {
        self.used == 0 && self.rising.is_none()
    }

    /// Ends a minute; the new previous peak, if one counts from now on.
    pub(crate) fn close_minute(&mut self, now: u64) -> Option<u64> {
        let minute = 60 * Units::ONE.billionths();
        let rate = (std::mem::take(&mut self.used) + minute / 2) / minute;
        if rate > self.limit / 2 {
            let (since, highest) = self.rising.unwrap_or((now, 0));
            self.rising = Some((since, highest.max(rate)));
        }
        let (since, highest) = self.rising?;
        if now.saturating_sub(since) < REGISTERED_AFTER {
            return None;
        }
        self.rising = None;
        self.at_least(highest.saturating_mul(2));
        Some(highest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: u64 = 60_000_000_000;

    #[test]
    fn a_peak_counts_after_half_an_hour() {
        let mut growth = Growth::new(100_000);
        let mut registered = Vec::new();
        for minute in 1..=70 {
            growth.add(60 * Units::whole(growth.limit()).billionths());
            registered.extend(growth.close_minute(minute * MINUTE).map(|peak| (minute, peak)));
        }
        assert_eq!(registered, [(31, 100_000), (62, 200_000)]);
        assert_eq!(growth.limit(), 400_000);
    }

    #[test]
    fn half_the_limit_is_no_new_peak() {
        let mut growth = Growth::new(4_000);
        for minute in 1..=60 {
            growth.add(60 * Units::whole(2_000).billionths());
            assert_eq!(growth.close_minute(minute * MINUTE), None);
        }
        assert!(growth.quiet());
    }
}
