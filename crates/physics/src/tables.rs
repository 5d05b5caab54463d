//! All tables and indexes, with their token buckets and admission.

use std::collections::HashMap;
use std::sync::Arc;

use crate::demand::{Demand, ResourceId, Throttle};
use crate::event::{Event, Events};
use crate::hit_counts::HitCounts;
use crate::key_position::KeyRange;
use crate::mode::Mode;
use crate::resource::{Resource, ResourceSnapshot};
use crate::rules::Rules;
use crate::units::Units;

/// All tables of one store. Keeps no clock: `now` is nanoseconds on one monotonic clock, the same
/// for every call.
#[derive(Clone, Debug, Default)]
pub struct Tables {
    pub(crate) rules: Rules,
    /// By [`ResourceId`]; ids are not used again.
    pub(crate) resources: Vec<Option<Box<Resource>>>,
    pub(crate) names: HashMap<Arc<str>, Named>,
    pub(crate) events: Events,
    /// How often tables and their capacity were changed from outside.
    pub(crate) revision: u64,
    /// Kept for its memory; empty between calls.
    pub(crate) hit_counts: HitCounts,
}

#[derive(Clone, Debug)]
pub(crate) struct Named {
    pub own: ResourceId,
    pub indexes: Vec<(Arc<str>, ResourceId)>,
}

impl Tables {
    /// No tables yet.
    pub fn new(rules: Rules) -> Self {
        Tables { rules, ..Tables::default() }
    }

    /// A new table without indexes; replaces one of that name.
    pub fn create(&mut self, now: u64, name: Arc<str>, mode: Mode) -> ResourceId {
        self.remove(&name);
        self.revision += 1;
        let own = self.add(now, Arc::clone(&name), None, mode);
        self.names.insert(name, Named { own, indexes: Vec::new() });
        own
    }

    /// Changes the capacity of a table or index, at once. Does nothing if it already is so, or if
    /// it is gone.
    pub fn update(&mut self, now: u64, on: ResourceId, mode: Mode) {
        let (Some(resource), rules, events) = self.parts(on) else { return };
        resource.pass(now, rules, events);
        if resource.capacity.mode() != mode {
            resource.change(now, mode, events);
            self.revision += 1;
        }
    }

    /// Raises the warm throughput of a table or index, units per second, with the partitions for
    /// it, at once. Never lowers it (docs/explain/partitions.md#how-much-a-table-may-take).
    pub fn warm_up(&mut self, now: u64, on: ResourceId, reads: u64, writes: u64) {
        let (Some(resource), rules, events) = self.parts(on) else { return };
        resource.pass(now, rules, events);
        resource.capacity.warm_up(now, [reads, writes]);
        resource.grow(now, events);
        self.revision += 1;
    }

    /// Says whether a table has local indexes: then no split falls inside its item collections
    /// (docs/explain/partitions.md#split-for-heat).
    pub fn set_local_indexes(&mut self, table: ResourceId, any: bool) {
        if let Some(resource) = self.get(table) {
            resource.local_indexes = any;
        }
    }

    /// Makes a table's global indexes those given: new ones start fresh, known ones change their
    /// capacity, others go. Their ids, in the order given; none if there is no such table.
    pub fn set_indexes(&mut self, now: u64, name: &str, indexes: &[(Arc<str>, Mode)]) -> Vec<ResourceId> {
        let Some((table, mut named)) = self.names.remove_entry(name) else { return Vec::new() };
        let before = std::mem::take(&mut named.indexes);
        for (index, mode) in indexes {
            let id = match before.iter().find(|(known, _)| known == index) {
                Some((_, id)) => {
                    self.update(now, *id, *mode);
                    *id
                }
                None => self.add(now, Arc::clone(&table), Some(Arc::clone(index)), *mode),
            };
            named.indexes.push((Arc::clone(index), id));
        }
        for (_, id) in before {
            if named.indexes.iter().all(|(_, kept)| *kept != id) {
                self.drop(id);
            }
        }
        let ids = named.indexes.iter().map(|(_, id)| *id).collect();
        self.revision += 1;
        self.names.insert(table, named);
        ids
    }

    /// Forgets a table and its indexes.
    pub fn remove(&mut self, name: &str) {
        let Some(named) = self.names.remove(name) else { return };
        self.revision += 1;
        self.drop(named.own);
        for (_, index) in named.indexes {
            self.drop(index);
        }
    }

    /// The table, or its global index, of that name.
    pub fn id(&self, table: &str, index: Option<&str>) -> Option<ResourceId> {
        let named = self.names.get(table)?;
        match index {
            None => Some(named.own),
            Some(index) => named.indexes.iter().find(|(name, _)| **name == *index).map(|(_, id)| *id),
        }
    }

    /// The names of a table or index: the table's, and the index's if it is one.
    pub fn name(&self, on: ResourceId) -> Option<(&Arc<str>, Option<&Arc<str>>)> {
        let resource = self.resources.get(on.0 as usize)?.as_deref()?;
        Some((&resource.table, resource.index.as_ref()))
    }

