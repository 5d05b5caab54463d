//! The partitions of one run: [`heatsink_physics`], configured by a scenario and a remedy.

use std::sync::Arc;

use heatsink_physics::{
    Batch, Demand, KeyPosition, KeyRange, Mode, PartitionLoad, ResourceId, Rules, Tables,
};

/// A table or index as a run sets it up.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Resource {
    /// Table, then index where it is one.
    pub table: String,
    pub index: Option<String>,
    /// Its mode when it was created.
    pub made: Mode,
    /// Its mode during the run.
    pub mode: Mode,
    pub local_indexes: bool,
    /// Warm throughput: reads, writes.
    pub warm: (Option<u64>, Option<u64>),
}

/// A partition's range and what went through it since the start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Seen {
    pub from: KeyPosition,
    pub reads: f64,
    pub writes: f64,
    /// Refusals for whatever reason.
    pub throttles: u64,
    pub load: PartitionLoad,
}

pub(crate) struct Model {
    tables: Tables,
    /// By resource number.
    names: Vec<(String, Option<Arc<str>>)>,
    ids: Vec<ResourceId>,
}

impl Model {
    pub(crate) fn new(resources: &[Resource], strict: bool, seed: u64) -> Model {
        let mut tables = Tables::new(Rules { seed, one_key_one_partition: strict, ..Rules::default() });
        for table in resources.iter().filter(|resource| resource.index.is_none()) {
            let on = tables.create(0, Arc::from(table.table.as_str()), table.made);
            tables.set_local_indexes(on, table.local_indexes);
            let modes = |mode: fn(&Resource) -> Mode| -> Vec<(Arc<str>, Mode)> {
                let own = resources.iter().filter(|other| other.table == table.table);
                own.filter_map(|index| Some((Arc::from(index.index.as_deref()?), mode(index)))).collect()
            };
            tables.set_indexes(0, &table.table, &modes(|index| index.made));
            tables.update(0, on, table.mode);
            tables.set_indexes(0, &table.table, &modes(|index| index.mode));
            if table.warm != (None, None) {
                tables.warm_up(0, on, table.warm.0.unwrap_or(0), table.warm.1.unwrap_or(0));
            }
        }
        let ids =
            resources.iter().filter_map(|resource| tables.id(&resource.table, resource.index.as_deref()));
        let ids = ids.collect();
        let name = |resource: &Resource| (resource.table.clone(), resource.index.as_deref().map(Arc::from));
        Model { tables, ids, names: resources.iter().map(name).collect() }
    }

    /// The table or index of that number.
    pub(crate) fn id(&self, on: usize) -> ResourceId {
        self.ids[on]
    }

    /// Admits all demands or none.
    #[inline]
    pub(crate) fn admit(&mut self, now: u64, demands: &[Demand]) -> bool {
        self.tables.offer(now, demands).is_ok()
    }

    /// Admits the same demands `count` times at one moment; how many times they were admitted.
    pub(crate) fn admit_many(&mut self, now: u64, demands: &[Demand], count: u64) -> u64 {
        // What touches all partitions is offered one by one, until one is refused: no time passes,
        // so all others are too.
        if demands.iter().any(|demand| demand.place == KeyRange::All) {
            return (0..count).take_while(|_| self.admit(now, demands)).count() as u64;
        }
        self.tables.offer_batch(Batch { first: now, step: 0, count }, demands).admitted
    }

    /// How many requests in a row find room for the demands at one moment, at most `count`.
    pub(crate) fn room(&mut self, now: u64, demands: &[Demand], count: u64) -> u64 {
        self.tables.room(now, demands, count)
    }

    /// Offers one request for each point, all at one moment; how many were admitted.
    pub(crate) fn admit_each(
        &mut self,
        now: u64,
        shared: &[Demand],
        each: &Demand,
        points: &[KeyPosition],
    ) -> u64 {
        self.tables.offer_each(now, shared, each, points)
    }

    /// Every partition of a resource, in order.
    pub(crate) fn partitions(&mut self, now: u64, on: usize) -> Vec<Seen> {
        let (table, index) = &self.names[on];
        let found = self.tables.snapshot(now, table).unwrap_or_default();
        let resource = found.into_iter().find(|resource| resource.index == *index);
        let partitions = resource.map(|resource| resource.partitions).unwrap_or_default();
        let seen = |partition: &heatsink_physics::PartitionSnapshot| Seen {
            from: partition.from,
            reads: partition.reads,
            writes: partition.writes,
            throttles: partition.throttles,
            load: partition.load,
        };
        partitions.iter().map(seen).collect()
    }
}
