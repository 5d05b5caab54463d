//! One partition, the second gate: a ceiling for writes, and one for reads on each of three
//! replicas.

use crate::bucket::Bucket;
use crate::ceilings::{PARTITION_READS, PARTITION_WRITES};
use crate::demand::Access;
use crate::heat::{Heat, work};
use crate::key_position::KeyPosition;
use crate::meter::{Meter, READS, THROTTLES, WRITES};
use crate::partition_load::{LoadCounter, PartitionLoad};
use crate::split::Refusal;
use crate::units::Units;

/// A ceiling keeps half a second's worth and no 300 s credit. Not published: AWS's run on one key
/// was flat at 1,000 writes/s and its run over keys one after another came to 1,250, of which the
/// model makes some 1,360 with half a second (docs/explain/partitions.md#tested-against, B1 and
/// B2).
const CEILING_MILLISECONDS: u64 = 500;

/// How much an index partition may owe before it holds back the writes of its table. Entries arrive
/// within a fraction of a second (docs/explain/partitions.md#indexes); how long the queue may get
/// is not published: a guess.
const QUEUE_MILLISECONDS: u64 = 1_000;

/// The bucket that pays. With [`crate::Rules::legacy_linear`] the first one pays for everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    /// Strongly consistent reads, and eventually consistent ones that the followers have no room
    /// for.
    Leader = 0,
    /// The two followers as one: eventually consistent reads go there first. Which of the three
    /// answers is not published; this order needs no chance, and gives the 9,000 reads/s measured.
    Followers = 1,
    Writes = 2,
}

/// Whether a partition is about to split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// Nothing to do.
    Calm,
    /// It will be split at this time, in nanoseconds on the model's clock.
    Splitting(u64),
    /// It is hot, and a split would not help.
    Stuck(Refusal),
}

#[derive(Clone, Debug)]
pub(crate) struct Partition {
    pub id: u64,
    buckets: [Bucket; 3],
    meter: Meter,
    load: LoadCounter,
    pub heat: Heat,
    pub health: Health,
    /// Where it will be split, while it is splitting.
    pub point: KeyPosition,
    /// What is stored in it.
    pub bytes: u64,
}

impl Partition {
    pub(crate) fn new(now: u64, id: u64, index: bool) -> Self {
        let writes = Bucket::new(now, PARTITION_WRITES, CEILING_MILLISECONDS);
        Partition {
            id,
            buckets: [
                Bucket::new(now, PARTITION_READS, CEILING_MILLISECONDS),
                Bucket::new(now, 2 * PARTITION_READS, CEILING_MILLISECONDS),
                if index { writes.with_queue(QUEUE_MILLISECONDS) } else { writes },
            ],
            meter: Meter::default(),
            load: LoadCounter::default(),
            heat: Heat::new(),
            health: Health::Calm,
            point: KeyPosition::MIN,
            bytes: 0,
        }
    }

    /// Splits off the other half of what is stored and of what its buckets hold, so that a split
    /// neither mints a burst nor throttles what was not throttled before. What was counted so far,
    /// and any debt, stay with this one.
    pub(crate) fn split_off(&mut self, now: u64, ids: [u64; 2], index: bool) -> Partition {
        let [left, right] = ids;
        let mut other = Partition::new(now, right, index);
        other.buckets = self.buckets.each_mut().map(|bucket| bucket.halve(now));
        other.bytes = self.bytes / 2;
        self.bytes -= other.bytes;
        self.id = left;
        self.heat = Heat::new();
        self.health = Health::Calm;
        other
    }

    /// The bucket that pays for a request now; `None` if it is at its ceiling.
    #[inline]
    pub(crate) fn lane(&mut self, now: u64, access: Access, linear: bool) -> Option<Lane> {
        let lane = match access {
            _ if linear => Lane::Leader,
            Access::Write => Lane::Writes,
            Access::Eventual if self.buckets[Lane::Followers as usize].open(now) => {
                return Some(Lane::Followers);
            }
            Access::Strong | Access::Eventual => Lane::Leader,
        };
        self.buckets[lane as usize].open(now).then_some(lane)
    }

