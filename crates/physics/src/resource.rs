//! A table, or one global index of a table: its own bucket and its partitions. Indexes have
//! partitions of their own that behave like a table's (docs/explain/partitions.md#indexes).

use std::collections::HashMap;
use std::sync::Arc;

use crate::capacity::Capacity;
use crate::demand::{Access, Cause, Demand, ResourceId};
use crate::event::Events;
use crate::hash::position;
use crate::heat::{WINDOW, work};
use crate::key_position::{KeyPosition, KeyRange};
use crate::mode::Mode;
use crate::partition::{Health, Lane, PartitionSnapshot, Run};
use crate::quotas::Changes;
use crate::random::Random;
use crate::ranges::Ranges;
use crate::rules::Rules;
use crate::units::Units;

#[derive(Clone, Debug)]
pub(crate) struct Resource {
    pub id: ResourceId,
    pub table: Arc<str>,
    pub index: Option<Arc<str>>,
    pub capacity: Capacity,
    pub ranges: Ranges,
    /// When the next window ends or the next split is due: until then nothing happens but requests.
    pub(crate) next: u64,
    pub(crate) window_end: u64,
    pub(crate) windows: u64,
    pub(crate) random: Random,
    pub local_indexes: bool,
    /// Bytes by the position of the item collection; only under local indexes.
    pub collections: HashMap<u64, u64>,
    /// How often its capacity was changed.
    pub changes: Changes,
    pub(crate) linear: bool,
}

/// Which gate a request went through.
#[derive(Clone, Copy)]
pub(crate) struct Passed {
    at: usize,
    lane: Lane,
}

impl Resource {
    pub(crate) fn new(
        now: u64,
        id: ResourceId,
        table: Arc<str>,
        index: Option<Arc<str>>,
        mode: Mode,
        rules: &Rules,
    ) -> Self {
        let name = format!("{table}/{}", index.as_deref().unwrap_or_default());
        let window_end = (now / WINDOW).saturating_add(1).saturating_mul(WINDOW);
        Resource {
            id,
            capacity: Capacity::new(now, mode, rules.quotas.table),
            ranges: Ranges::even(now, mode.partitions(), index.is_some()),
            next: window_end,
            window_end,
            windows: 0,
            random: Random::seeded(rules.seed ^ position(name.as_bytes())),
            local_indexes: false,
            collections: HashMap::new(),
            changes: Changes::default(),
            linear: rules.legacy_linear,
            table,
            index,
        }
    }

    /// Lets time pass up to `now`.
    #[inline]
    pub(crate) fn pass(&mut self, now: u64, rules: &Rules, events: &mut Events) {
        if now >= self.next {
            self.advance(now, rules, events);
        }
    }

    /// Whether a request at one point may pass now.
    #[inline]
    pub(crate) fn gate(
        &mut self,
        now: u64,
        access: Access,
        point: &KeyPosition,
    ) -> (usize, Result<Passed, Cause>) {
        let at = self.ranges.find(point);
        let Some(lane) = self.ranges.all[at].lane(now, access, self.linear) else {
            return (at, Err(Cause::KeyRange));
        };
        if self.capacity.open(now, access) {
            (at, Ok(Passed { at, lane }))
        } else {
            (at, Err(self.capacity.cause(access)))
        }
    }

    #[inline]
    pub(crate) fn take(
        &mut self,
        now: u64,
        passed: Passed,
        access: Access,
        point: KeyPosition,
        units: Units,
    ) {
        let work = work(access, units, self.linear);
        self.capacity.pay(access, units);
        let partition = &mut self.ranges.all[passed.at];
        partition.pay(now, passed.lane, access, units, self.linear);
        partition.heat.add(work);
        partition.heat.see(point, access.writes(), work, 1, &mut self.random);
    }

    #[inline]
    pub(crate) fn refuse(
        &mut self,
        now: u64,
        at: usize,
        access: Access,
        point: KeyPosition,
        units: Units,
        (cause, count): (Cause, u64),
    ) {
        let partition = &mut self.ranges.all[at];
        if cause == Cause::KeyRange {
            partition.refused(now, access, units, count);
        } else {
            partition.throttled(now, count);
        }
        let work = work(access, units, self.linear);
        partition.heat.see(point, access.writes(), work, count, &mut self.random);
    }

    /// Why a demand cannot be admitted now: nothing, one or both of its gates.
    pub(crate) fn closed(&mut self, now: u64, demand: &Demand) -> [Option<Cause>; 2] {
        let Demand { access, place, .. } = demand;
        let range = self.ranges.touched(place);
        let linear = self.linear;
        let mut touched = self.ranges.all[range].iter_mut();
        let open = touched.all(|partition| partition.lane(now, *access, linear).is_some());
        let own = !self.capacity.open(now, *access);
        [(!open).then_some(Cause::KeyRange), own.then(|| self.capacity.cause(*access))]
    }

