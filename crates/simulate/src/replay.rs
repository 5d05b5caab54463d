//! Recorded requests as they are offered: each one, or as many as it stands for, at the physical
//! keys of a remedy.
//!
//! Not here: which remedy gives which key how many shards (`compile::trace`).

use std::sync::Arc;

use heatsink_physics::{Access, Demand, KeyPosition, KeyRange, ResourceId, SortKey, Units};

use crate::sizes::{share, units};

/// The recorded requests of one workload.
pub(crate) struct Replay {
    pub on: ResourceId,
    pub requests: Vec<Request>,
    /// The next one to offer.
    pub next: usize,
    /// By key: the positions of its physical keys.
    pub keys: Vec<Arc<[u64]>>,
}

/// A recorded request.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    /// Nanoseconds since the start.
    pub at: u64,
    pub access: Access,
    pub units: Units,
    /// How many requests it stands for.
    pub count: u64,
    /// Number of the key.
    pub key: u32,
    /// Number of the entry in a cache, for a read that a cache may answer.
    pub entry: Option<u32>,
    pub target: Target,
}

/// What a request reads or writes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Target {
    /// All keys.
    All,
    /// Keys that are not known: only the capacity of the table or index.
    Unknown,
    /// A page of so many items and bytes.
    Page { items: u64, bytes: u64 },
    /// An item. `shard` is its place among its key's shards, and `distinct` says that the requests
    /// that it stands for are of other items.
    Item { sort: SortKey, shard: u16, distinct: bool },
}

impl Replay {
    /// The physical requests of one request that stands for `count`: what is sent together, and how
    /// often.
    pub(crate) fn physical(&self, request: &Request, count: u64) -> Vec<(Vec<Demand>, u64)> {
        let none: Arc<[u64]> = Arc::new([]);
        let shards = self.keys.get(request.key as usize).unwrap_or(&none);
        let demand = |place, units| Demand { on: self.on, access: request.access, place, units };
        let first = shards.first().copied().unwrap_or_default();
        match request.target {
            Target::All => vec![(vec![demand(KeyRange::All, request.units)], count)],
            Target::Unknown => vec![(vec![demand(KeyRange::Unknown, request.units)], count)],
            Target::Page { items, bytes } if shards.len() > 1 => {
                let of_shard = share(items.max(1), shards.len() as u64) * bytes / items.max(1);
                let each = units(request.access, of_shard);
                let all = shards.iter().map(|position| demand(KeyRange::collection(*position), each));
                vec![(all.collect(), count)]
            }
            Target::Page { .. } => vec![(vec![demand(KeyRange::collection(first), request.units)], count)],
            Target::Item { sort, shard, distinct } => {
                let item =
                    |position| vec![demand(KeyRange::At(KeyPosition::new(position, sort)), request.units)];
                let all = shards.len() as u64;
                if !distinct || count == 1 || all <= 1 {
                    return vec![(item(shards.get(usize::from(shard)).copied().unwrap_or(first)), count)];
                }
                // Other items fall on other shards: evenly, from the recorded one's on.
                let nth = |at: u64| (u64::from(shard) + at) % all;
                (0..all.min(count))
                    .map(|at| {
                        let times = count / all + u64::from(at < count % all);
                        let position = usize::try_from(nth(at)).ok().and_then(|nth| shards.get(nth));
                        (item(position.copied().unwrap_or(first)), times)
                    })
                    .collect()
            }
        }
    }

    /// The most physical requests that one request sends at once.
    pub(crate) fn at_once(&self) -> usize {
        let pages = self.requests.iter().filter(|request| matches!(request.target, Target::Page { .. }));
        let shards = |request: &Request| self.keys.get(request.key as usize).map_or(1, |shards| shards.len());
        pages.map(shards).max().unwrap_or(1).max(1)
    }

    /// Units of one request, on average.
    pub(crate) fn units(&self) -> f64 {
        let (mut sum, mut requests) = (0.0, 0);
        for request in &self.requests {
            for (asks, times) in self.physical(request, request.count) {
                sum += asks.iter().map(|ask| ask.units.to_f64()).sum::<f64>() * times as f64;
            }
            requests += request.count;
        }
        sum / requests.max(1) as f64
    }
}