    #[inline]
    pub(crate) fn pay(&mut self, now: u64, lane: Lane, access: Access, units: Units, linear: bool) {
        self.buckets[lane as usize].pay(load(access, units, linear));
        self.meter.add(now, counted(access), units.billionths());
        self.load.take(access, units.billionths());
    }

    /// Charges the cost of a request beyond its lower bound, even into debt.
    pub(crate) fn pay_late(&mut self, now: u64, access: Access, units: Units, linear: bool) {
        let lane = self.lane(now, access, linear).unwrap_or(home(access, linear));
        self.pay(now, lane, access, units, linear);
    }

    /// Refunds an overpaid amount.
    pub(crate) fn refund(&mut self, now: u64, access: Access, units: Units, linear: bool) {
        self.buckets[home(access, linear) as usize].refund(load(access, units, linear));
        self.meter.take_back(now, counted(access), units.billionths());
        self.load.take_back(access, units.billionths());
    }

    /// Counts requests aimed at this partition and refused by its table's or index's bucket.
    #[inline]
    pub(crate) fn throttled(&mut self, now: u64, count: u64) {
        self.meter.add(now, THROTTLES, count);
    }

    /// Counts requests refused because this partition is at its ceiling.
    #[inline]
    pub(crate) fn refused(&mut self, now: u64, access: Access, units: Units, count: u64) {
        self.throttled(now, count);
        self.load.refuse(access, units, count);
    }

    // For requests at even distances, the first of which comes now.

    /// The lane that the first of them takes and how many in a row can take it; `None`: and how
    /// many in a row find none.
    pub(crate) fn run(
        &mut self,
        now: u64,
        access: Access,
        step: u64,
        units: Units,
        linear: bool,
    ) -> (Option<Lane>, u64) {
        let load = load(access, units, linear);
        let lane = self.lane(now, access, linear);
        let open = |lane: Lane| self.buckets[lane as usize].open_for(step, load);
        let closed = |lane: Lane| self.buckets[lane as usize].closed_for(step);
        let both = access == Access::Eventual && !linear;
        let count = match lane {
            // Followers first: only while they are closed does the leader answer.
            Some(Lane::Leader) if both => open(Lane::Leader).min(closed(Lane::Followers)),
            Some(lane) => open(lane),
            None if both => closed(Lane::Leader).min(closed(Lane::Followers)),
            None => closed(home(access, linear)),
        };
        (lane, count)
    }

    pub(crate) fn pay_each(&mut self, lane: Lane, run: Run, linear: bool) {
        let Run { now, step, count, access, units } = run;
        self.buckets[lane as usize].pay_each(step, count, load(access, units, linear));
        let last = now.saturating_add(step.saturating_mul(count.saturating_sub(1)));
        let billionths = units.billionths().saturating_mul(count);
        self.meter.add(last, counted(access), billionths);
        self.load.take(access, billionths);
    }

    /// The lane that takes `count` requests at one moment, if one has room for them all.
    #[inline]
    pub(crate) fn covering(
        &mut self,
        now: u64,
        access: Access,
        units: Units,
        count: u64,
        linear: bool,
    ) -> Option<Lane> {
        let lane = self.lane(now, access, linear)?;
        self.buckets[lane as usize].covers(count, load(access, units, linear)).then_some(lane)
    }

