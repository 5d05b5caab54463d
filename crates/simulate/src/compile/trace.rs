//! The stream of a recorded workload.
//!
//! Of the remedies a read cache, write sharding and what Heatsink advises act on requests that a
//! gateway recorded, and those on capacity on all. The others leave them as they were recorded.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use heatsink_layout::{By, Hash, Layout, SortKey as LayoutKey, Strategy, codec};
use heatsink_physics::{Access, SortKey, Units, position};

use super::resources::FindResource;
use super::shared::read_cache;
use crate::advised::Advised;
use crate::replay::{Replay, Request, Target};
use crate::scenario::trace::{More, Recorded};
use crate::scenario::{Consistency, Kind, Loaded, Operation, Remedy, Workload};
use crate::sizes::{access, units};
use crate::stream::{Source, Stream};

/// A recorded workload.
pub(super) fn stream(
    loaded: &Loaded,
    remedy: Option<&Remedy>,
    advised: Option<&Advised>,
    nth: usize,
    workload: &Workload,
    find: FindResource<'_>,
) -> Stream {
    let on = find(&workload.table, workload.index.as_deref());
    let recorded = workload.trace.as_ref().and_then(|path| loaded.traces.get(path));
    let mut keys = Keys { remedy, advised, workload, numbers: HashMap::new(), places: Vec::new() };
    let cached = remedy.filter(|remedy| remedy.kind == Kind::ReadCache);
    let mut entries: HashMap<(u32, &str), u32> = HashMap::new();
    let of_workload = || recorded.into_iter().flatten().filter(|request| request.is_of(workload));
    let often = repeated(of_workload());
    let mut requests = Vec::new();
    for request in of_workload() {
        let key = keys.number(request);
        let shards = keys.places.get(key as usize).map_or(1, |places| places.len());
        let access = access_of(workload, request);
        let more = request.more.as_ref();
        let target = match request.operation {
            Operation::Scan => Target::All,
            _ if request.key.is_empty() => Target::Unknown,
            Operation::Query => Target::Page {
                items: more.map_or(1, |more| u64::from(more.items)),
                bytes: request.bytes as u64,
            },
            _ => Target::Item {
                sort: sort_key(request),
                shard: shard(&request.sort, shards),
                distinct: !often.contains(&(&*request.key, &*request.sort)),
            },
        };
        let entry = cached
            .filter(|_| access == Access::Eventual && more.is_some() && !request.sort.is_empty())
            .map(|_| {
                let next = u32::try_from(entries.len()).unwrap_or(u32::MAX);
                *entries.entry((key, request.sort.as_str())).or_insert(next)
            });
        let units = match more {
            Some(More { units, .. }) => Units::from_billionths(units.saturating_mul(1_000_000)),
            None => units(access, request.bytes as u64),
        };
        requests.push(Request { at: request.at, access, units, count: request.weight(), key, entry, target });
    }
    let cache = cached.map(|remedy| read_cache(remedy, entries.len(), false));
    let operation = of_workload().next().map_or(Operation::Put, |first| first.operation);
    let replay = Replay { on, requests, next: 0, keys: keys.places };
    Stream {
        name: workload.name.clone(),
        workload: nth,
        operation,
        scatter: replay.at_once() > 1,
        source: Source::Trace(replay),
        cache,
        combined: None,
        loader: None,
    }
}

/// The keys of a workload, by number.
struct Keys<'a> {
    remedy: Option<&'a Remedy>,
    advised: Option<&'a Advised>,
    workload: &'a Workload,
    numbers: HashMap<&'a str, u32>,
    places: Vec<Arc<[u64]>>,
}

impl<'a> Keys<'a> {
    fn number(&mut self, request: &'a Recorded) -> u32 {
        if let Some(known) = self.numbers.get(&*request.key) {
            return *known;
        }
        let number = u32::try_from(self.places.len()).unwrap_or(u32::MAX);
        let shards = if request.more.is_some() { self.shards(&request.key) } else { 1 };
        let place = |shard| {
            let suffix = codec::suffix(request.key.as_bytes(), shard);
            position(format!("{}{suffix}", request.key).as_bytes())
        };
        self.places.push((0..shards).map(place).collect());
        self.numbers.insert(&request.key, number);
        number
    }

    /// How many shards the remedy gives a key of the table. Keys of indexes keep theirs.
    fn shards(&self, key: &str) -> u16 {
        if self.workload.index.is_some() {
            return 1;
        }
        let of_advice = self.advised.and_then(|advised| advised.shards(&self.workload.table, key));
        let of_remedy = self.remedy.filter(|remedy| {
            remedy.kind == Kind::WriteSharding && remedy.key.as_deref().is_none_or(|only| only == key)
        });
        let of_remedy = of_remedy.and_then(|remedy| u16::try_from(remedy.shards?.0).ok());
        of_advice.or(of_remedy).unwrap_or(1)
    }
}

/// Keys and sort keys that come more than once. One that comes once and stands for several requests
/// stands for as many items: had they been of one item, it would have been drawn again.
fn repeated<'a>(requests: impl Iterator<Item = &'a Recorded>) -> HashSet<(&'a str, &'a str)> {
    let mut seen: HashMap<(&str, &str), bool> = HashMap::new();
    for request in requests {
        seen.entry((&request.key, &request.sort)).and_modify(|again| *again = true).or_insert(false);
    }
    seen.into_iter().filter(|(_, again)| *again).map(|(which, _)| which).collect()
}

fn access_of(workload: &Workload, request: &Recorded) -> Access {
    let strong =
        request.more.as_ref().is_some_and(|more| more.strong) || workload.consistency == Consistency::Strong;
    match access(workload, request.operation) {
        Access::Eventual if strong => Access::Strong,
        access => access,
    }
}

/// Where an item lies in its collection. Hashed sort keys that grow lie in the order of time,
/// behind all others.
fn sort_key(request: &Recorded) -> SortKey {
    match &request.more {
        Some(More { hashed: true, grows: true, .. }) => SortKey::ordinal(u64::MAX / 2 + request.at),
        Some(More { hashed: true, .. }) => SortKey::ordinal(position(request.sort.as_bytes()) / 2),
        _ => SortKey::bytes(request.sort.as_bytes()),
    }
}

/// The shard of an item: Heatsink's own hash of its whole sort key.
fn shard(sort: &str, shards: usize) -> u16 {
    let shards = u16::try_from(shards).unwrap_or(u16::MAX);
    let layout =
        Layout { strategy: Strategy::calculated(By::SortKey), shards, hash: Hash::JumpXxh3, version: 1 };
    if shards > 1 { layout.shard_of(Some(LayoutKey::S(sort))) } else { 0 }
}