    /// Pays for an admitted demand, or what it cost beyond what was paid.
    pub(crate) fn pay(&mut self, now: u64, demand: &Demand, units: Units) {
        let Demand { access, place, .. } = *demand;
        self.capacity.pay(access, units);
        let range = self.ranges.touched(&place);
        let count = range.len();
        for (nth, partition) in self.ranges.all[range].iter_mut().enumerate() {
            let share = units.share(nth, count);
            let work = work(access, share, self.linear);
            partition.pay_late(now, access, share, self.linear);
            partition.heat.add(work);
            if let KeyRange::At(point) = place {
                partition.heat.see(point, access.writes(), work, 1, &mut self.random);
            }
        }
    }

    pub(crate) fn refund(&mut self, now: u64, demand: &Demand, units: Units) {
        let Demand { access, place, .. } = *demand;
        self.capacity.refund(access, units);
        let range = self.ranges.touched(&place);
        let count = range.len();
        for (nth, partition) in self.ranges.all[range].iter_mut().enumerate() {
            let share = units.share(nth, count);
            partition.refund(now, access, share, self.linear);
            partition.heat.take_back(work(access, share, self.linear));
        }
    }

    pub(crate) fn throttled(&mut self, now: u64, demand: &Demand) {
        let Demand { access, place, units, .. } = *demand;
        if let KeyRange::At(point) = place {
            let at = self.ranges.find(&point);
            let open = self.ranges.all[at].lane(now, access, self.linear).is_some();
            let cause = if open { self.capacity.cause(access) } else { Cause::KeyRange };
            return self.refuse(now, at, access, point, units, (cause, 1));
        }
        let range = self.ranges.touched(&place);
        let count = range.len();
        for (nth, partition) in self.ranges.all[range].iter_mut().enumerate() {
            if partition.lane(now, access, self.linear).is_some() {
                partition.throttled(now, 1);
            } else {
                partition.refused(now, access, units.share(nth, count), 1);
            }
        }
    }

    // For requests at even distances, the first of which comes now.

    /// How many in a row fare as the first of them does, and how that is.
    pub(crate) fn run(&mut self, run: &Run, point: &KeyPosition) -> (usize, Result<Passed, Cause>, u64) {
        let Run { now, step, access, units, .. } = *run;
        let at = self.ranges.find(point);
        let (lane, count) = self.ranges.all[at].run(now, access, step, units, self.linear);
        let Some(lane) = lane else { return (at, Err(Cause::KeyRange), count) };
        if self.capacity.open(now, access) {
            let count = count.min(self.capacity.bucket(access).open_for(step, units));
            (at, Ok(Passed { at, lane }), count)
        } else {
            // While the partition stays open, it is the table that refuses: an open partition pays
            // nothing then.
            (at, Err(self.capacity.cause(access)), self.capacity.bucket(access).closed_for(step))
        }
    }

    pub(crate) fn take_each(&mut self, passed: Passed, run: Run, point: KeyPosition) {
        let Run { step, count, access, units, .. } = run;
        let work = work(access, units, self.linear);
        self.capacity.pay_each(access, step, count, units);
        let partition = &mut self.ranges.all[passed.at];
        partition.pay_each(passed.lane, run, self.linear);
        partition.heat.add(work.saturating_mul(count));
        partition.heat.see(point, access.writes(), work, count, &mut self.random);
    }

    pub(crate) fn snapshot(&mut self, now: u64) -> ResourceSnapshot {
        let bounds: Vec<(KeyPosition, u64)> =
            (0..self.ranges.all.len()).map(|at| self.ranges.bounds(at)).collect();
        let partitions = self.ranges.all.iter_mut().zip(bounds);
        let [reads, writes] = self.capacity.served();
        let [warm_reads, warm_writes] = self.capacity.warm();
        ResourceSnapshot {
            index: self.index.clone(),
            mode: self.capacity.mode(),
            reads,
            writes,
            warm_reads,
            warm_writes,
            partitions: partitions
                .map(|(partition, (from, last))| partition.snapshot(now, from, last))
                .collect(),
        }
    }

    /// When the first split is due, if one is.
    pub(crate) fn due(&self) -> Option<u64> {
        let due = |health: Health| match health {
            Health::Splitting(due) => Some(due),
            Health::Calm | Health::Stuck(_) => None,
        };
        self.ranges.all.iter().filter_map(|partition| due(partition.health)).min()
    }
}

/// The partitions of a table or of one global index at a moment.
#[derive(Clone, Debug, PartialEq)]
pub struct ResourceSnapshot {
    /// The global index's name; `None` for the table itself.
    pub index: Option<Arc<str>>,
    /// Its capacity mode.
    pub mode: Mode,
    /// Read units per second that it takes in now, over all partitions.
    pub reads: u64,
    /// Write units per second that it takes in now, over all partitions.
    pub writes: u64,
    /// Read units per second of its warm throughput
    /// (docs/explain/partitions.md#how-much-a-table-may-take).
    pub warm_reads: u64,
    /// Write units per second of its warm throughput.
    pub warm_writes: u64,
    /// Its partitions, in order of their ranges.
    pub partitions: Vec<PartitionSnapshot>,
}