    /// Admits and pays as many of the run's requests as there is room for, all at one moment; the
    /// others are throttled.
    pub(crate) fn take_many(&mut self, run: &Run, linear: bool) -> u64 {
        let Run { now, access, units, count, .. } = *run;
        let mut admitted = 0;
        if let Some(lane) = self.covering(now, access, units, count, linear) {
            self.buckets[lane as usize].pay(load(access, units, linear).times(count));
            let billionths = units.billionths().saturating_mul(count);
            self.meter.add(now, counted(access), billionths);
            self.load.take(access, billionths);
            admitted = count;
        }
        let mut left = count - admitted;
        while left > 0 {
            let (lane, alike) = self.run(now, access, 0, units, linear);
            let some = alike.clamp(1, left);
            left -= some;
            if let Some(lane) = lane {
                self.pay_each(lane, Run { count: some, ..*run }, linear);
                admitted += some;
            } else {
                self.refused(now, access, units, some);
            }
        }
        self.heat.add(work(access, units, linear).saturating_mul(admitted));
        admitted
    }

    pub(crate) fn snapshot(&mut self, now: u64, from: KeyPosition, last: u64) -> PartitionSnapshot {
        let mut rate = |what: usize| self.meter.last_second(now, what);
        PartitionSnapshot {
            reads_per_second: rate(READS) as f64 / 1e9,
            writes_per_second: rate(WRITES) as f64 / 1e9,
            throttles_per_second: rate(THROTTLES),
            id: self.id,
            first: from.position,
            last,
            from,
            heat: self.heat.last() as f64 / 1e3,
            health: self.health,
            bytes: self.bytes,
            lag: self.buckets[Lane::Writes as usize].lag(now),
            reads: self.meter.total(READS) as f64 / 1e9,
            writes: self.meter.total(WRITES) as f64 / 1e9,
            throttles: self.meter.total(THROTTLES),
            load: self.load.load(),
        }
    }
}

/// A run of equal requests at even distances.
#[derive(Clone, Copy)]
pub(crate) struct Run {
    pub now: u64,
    pub step: u64,
    pub count: u64,
    pub access: Access,
    pub units: Units,
}

/// The bucket that a refund goes to, and a debt when all are closed.
fn home(access: Access, linear: bool) -> Lane {
    match access {
        _ if linear => Lane::Leader,
        Access::Write => Lane::Writes,
        Access::Strong => Lane::Leader,
        Access::Eventual => Lane::Followers,
    }
}

/// What a bucket pays: an eventually consistent read is half a unit, and as much work for a replica
/// as a strongly consistent one.
#[inline]
fn load(access: Access, units: Units, linear: bool) -> Units {
    match (access, linear) {
        (Access::Eventual, false) => units.times(2),
        (Access::Write, true) => units.times(PARTITION_READS / PARTITION_WRITES),
        _ => units,
    }
}

#[inline]
fn counted(access: Access) -> usize {
    if access.writes() { WRITES } else { READS }
}

/// One partition at one time, for display. Rates cover the last second, in steps of 100 ms.
#[derive(Clone, Debug, PartialEq)]
pub struct PartitionSnapshot {
    /// Unique within its table or index; never used again.
    pub id: u64,
    /// First position of its range.
    pub first: u64,
    /// Last position of its range, inclusive. Two partitions share a position where an item
    /// collection is split.
    pub last: u64,
    /// First point of its range: below `first`'s item collection, or inside it.
    pub from: KeyPosition,
    /// Read units charged per second.
    pub reads_per_second: f64,
    /// Write units charged per second.
    pub writes_per_second: f64,
    /// Refusals per second of requests aimed at this partition, for whatever reason.
    pub throttles_per_second: u64,
    /// Share of its ceiling in the last whole window of 10 s, reads and writes together; up to 2
    /// when both are full.
    pub heat: f64,
    /// Whether it is about to split.
    pub health: Health,
    /// What is stored in it, as far as the model was told.
    pub bytes: u64,
    /// How far the writes of an index partition lag behind its table, in nanoseconds.
    pub lag: u64,
    /// Read units charged since the start.
    pub reads: f64,
    /// Write units charged since the start.
    pub writes: f64,
    /// Refusals since the start of requests aimed at this partition, for whatever reason.
    pub throttles: u64,
    /// The load on the partition since the start: admitted, or refused at its own ceiling.
    pub load: PartitionLoad,
}
