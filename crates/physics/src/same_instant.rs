//! Admits simultaneous requests that differ only by key position in one step. The counts are those
//! of requests that come one by one.
//!
//! No time passes between the requests, so the answer of one partition does not depend on the
//! others. As long as the gates that all requests share stay open, the requests of each partition
//! are counted together. Only heat samples are taken one by one.

use crate::batch::{alone, run};
use crate::demand::{Access, Demand};
use crate::hit_counts::HitCounts;
use crate::key_position::{KeyPosition, KeyRange};
use crate::partition::Run;
use crate::resource::Resource;
use crate::tables::Tables;
use crate::units::Units;

impl Tables {
    /// How many requests in a row, at most `count`, find room for all `demands` if they come now
    /// and each pays for them. Nothing is paid. Demands that are not [`KeyRange::At`] or share a
    /// table or index are not counted so: 1 if there is room for one.
    pub fn room(&mut self, now: u64, demands: &[Demand], count: u64) -> u64 {
        let mut room = if alone(demands) { count } else { count.min(1) };
        for demand in demands {
            let (Some(resource), rules, events) = self.parts(demand.on) else { continue };
            resource.pass(now, rules, events);
            let same = match demand.place {
                KeyRange::At(point) => match resource.run(&run(now, 0, count, demand), &point) {
                    (_, Ok(_), same) => same.max(1),
                    (_, Err(_), _) => 0,
                },
                _ => u64::from(resource.closed(now, demand) == [None; 2]),
            };
            room = room.min(same);
        }
        room
    }

    /// Offers one request for each of `points`, in their order and all of them now: `shared`, and
    /// `each` at that point. How many were admitted: the same counts, and the same state
    /// afterwards, as that many calls of [`Tables::offer`].
    pub fn offer_each(&mut self, now: u64, shared: &[Demand], each: &Demand, points: &[KeyPosition]) -> u64 {
        let mut hits = std::mem::take(&mut self.hit_counts);
        let together = self.offer_together(now, shared, each, points, &mut hits);
        self.hit_counts = hits;
        together.unwrap_or_else(|| {
            let mut demands = [shared, &[*each]].concat();
            let mut offer = |point: &KeyPosition| {
                if let Some(last) = demands.last_mut() {
                    last.place = KeyRange::At(*point);
                }
                self.offer(now, &demands).is_ok()
            };
            points.iter().filter(|point| offer(point)).count() as u64
        })
    }

    /// `None`, and nothing is changed, where one request's fate may depend on another's at some
    /// other partition.
    fn offer_together(
        &mut self,
        now: u64,
        shared: &[Demand],
        each: &Demand,
        points: &[KeyPosition],
        hits: &mut HitCounts,
    ) -> Option<u64> {
        let count = points.len() as u64;
        let apart = shared.iter().all(|demand| demand.on != each.on);
        if !apart || !alone(shared) || self.room(now, shared, count) < count {
            return None;
        }
        let (Some(resource), rules, events) = self.parts(each.on) else { return None };
        resource.pass(now, rules, events);
        // A request that is refused at its own point pays nothing to what it shares, which then has
        // room for another.
        let whole = !shared.is_empty();
        let admitted = resource.take_points(&run(now, 0, count, each), points, hits, whole)?;
        for demand in shared {
            if let KeyRange::At(point) = demand.place {
                self.take_run(&run(now, 0, count, demand), demand, point);
            }
        }
        Some(admitted)
    }
}

impl Resource {
    /// Admits and pays what each point's partition has room for; `whole`: all or, with `None`,
    /// nothing. Also `None` where the table's own gate may close on the way.
    fn take_points(
        &mut self,
        run: &Run,
        points: &[KeyPosition],
        hits: &mut HitCounts,
        whole: bool,
    ) -> Option<u64> {
        let Run { now, access, units, count, .. } = *run;
        if !self.capacity.open(now, access) || !self.capacity.bucket(access).covers(count, units) {
            return None;
        }
        hits.count(points, &self.ranges);
        let all = &mut self.ranges.all;
        let mut covered =
            |at: &usize| all[*at].covering(now, access, units, hits.counts[*at], self.linear).is_some();
        if whole && !hits.touched.iter().all(&mut covered) {
            hits.take().for_each(drop);
            return None;
        }
        let (mut admitted, mut sampled) = (0, false);
        for (at, count) in hits.take() {
            let partition = &mut self.ranges.all[at];
            admitted += partition.take_many(&Run { count, ..*run }, self.linear);
            sampled |= partition.heat.is_sampled();
        }
        self.capacity.pay_each(access, 0, admitted, units);
        if sampled {
            self.see_points(access, units, points, &hits.places);
        }
        Some(admitted)
    }

    fn see_points(&mut self, access: Access, units: Units, points: &[KeyPosition], places: &[usize]) {
        let work = crate::heat::work(access, units, self.linear);
        for (point, at) in points.iter().zip(places) {
            self.ranges.all[*at].heat.see(*point, access.writes(), work, 1, &mut self.random);
        }
    }
}
