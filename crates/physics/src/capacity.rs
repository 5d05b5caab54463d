//! The first gate: the capacity of a table or an index as a whole.

use crate::bucket::Bucket;
use crate::ceilings::{PARTITION_READS, PARTITION_WRITES};
use crate::demand::{Access, Cause};
use crate::growth::Growth;
use crate::mode::{Mode, PARTITIONS_MAX};
use crate::units::Units;

/// Unused provisioned capacity is kept for this long (docs/explain/partitions.md#two-gates).
const CREDIT_MILLISECONDS: u64 = 300_000;

/// On-demand capacity is a rate: it keeps one second's worth. A guess.
const ON_DEMAND_MILLISECONDS: u64 = 1_000;

#[derive(Clone, Debug)]
pub(crate) struct Capacity {
    mode: Mode,
    quota: u64,
    sides: [Side; 2],
}

/// Reads or writes.
#[derive(Clone, Debug)]
struct Side {
    bucket: Bucket,
    growth: Growth,
}

const READ: usize = 0;
const WRITE: usize = 1;

#[inline]
fn side(access: Access) -> usize {
    if access.writes() { WRITE } else { READ }
}

impl Capacity {
    pub(crate) fn new(now: u64, mode: Mode, quota: u64) -> Self {
        let start = mode.start();
        let sides = [READ, WRITE].map(|of| {
            let growth = Growth::new(start[of]);
            let (rate, kept, _) = rate(mode, quota, of, growth.limit());
            Side { bucket: Bucket::new(now, rate, kept), growth }
        });
        Capacity { mode, quota, sides }
    }

    pub(crate) fn mode(&self) -> Mode {
        self.mode
    }

    /// What reads and writes could be served per second: what it was ever provisioned with, or has
    /// grown to (docs/explain/partitions.md
    /// #how-much-a-table-may-take).
    pub(crate) fn warm(&self) -> [u64; 2] {
        [self.sides[READ].growth.limit(), self.sides[WRITE].growth.limit()]
    }

    /// The units that it admits per second now: reads, writes.
    pub(crate) fn served(&self) -> [u64; 2] {
        [READ, WRITE].map(|of| rate(self.mode, self.quota, of, self.sides[of].growth.limit()).0)
    }

    /// Partitions that the warm throughput needs, each reads and writes up to their own ceilings.
    pub(crate) fn partitions(&self) -> usize {
        let [reads, writes] = self.warm();
        let needed = reads.div_ceil(PARTITION_READS).max(writes.div_ceil(PARTITION_WRITES));
        usize::try_from(needed).unwrap_or(PARTITIONS_MAX).clamp(1, PARTITIONS_MAX)
    }

    pub(crate) fn change(&mut self, now: u64, mode: Mode) {
        self.mode = mode;
        self.warm_up(now, mode.start());
    }

    /// Raises the warm throughput.
    pub(crate) fn warm_up(&mut self, now: u64, least: [u64; 2]) {
        for (side, least) in self.sides.iter_mut().zip(least) {
            side.growth.at_least(least);
        }
        self.refit(now);
    }

    fn refit(&mut self, now: u64) {
        for (of, side) in self.sides.iter_mut().enumerate() {
            let (rate, kept, _) = rate(self.mode, self.quota, of, side.growth.limit());
            side.bucket.change(now, rate, kept);
        }
    }

    #[inline]
    pub(crate) fn open(&mut self, now: u64, access: Access) -> bool {
        self.sides[side(access)].bucket.open(now)
    }

    /// The cause of a throttle while it is closed.
    pub(crate) fn cause(&self, access: Access) -> Cause {
        let of = side(access);
        rate(self.mode, self.quota, of, self.sides[of].growth.limit()).2
    }

    #[inline]
    pub(crate) fn pay(&mut self, access: Access, units: Units) {
        let side = &mut self.sides[side(access)];
        side.bucket.pay(units);
        side.growth.add(units.billionths());
    }

    pub(crate) fn pay_each(&mut self, access: Access, step: u64, count: u64, units: Units) {
        let side = &mut self.sides[side(access)];
        side.bucket.pay_each(step, count, units);
        side.growth.add(units.billionths().saturating_mul(count));
    }

    pub(crate) fn refund(&mut self, access: Access, units: Units) {
        let side = &mut self.sides[side(access)];
        side.bucket.refund(units);
        side.growth.take_back(units);
    }

    pub(crate) fn bucket(&self, access: Access) -> &Bucket {
        &self.sides[side(access)].bucket
    }

    pub(crate) fn quiet(&self) -> bool {
        self.sides.iter().all(|side| side.growth.quiet())
    }

    /// Ends a minute. For each of reads and writes: the new previous peak and what is served from
    /// now on.
    pub(crate) fn close_minute(&mut self, now: u64) -> [Option<(u64, u64)>; 2] {
        let on_demand = !self.mode.provisioned();
        let registered = [READ, WRITE].map(|of| {
            let growth = &mut self.sides[of].growth;
            if !on_demand {
                growth.rest();
                return None;
            }
            let peak = growth.close_minute(now)?;
            Some((peak, growth.limit()))
        });
        if registered.iter().any(Option::is_some) {
            self.refit(now);
        }
        registered
    }
}

/// Units per second, for how many milliseconds they are kept, and why a request over them is
/// refused.
fn rate(mode: Mode, quota: u64, of: usize, limit: u64) -> (u64, u64, Cause) {
    let maximum = match mode {
        Mode::Provisioned { read, write } => {
            return ([read, write][of], CREDIT_MILLISECONDS, Cause::Provisioned);
        }
        Mode::OnDemand { max_read, max_write } => [max_read, max_write][of],
    };
    let (ceiling, cause) = match maximum {
        Some(maximum) => (maximum, Cause::MaxOnDemand),
        None => (quota, Cause::AccountLimit),
    };
    let (rate, cause) = if limit < ceiling { (limit, Cause::Scaling) } else { (ceiling, cause) };
    (rate, ON_DEMAND_MILLISECONDS, cause)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_and_what_they_remember() {
        // docs/explain/partitions.md#how-much-a-table-may-take: 10,000/10,000 once, 10/10 now, then
        // on demand: at least 12,000 and 10,000.
        let mut capacity = Capacity::new(0, Mode::Provisioned { read: 10_000, write: 10_000 }, 40_000);
        capacity.change(0, Mode::Provisioned { read: 10, write: 10 });
        assert_eq!((capacity.served(), capacity.warm()), ([10, 10], [10_000, 10_000]));
        capacity.change(0, Mode::ON_DEMAND);
        assert_eq!((capacity.served(), capacity.partitions()), ([12_000, 10_000], 10));
        capacity.warm_up(0, [1, 60_000]);
        assert_eq!(capacity.served(), [12_000, 40_000]);
        assert_eq!(capacity.cause(Access::Write), Cause::AccountLimit);
        assert_eq!(capacity.cause(Access::Strong), Cause::Scaling);
        capacity.change(0, Mode::OnDemand { max_read: Some(50), max_write: None });
        assert_eq!((capacity.served()[0], capacity.cause(Access::Eventual)), (50, Cause::MaxOnDemand));
    }
}
