//! The partitions of one run: [`heatsink_physics`] in the words of this crate.

use std::sync::Arc;

use heatsink_physics::{Access as Physical, Demand, Mode, Place, Tables, Units};

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
}

impl Model {
    pub(crate) fn new(resources: &[Resource], _strict: bool, _seed: u64) -> Model {
        let mut tables = Tables::default();
        let mut names: Vec<(Arc<str>, Option<Arc<str>>)> = Vec::new();
        for resource in resources.iter().filter(|resource| resource.index.is_none()) {
            let name: Arc<str> = Arc::from(resource.table.as_str());
            tables.create(0, Arc::clone(&name), resource.made);
            tables.update(0, &name, resource.mode);
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
        Model { tables, names }
    }

    /// Admits all asks or none.
    pub(crate) fn admit(&mut self, now: u64, asks: &[Ask]) -> bool {
        let demands: Vec<Demand> = asks
            .iter()
            .map(|ask| Demand {
                table: self.names[ask.on].0.clone(),
                index: self.names[ask.on].1.clone(),
                access: if ask.access == Access::Write { Physical::Write } else { Physical::Read },
                place: match ask.spot {
                    Spot::Item(position, _) | Spot::Collection(position) => Place::At(position),
                    Spot::Everything => Place::Even,
                },
                units: ask.units,
            })
            .collect();
        self.tables.admit(now, &demands).is_ok()
    }

    /// Admits the same asks `count` times at one moment; how many times they were admitted.
    pub(crate) fn admit_many(&mut self, now: u64, asks: &[Ask], count: u64) -> u64 {
        (0..count).filter(|_| self.admit(now, asks)).count() as u64
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
