//! A table, or one global index of a table: its own bucket and its partitions. Indexes have partitions of their own
//! that behave like a table's (PHYSICS §2.8).

use std::ops::Range;
use std::sync::Arc;

use crate::bucket::Bucket;
use crate::demand::{Access, Cause, Place};
use crate::mode::Mode;
use crate::partition::{Partition, PartitionSnapshot};
use crate::units::Units;

#[derive(Clone, Debug)]
pub(crate) struct Resource {
    mode: Mode,
    read: Bucket,
    write: Bucket,
    /// By first position; the first starts at 0. A split will be an insert.
    partitions: Vec<Partition>,
}

impl Resource {
    pub(crate) fn new(now: u64, mode: Mode) -> Self {
        let count = mode.partitions();
        let first = |nth: u64| {
            let position = (u128::from(nth) << 64) / u128::from(count);
            u64::try_from(position).unwrap_or(u64::MAX)
        };
        Resource {
            mode,
            read: mode.bucket(now, Access::Read),
            write: mode.bucket(now, Access::Write),
            partitions: (0..count).map(|nth| Partition::new(now, nth, first(nth))).collect(),
        }
    }

    pub(crate) fn mode(&self) -> Mode {
        self.mode
    }

    /// Changes the capacity. The partitions stay as they are: they are never merged (PHYSICS §2.5), and splits are not
    /// modelled yet.
    pub(crate) fn change(&mut self, now: u64, mode: Mode) {
        mode.change(now, Access::Read, &mut self.read);
        mode.change(now, Access::Write, &mut self.write);
        self.mode = mode;
    }

    /// Why a demand cannot be admitted now: nothing, one or both of its gates.
    pub(crate) fn closed(
        &mut self,
        now: u64,
        access: Access,
        place: Place,
    ) -> impl Iterator<Item = Cause> + use<> {
        let range = self.touched(place);
        let ceiling = !self.partitions[range].iter_mut().all(|partition| partition.open(now, access));
        let own = !self.bucket(access).open(now);
        let own = own.then_some(self.mode.cause(access));
        ceiling.then_some(Cause::KeyRange).into_iter().chain(own)
    }

    pub(crate) fn pay(&mut self, now: u64, access: Access, place: Place, units: Units) {
        let range = self.touched(place);
        let count = range.len();
        self.bucket(access).pay(units);
        for (nth, partition) in self.partitions[range].iter_mut().enumerate() {
            partition.pay(now, access, units.share(nth, count));
        }
    }

    pub(crate) fn refund(&mut self, now: u64, access: Access, place: Place, units: Units) {
        let range = self.touched(place);
        let count = range.len();
        self.bucket(access).refund(units);
        for (nth, partition) in self.partitions[range].iter_mut().enumerate() {
            partition.refund(now, access, units.share(nth, count));
        }
    }

    pub(crate) fn throttled(&mut self, now: u64, place: Place) {
        let range = self.touched(place);
        for partition in &mut self.partitions[range] {
            partition.throttled(now);
        }
    }

    pub(crate) fn snapshot(&mut self, now: u64, index: Option<Arc<str>>) -> ResourceSnapshot {
        let firsts: Vec<u64> = self.partitions.iter().map(|partition| partition.first).collect();
        let lasts = firsts.iter().skip(1).map(|next| next - 1).chain([u64::MAX]);
        let partitions = self.partitions.iter_mut().zip(lasts);
        ResourceSnapshot {
            index,
            mode: self.mode,
            partitions: partitions.map(|(partition, last)| partition.snapshot(now, last)).collect(),
        }
    }

    fn bucket(&mut self, access: Access) -> &mut Bucket {
        match access {
            Access::Read => &mut self.read,
            Access::Write => &mut self.write,
        }
    }

    fn touched(&self, place: Place) -> Range<usize> {
        match place {
            Place::At(position) => {
                let after = self.partitions.partition_point(|partition| partition.first <= position);
                after.saturating_sub(1)..after
            }
            Place::Even => 0..self.partitions.len(),
            Place::Unknown => 0..0,
        }
    }
}

/// The partitions of a table or of one global index at a moment.
#[derive(Clone, Debug, PartialEq)]
pub struct ResourceSnapshot {
    /// The global index's name; `None` for the table itself.
    pub index: Option<Arc<str>>,
    /// Its capacity mode.
    pub mode: Mode,
    /// Its partitions, in order of their ranges.
    pub partitions: Vec<PartitionSnapshot>,
}
