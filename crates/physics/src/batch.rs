//! Admits many equal requests at even intervals in one step. The counts are those of requests that
//! come one by one.
//!
//! The work is proportional to the number of changes between open and closed, not to the number of
//! requests: a bucket that stays open, or stays closed, is one step.

use crate::demand::{Cause, Demand};
use crate::key_position::{KeyPosition, KeyRange};
use crate::partition::Run;
use crate::tables::Tables;

/// `count` equal requests: the first at `first`, each next one `step` nanoseconds later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batch {
    /// When the first request comes, in nanoseconds on the model's clock.
    pub first: u64,
    /// Nanoseconds between two requests. 0: all at once.
    pub step: u64,
    /// How many.
    pub count: u64,
}

impl Batch {
    /// `count` requests spread over `span` nanoseconds from `from` on: two batches, as the
    /// distances need not come out even; the distances of the one are a nanosecond longer than the
    /// other's.
    pub fn spread(from: u64, span: u64, count: u64) -> [Batch; 2] {
        let (step, longer) = (span / count.max(1), span % count.max(1));
        let first = Batch { first: from, step: step.saturating_add(1), count: longer };
        let after = from.saturating_add(first.step.saturating_mul(longer));
        [first, Batch { first: after, step, count: count - longer }]
    }
}

/// The result of a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Requests admitted.
    pub admitted: u64,
    /// Requests throttled, by what ran out first, in the order of [`Cause::ALL`].
    pub causes: [u64; 5],
    /// How many of those an index refused, not the table.
    pub by_index: u64,
}

impl Tally {
    /// Requests throttled.
    pub fn throttled(&self) -> u64 {
        self.causes.iter().sum()
    }

    fn refuse(&mut self, cause: Cause, index: bool, count: u64) {
        self.causes[cause as usize] += count;
        self.by_index += if index { count } else { 0 };
    }
}

impl std::ops::AddAssign for Tally {
    fn add_assign(&mut self, other: Tally) {
        self.admitted += other.admitted;
        self.by_index += other.by_index;
        for (sum, more) in self.causes.iter_mut().zip(other.causes) {
            *sum += more;
        }
    }
}

impl Tables {
    /// Offers the same demands many times: the same counts, and the same state afterwards, as that
    /// many calls of [`Tables::offer`]. (Rates in a snapshot are told as of the last request of a
    /// run.)
    ///
    /// Later calls must not go back before the last request of the batch. Demands that are not
    /// [`KeyRange::At`], or that share a table or index, are offered one by one.
    pub fn offer_batch(&mut self, batch: Batch, demands: &[Demand]) -> Tally {
        let mut tally = Tally::default();
        let even = alone(demands);
        let mut done = 0;
        while done < batch.count {
            let now = batch.first.saturating_add(batch.step.saturating_mul(done));
            let left = batch.count - done;
            done += if even {
                self.offer_run(now, batch.step, left, demands, &mut tally)
            } else {
                match self.offer(now, demands) {
                    Ok(()) => tally.admitted += 1,
                    Err(throttle) => tally.refuse(throttle.cause, throttle.index, 1),
                }
                1
            };
        }
        tally
    }

    /// Offers up to `left` requests that have the same result. Returns their number, at least one.
    fn offer_run(&mut self, now: u64, step: u64, left: u64, demands: &[Demand], tally: &mut Tally) -> u64 {
        let mut count = left;
        for demand in demands {
            let (Some(resource), rules, events) = self.parts(demand.on) else { continue };
            resource.pass(now, rules, events);
            // A run ends before the next event of a table or index that it touches.
            count = count.min(before(resource.next, now, step));
        }
        for demand in demands {
            let KeyRange::At(point) = demand.place else { continue };
            let Some(resource) = self.get(demand.on) else { continue };
            let (at, verdict, alike) = resource.run(&run(now, step, count, demand), &point);
            // The result holds for at least one request.
            count = count.min(alike.max(1));
            if let Err(cause) = verdict {
                let last = now.saturating_add(step.saturating_mul(count - 1));
                resource.refuse(last, at, demand.access, point, demand.units, (cause, count));
                tally.refuse(cause, resource.index.is_some(), count);
                return count;
            }
        }
        for demand in demands {
            let KeyRange::At(point) = demand.place else { continue };
            self.take_run(&run(now, step, count, demand), demand, point);
        }
        tally.admitted += count;
        count
    }

    pub(crate) fn take_run(&mut self, run: &Run, demand: &Demand, point: KeyPosition) {
        let Some(resource) = self.get(demand.on) else { return };
        if let (_, Ok(passed), _) = resource.run(run, &point) {
            resource.take_each(passed, *run, point);
        }
    }
}

/// Whether every demand is at a point, on a table or index of its own.
pub(crate) fn alone(demands: &[Demand]) -> bool {
    let points = demands.iter().all(|demand| matches!(demand.place, KeyRange::At(_)));
    let alone = |nth: usize| demands[nth + 1..].iter().all(|other| other.on != demands[nth].on);
    points && (0..demands.len()).all(alone)
}

pub(crate) fn run(now: u64, step: u64, count: u64, demand: &Demand) -> Run {
    Run { now, step, count, access: demand.access, units: demand.units }
}

/// How many requests come before `end`, the first of them now.
fn before(end: u64, now: u64, step: u64) -> u64 {
    match end.saturating_sub(now).checked_sub(1) {
        Some(room) => room.checked_div(step).map_or(u64::MAX, |gaps| gaps.saturating_add(1)),
        None => 1,
    }
}
