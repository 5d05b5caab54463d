//! Every table and index with its buckets, and the gate before them.

use std::collections::HashMap;
use std::sync::Arc;

use crate::demand::{Demand, Throttle};
use crate::mode::Mode;
use crate::resource::{Resource, ResourceSnapshot};
use crate::units::Units;

/// All tables of one store. Keeps no clock: `now` is nanoseconds on one monotonic clock, the same for every call.
#[derive(Clone, Debug, Default)]
pub struct Tables {
    tables: HashMap<Arc<str>, Table>,
}

#[derive(Clone, Debug)]
struct Table {
    own: Resource,
    indexes: Vec<(Arc<str>, Resource)>,
}

impl Tables {
    /// A new table without indexes; replaces one of that name.
    pub fn create(&mut self, now: u64, name: Arc<str>, mode: Mode) {
        self.tables.insert(name, Table { own: Resource::new(now, mode), indexes: Vec::new() });
    }

    /// Changes a table's capacity. Does nothing if it already is so, or if there is no such table.
    pub fn update(&mut self, now: u64, name: &str, mode: Mode) {
        if let Some(table) = self.tables.get_mut(name)
            && table.own.mode() != mode
        {
            table.own.change(now, mode);
        }
    }

    /// Makes a table's global indexes those given: new ones start fresh, known ones change their capacity, others go.
    pub fn set_indexes(&mut self, now: u64, name: &str, indexes: &[(Arc<str>, Mode)]) {
        let Some(table) = self.tables.get_mut(name) else { return };
        table.indexes.retain(|(index, _)| indexes.iter().any(|(kept, _)| kept == index));
        for (index, mode) in indexes {
            match table.indexes.iter_mut().find(|(known, _)| known == index) {
                Some((_, resource)) if resource.mode() == *mode => {}
                Some((_, resource)) => resource.change(now, *mode),
                None => table.indexes.push((Arc::clone(index), Resource::new(now, *mode))),
            }
        }
    }

    /// Forgets a table and its indexes.
    pub fn remove(&mut self, name: &str) {
        self.tables.remove(name);
    }

    /// Admits all the demands or none. Each must find tokens above zero in its table's or index's bucket and in its
    /// partitions' buckets; it need not find all it will cost (post-paid). An admitted demand pays its lower bound
    /// (`units`) at once, so that many requests in flight see each other; [`Tables::debit`] settles the rest.
    ///
    /// A demand on an unknown table or index is admitted: the store answers for it.
    ///
    /// # Errors
    /// What ran out, for every demand that was refused; then nothing was paid.
    pub fn admit(&mut self, now: u64, demands: &[Demand]) -> Result<(), Vec<Throttle>> {
        let mut throttles = Vec::new();
        for (nth, demand) in demands.iter().enumerate() {
            let Some(resource) = self.resource(demand) else { continue };
            let mut refused = false;
            for cause in resource.closed(now, demand.access, demand.place) {
                refused = true;
                throttles.push(Throttle {
                    demand: nth,
                    table: Arc::clone(&demand.table),
                    index: demand.index.clone(),
                    access: demand.access,
                    cause,
                    provisioned: resource.mode().provisioned(),
                });
            }
            if refused {
                resource.throttled(now, demand.place);
            }
        }
        if !throttles.is_empty() {
            return Err(throttles);
        }
        for demand in demands {
            if let Some(resource) = self.resource(demand) {
                resource.pay(now, demand.access, demand.place, demand.units);
            }
        }
        Ok(())
    }

    /// Settles an admitted demand: it really cost `units`, of which the lower bound is paid. More goes into debt, less
    /// is given back (nothing at all for a request that the store refused as invalid).
    pub fn debit(&mut self, now: u64, demand: &Demand, units: Units) {
        let Some(resource) = self.resource(demand) else { return };
        if units > demand.units {
            resource.pay(now, demand.access, demand.place, units.less(demand.units));
        } else if units < demand.units {
            resource.refund(now, demand.access, demand.place, demand.units.less(units));
        }
    }

    /// The partitions of a table, then of each of its global indexes; `None` if there is no such table.
    pub fn snapshot(&mut self, now: u64, name: &str) -> Option<Vec<ResourceSnapshot>> {
        let table = self.tables.get_mut(name)?;
        let mut found = vec![table.own.snapshot(now, None)];
        found.extend(
            table.indexes.iter_mut().map(|(index, resource)| resource.snapshot(now, Some(Arc::clone(index)))),
        );
        Some(found)
    }

    fn resource(&mut self, demand: &Demand) -> Option<&mut Resource> {
        let table = self.tables.get_mut(&*demand.table)?;
        match &demand.index {
            None => Some(&mut table.own),
            Some(name) => {
                table.indexes.iter_mut().find(|(index, _)| index == name).map(|(_, resource)| resource)
            }
        }
    }
}
