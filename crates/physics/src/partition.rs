//! One partition: a range of the number line with a ceiling for reads and one for writes.

use crate::bucket::Bucket;
use crate::demand::Access;
use crate::meter::Meter;
use crate::units::Units;

/// Most read units per second of one partition (PHYSICS §1.1).
pub const PARTITION_READS: u64 = 3_000;
/// Most write units per second of one partition (PHYSICS §1.1).
pub const PARTITION_WRITES: u64 = 1_000;

/// A ceiling holds one second's worth and no 300 s credit: AWS's own runs show a flat 1,000 writes/s on one key
/// (PHYSICS §3.3, an inference).
const CEILING_SECONDS: u64 = 1;

#[derive(Clone, Debug)]
pub(crate) struct Partition {
    id: u64,
    /// First position of its range; the range ends before the next partition's.
    pub(crate) first: u64,
    read: Bucket,
    write: Bucket,
    reads: Meter,
    writes: Meter,
    throttles: Meter,
}

impl Partition {
    pub(crate) fn new(now: u64, id: u64, first: u64) -> Self {
        Partition {
            id,
            first,
            read: Bucket::new(now, PARTITION_READS, CEILING_SECONDS),
            write: Bucket::new(now, PARTITION_WRITES, CEILING_SECONDS),
            reads: Meter::default(),
            writes: Meter::default(),
            throttles: Meter::default(),
        }
    }

    pub(crate) fn open(&mut self, now: u64, access: Access) -> bool {
        self.bucket(access).open(now)
    }

    pub(crate) fn pay(&mut self, now: u64, access: Access, units: Units) {
        self.bucket(access).pay(units);
        self.meter(access).add(now, units.billionths());
    }

    /// Gives back what was paid too much.
    pub(crate) fn refund(&mut self, now: u64, access: Access, units: Units) {
        self.bucket(access).refund(units);
        self.meter(access).take_back(now, units.billionths());
    }

    pub(crate) fn throttled(&mut self, now: u64) {
        self.throttles.add(now, 1);
    }

    pub(crate) fn snapshot(&mut self, now: u64, last: u64) -> PartitionSnapshot {
        let rate = |meter: &mut Meter| meter.last_second(now) as f64 / 1e9;
        PartitionSnapshot {
            id: self.id,
            first: self.first,
            last,
            reads_per_second: rate(&mut self.reads),
            writes_per_second: rate(&mut self.writes),
            throttles_per_second: self.throttles.last_second(now),
            reads: self.reads.total() as f64 / 1e9,
            writes: self.writes.total() as f64 / 1e9,
            throttles: self.throttles.total(),
        }
    }

    fn meter(&mut self, access: Access) -> &mut Meter {
        match access {
            Access::Read => &mut self.reads,
            Access::Write => &mut self.writes,
        }
    }

    fn bucket(&mut self, access: Access) -> &mut Bucket {
        match access {
            Access::Read => &mut self.read,
            Access::Write => &mut self.write,
        }
    }
}

/// One partition at a moment, for display. Rates cover the last second, in steps of 100 ms.
#[derive(Clone, Debug, PartialEq)]
pub struct PartitionSnapshot {
    /// Unique within its table or index; never used again.
    pub id: u64,
    /// First position of its range.
    pub first: u64,
    /// Last position of its range, inclusive.
    pub last: u64,
    /// Read units charged per second.
    pub reads_per_second: f64,
    /// Write units charged per second.
    pub writes_per_second: f64,
    /// Refusals per second of requests aimed at this partition, for whatever reason.
    pub throttles_per_second: u64,
    /// Read units charged since the start.
    pub reads: f64,
    /// Write units charged since the start.
    pub writes: f64,
    /// Refusals since the start.
    pub throttles: u64,
}
