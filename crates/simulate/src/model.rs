//! The partitions of one run: [`heatsink_physics`] in the words of this crate.

use std::sync::Arc;

use heatsink_physics::{
    Access as Physical, Batch, Demand, Mode, Place, Point, ResourceId, Rules, SortKey, Tables, Units,
};

/// A table or an index of a run, by number.
pub(crate) type ResourceNumber = usize;

/// Read or write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Strong,
    Eventual,
    Write,
}

/// Which partitions an ask falls on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Spot {
    /// One item: the position of its partition key, the place of its sort key.
    Item(u64, u64),
    /// An item collection.
    Collection(u64),
    /// All.
    Everything,
}

/// What a request asks of one table or index.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Ask {
    pub on: ResourceNumber,
    pub access: Access,
    pub spot: Spot,
    pub units: Units,
}

/// A table or index as a run sets it up.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Resource {
    /// Table, then index where it is one.
    pub table: String,
    pub index: Option<String>,
    /// As it was made.
    pub made: Mode,
    /// As it is for the run.
    pub mode: Mode,
    pub local_indexes: bool,
    pub warm: (Option<u64>, Option<u64>),
}

/// A partition's range and what went through it since the start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Seen {
    pub id: u64,
    pub first: u64,
    pub reads: f64,
    pub writes: f64,
    pub throttles: u64,
}

pub(crate) struct Model {
    tables: Tables,
    names: Vec<(Arc<str>, Option<Arc<str>>)>,
    ids: Vec<ResourceId>,
}

impl Model {
    pub(crate) fn new(resources: &[Resource], strict: bool, seed: u64) -> Model {
        let mut tables = Tables::new(Rules { seed, one_key_one_partition: strict, ..Rules::default() });
        let mut names: Vec<(Arc<str>, Option<Arc<str>>)> = Vec::new();
        for resource in resources.iter().filter(|resource| resource.index.is_none()) {
            let name: Arc<str> = Arc::from(resource.table.as_str());
            let own = tables.create(0, Arc::clone(&name), resource.made);
            tables.update(0, own, resource.mode);
            tables.set_local_indexes(own, resource.local_indexes);
            let indexes: Vec<_> = resources
                .iter()
                .filter(|other| other.table == resource.table)
                .filter_map(|index| Some((Arc::from(index.index.as_deref()?), index.mode)))
                .collect();
            tables.set_indexes(0, &name, &indexes);
        }
        for resource in resources {
            names.push((Arc::from(resource.table.as_str()), resource.index.as_deref().map(Arc::from)));
        }
        let mut ids = Vec::new();
        for (resource, (table, index)) in resources.iter().zip(&names) {
            let id = tables.id(table, index.as_deref()).unwrap_or_default();
            let (reads, writes) = resource.warm;
            tables.warm_up(0, id, reads.unwrap_or(0), writes.unwrap_or(0));
            ids.push(id);
        }
        Model { tables, names, ids }
    }

    /// Admits all asks or none.
    pub(crate) fn admit(&mut self, now: u64, asks: &[Ask]) -> bool {
        self.admit_many(now, asks, 1) == 1
    }

    /// Admits the same asks `count` times at one moment; how many times they were admitted.
    pub(crate) fn admit_many(&mut self, now: u64, asks: &[Ask], count: u64) -> u64 {
        let demands: Vec<Demand> = asks.iter().map(|ask| self.demand(ask)).collect();
        self.tables.offer_batch(Batch { first: now, step: 0, count }, &demands).admitted
    }

    fn demand(&self, ask: &Ask) -> Demand {
        Demand {
            on: self.ids[ask.on],
            access: match ask.access {
                Access::Strong => Physical::Strong,
                Access::Eventual => Physical::Eventual,
                Access::Write => Physical::Write,
            },
            place: match ask.spot {
                Spot::Item(position, sort) => Place::At(Point::new(position, SortKey::ordinal(sort))),
                Spot::Collection(position) => Place::collection(position),
                Spot::Everything => Place::Even,
            },
            units: ask.units,
        }
    }

    /// Every partition of a resource, in order.
    pub(crate) fn partitions(&mut self, now: u64, on: ResourceNumber) -> Vec<Seen> {
        let (table, index) = &self.names[on];
        let found = self.tables.snapshot(now, table).unwrap_or_default();
        let resource = found.into_iter().find(|resource| resource.index == *index);
        let partitions = resource.map(|resource| resource.partitions).unwrap_or_default();
        partitions
            .iter()
            .map(|partition| Seen {
                id: partition.id,
                first: partition.first,
                reads: partition.reads,
                writes: partition.writes,
                throttles: partition.throttles,
            })
            .collect()
    }
}

/// Where a sort key lies among others: its first eight bytes.
pub(crate) fn sort_number(sort: &str) -> u64 {
    let mut eight = [0; 8];
    for (place, byte) in eight.iter_mut().zip(sort.bytes()) {
        *place = byte;
    }
    u64::from_be_bytes(eight)
}
