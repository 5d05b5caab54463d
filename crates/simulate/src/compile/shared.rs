//! Requests that need not be sent: answers of caches, and writes that go as one.

use crate::cache::Cache;
use crate::combined::Combined;
use crate::key_sampler::KeySet;
use crate::key_traffic::{KeyTraffic, Share};
use crate::scenario::{
    Keys, Kind, Load, Loaded, Operation, Rate, Remedy, Workload, reads_again, reads_equal, writes_one_item,
};
use crate::schedule::Schedule;

/// Gateways, and nodes of a cache, where the scenario does not say.
const SEVERAL: u64 = 3;

/// Nanoseconds.
const MS: u64 = 1_000_000;

/// Whether reads of a workload are answered from a cache.
pub(super) fn caches(remedy: Option<&Remedy>, workload: &Workload) -> bool {
    match remedy.map(|remedy| remedy.kind) {
        Some(Kind::ReadCache) => reads_equal(workload),
        Some(Kind::GatewayCache) => reads_again(workload),
        _ => false,
    }
}

/// The cache in front of a workload whose reads are of these keys, at this rate.
pub(super) fn cache(
    loaded: &Loaded,
    remedy: &Remedy,
    workload: &Workload,
    (keys, reads): (&KeySet, &Schedule),
    entries: usize,
    by_part: bool,
) -> Cache {
    if remedy.kind == Kind::ReadCache {
        return read_cache(remedy, entries, by_part);
    }
    let max_age = remedy.max_age.map_or(100 * MS, |age| age.0);
    let gateways = remedy.gateways.map_or(SEVERAL, |gateways| gateways.0);
    let writes = |other: &&Workload| {
        other.table == workload.table
            && other.trace.is_none()
            && other.operation.is_some_and(Operation::writes)
    };
    let share = |other: &Workload| {
        let load = other.rate.clone().unwrap_or(Load::Constant(Rate(1.0)));
        let schedule = Schedule::new(load, other.burst.clone(), other.start, other.end);
        let all = Keys::Constant("all".to_owned());
        let of = KeySet::new(other.key.as_ref().unwrap_or(&all), loaded, 1);
        Share::new(schedule, keys, &of)
    };
    let writes = loaded.scenario.workload.iter().filter(writes).map(share).collect();
    let traffic = KeyTraffic::new(Share::new(reads.clone(), keys, keys), writes);
    Cache::new(max_age, gateways, entries, by_part).dropped_by(traffic)
}

pub(super) fn read_cache(remedy: &Remedy, entries: usize, by_part: bool) -> Cache {
    let ttl = remedy.ttl.map_or(1_000 * MS, |ttl| ttl.0);
    Cache::new(ttl, remedy.nodes.map_or(SEVERAL, |nodes| nodes.0), entries, by_part)
}

/// What combines the writes of a workload, if they are of one item.
pub(super) fn combined(remedy: Option<&Remedy>, workload: &Workload) -> Option<Combined> {
    let remedy = remedy.filter(|remedy| remedy.kind == Kind::Combine && writes_one_item(workload))?;
    let latency = remedy.latency.map_or(5 * MS, |latency| latency.0);
    Some(Combined::new(latency, remedy.gateways.map_or(SEVERAL, |gateways| gateways.0)))
}