    /// Admits all the demands or none. Each must find tokens above zero in its table's or index's
    /// bucket and in its partitions' buckets; it need not find all it will cost (post-paid). An
    /// admitted demand pays its `units` at once; where those were a lower bound, [`Tables::debit`]
    /// settles the rest.
    ///
    /// A write and its index entries are one list, the table's own demand first: entries are
    /// applied later, within what an index partition's queue holds, and a full queue refuses the
    /// write (back-pressure, docs/explain/partitions.md#indexes).
    ///
    /// A demand on a table or index that is gone is admitted: the store answers for it.
    ///
    /// # Errors
    /// The first that ran out; then nothing was paid. [`Tables::admit`] tells all.
    #[inline]
    pub fn offer(&mut self, now: u64, demands: &[Demand]) -> Result<(), Throttle> {
        if let [demand] = demands
            && let KeyRange::At(point) = demand.place
        {
            let (Some(resource), rules, events) = self.parts(demand.on) else { return Ok(()) };
            resource.pass(now, rules, events);
            let (at, verdict) = resource.gate(now, demand.access, &point);
            return match verdict {
                Ok(passed) => {
                    resource.take(now, passed, demand.access, point, demand.units);
                    Ok(())
                }
                Err(cause) => {
                    resource.refuse(now, at, demand.access, point, demand.units, (cause, 1));
                    Err(throttle(0, demand, resource, cause))
                }
            };
        }
        for (nth, demand) in demands.iter().enumerate() {
            let (Some(resource), rules, events) = self.parts(demand.on) else { continue };
            resource.pass(now, rules, events);
            if let Some(cause) = resource.closed(now, demand).into_iter().flatten().next() {
                resource.throttled(now, demand);
                return Err(throttle(nth, demand, resource, cause));
            }
        }
        self.pay(now, demands);
        Ok(())
    }

    /// As [`Tables::offer`], and tells everything that ran out.
    ///
    /// # Errors
    /// What ran out, for every demand that was refused; then nothing was paid.
    pub fn admit(&mut self, now: u64, demands: &[Demand]) -> Result<(), Vec<Throttle>> {
        let mut throttles = Vec::new();
        for (nth, demand) in demands.iter().enumerate() {
            let (Some(resource), rules, events) = self.parts(demand.on) else { continue };
            resource.pass(now, rules, events);
            let before = throttles.len();
            let causes = resource.closed(now, demand).into_iter().flatten();
            throttles.extend(causes.map(|cause| throttle(nth, demand, resource, cause)));
            if throttles.len() > before {
                resource.throttled(now, demand);
            }
        }
        if !throttles.is_empty() {
            return Err(throttles);
        }
        self.pay(now, demands);
        Ok(())
    }

    fn pay(&mut self, now: u64, demands: &[Demand]) {
        for demand in demands {
            if let Some(resource) = self.get(demand.on) {
                resource.pay(now, demand, demand.units);
            }
        }
    }

    /// Settles an admitted demand: it really cost `units`, of which the lower bound is paid. More
    /// goes into debt, less is given back (nothing at all for a request that the store refused as
    /// invalid).
    pub fn debit(&mut self, now: u64, demand: &Demand, units: Units) {
        let (Some(resource), rules, events) = self.parts(demand.on) else { return };
        resource.pass(now, rules, events);
        if units > demand.units {
            resource.pay(now, demand, units.less(demand.units));
        } else if units < demand.units {
            resource.refund(now, demand, demand.units.less(units));
        }
    }

    /// Lets time pass for all tables, so that what is due happens even where no request comes.
    /// Requests do so by themselves for what they touch.
    pub fn advance(&mut self, now: u64) {
        for resource in self.resources.iter_mut().flatten() {
            resource.pass(now, &self.rules, &mut self.events);
        }
    }

    /// Takes what happened since the last call, oldest first within a table or index. At most the
    /// latest 10,000 events are kept.
    pub fn take_events(&mut self) -> Vec<Event> {
        self.events.take()
    }

    /// The partitions of a table, then of each of its global indexes; `None` if there is no such
    /// table.
    pub fn snapshot(&mut self, now: u64, name: &str) -> Option<Vec<ResourceSnapshot>> {
        let named = self.names.get(name)?;
        let ids: Vec<ResourceId> =
            [named.own].into_iter().chain(named.indexes.iter().map(|(_, id)| *id)).collect();
        self.advance(now);
        Some(ids.into_iter().filter_map(|id| Some(self.get(id)?.snapshot(now))).collect())
    }

    fn add(&mut self, now: u64, table: Arc<str>, index: Option<Arc<str>>, mode: Mode) -> ResourceId {
        let id = ResourceId(u32::try_from(self.resources.len()).unwrap_or(u32::MAX));
        let resource = Resource::new(now, id, table, index, mode, &self.rules);
        self.resources.push(Some(Box::new(resource)));
        id
    }

    fn drop(&mut self, id: ResourceId) {
        if let Some(slot) = self.resources.get_mut(id.0 as usize) {
            *slot = None;
        }
    }

    #[inline]
    pub(crate) fn get(&mut self, id: ResourceId) -> Option<&mut Resource> {
        self.resources.get_mut(id.0 as usize)?.as_deref_mut()
    }

    #[inline]
    pub(crate) fn parts(&mut self, id: ResourceId) -> (Option<&mut Resource>, &Rules, &mut Events) {
        let resource = self.resources.get_mut(id.0 as usize).and_then(|slot| slot.as_deref_mut());
        (resource, &self.rules, &mut self.events)
    }
}

fn throttle(demand: usize, of: &Demand, resource: &Resource, cause: crate::demand::Cause) -> Throttle {
    Throttle {
        demand,
        on: of.on,
        index: resource.index.is_some(),
        access: of.access,
        cause,
        provisioned: resource.capacity.mode().provisioned(),
    }
}
