//! Compiles a scenario and one remedy to a run: resources, and streams of demands.
//!
//! The remedy takes effect here. Its effect on capacity is in `resources`, its effect on keys in
//! `key_placement`, its effect on requests that need not be sent in `shared`. Recorded requests are in
//! `trace`.

mod key_placement;
mod ranges;
mod resources;
mod shards;
mod shared;
mod trace;

use crate::advised::Advised;
use crate::model::{Model, Resource};
use crate::scenario::{Client, Kind, Length, Load, Loaded, Operation, Rate, Remedy, Size, Sort};
use crate::schedule::Schedule;
use crate::stream::{Loader, Source, Stream};
use key_placement::Placement;
use resources::FindResource;

/// A day in nanoseconds: a bucket strategy then continues with the next key.
const DAY: u64 = 86_400_000_000_000;

/// The most cells; more are sampled one by one.
const MAX_CELLS: usize = 64;

/// What one run is made of.
pub(crate) struct Run {
    pub resources: Vec<Resource>,
    pub model: Model,
    pub streams: Vec<Stream>,
    pub client: Client,
}

/// A run of `loaded` with `remedy`; without one, a run of the scenario unchanged. `advised`: shards
/// for the keys of traces.
pub(crate) fn compile(loaded: &Loaded, remedy: Option<&Remedy>, advised: Option<&Advised>) -> Run {
    let scenario = &loaded.scenario;
    let resources = resources::resources(scenario, remedy);
    let model = Model::new(&resources, is_strict(loaded, remedy), scenario.seed);
    let find = |table: &str, index: Option<&str>| {
        let found = |resource: &Resource| resource.table == table && resource.index.as_deref() == index;
        model.id(resources.iter().position(found).unwrap_or(0))
    };
    let mut streams = Vec::new();
    for (nth, workload) in scenario.workload.iter().enumerate() {
        if workload.trace.is_some() {
            streams.push(trace::stream(loaded, remedy, advised, nth, workload, &find));
            continue;
        }
        let days = if remedy.is_some_and(|remedy| remedy.kind == Kind::Bucket) {
            scenario.duration.0.div_ceil(DAY)
        } else {
            1
        };
        for day in 0..days {
            let (mut start, mut end) =
                (workload.start.unwrap_or_default().0, workload.end.map_or(u64::MAX, |end| end.0));
            if days > 1 {
                (start, end) = (start.max(day * DAY), end.min((day + 1) * DAY));
            }
            if start < end {
                streams.push(stream(loaded, remedy, &find, nth, day, (start, end)));
            }
        }
    }
    Run { client: scenario.client.clone(), resources, model, streams }
}

/// Whether one key stays at one partition's ceiling in this run.
fn is_strict(loaded: &Loaded, remedy: Option<&Remedy>) -> bool {
    loaded.scenario.strict_keys && remedy.is_none_or(|remedy| remedy.kind != Kind::Split)
}

fn stream(
    loaded: &Loaded,
    remedy: Option<&Remedy>,
    find: FindResource<'_>,
    nth: usize,
    day: u64,
    (start, end): (u64, u64),
) -> Stream {
    let workload = &loaded.scenario.workload[nth];
    let operation = workload.operation.unwrap_or(Operation::Get);
    let placed = Placement::new(loaded, remedy, find, workload, day);
    let sizes = match &workload.item_bytes {
        Some(Size::Between(between)) => Some((between.from.0, between.to.0)),
        _ => None,
    };
    let load = workload.rate.clone().unwrap_or(Load::Constant(Rate(1.0)));
    let schedule = Schedule::new(load, workload.burst.clone(), Some(Length(start)), Some(Length(end)));
    let strict = is_strict(loaded, remedy);
    let free = workload.sort == Sort::Random && !strict && operation != Operation::Scan;
    let by_part = operation == Operation::Get && workload.part.is_some();
    let cached = shared::caches(remedy, workload);
    // Cells are by shard, and entries of a cache by part.
    let cells = if sizes.is_some() || free || (cached && by_part) { None } else { placed.cells(MAX_CELLS) };
    let entries = || cells.as_ref().map_or(placed.cacheable(by_part), |(_, cells)| cells.len());
    let cache = remedy.filter(|_| cached).map(|remedy| {
        shared::cache(loaded, remedy, workload, (placed.keys(), &schedule), entries(), by_part)
    });
    let loader = workload
        .items
        .map(|items| Loader { items: items.0, window: workload.window.map_or(100, |window| window.0) });
    let combined = shared::combined(remedy, workload);
    let (operation, scatter) = (placed.operation, placed.scatter);
    let source = match cells {
        Some((weights, cells)) => {
            Source::Cells { schedule, weights, cells, ascending: workload.sort == Sort::Ascending }
        }
        None => {
            let flat = strict || workload.sort == Sort::One;
            let each = placed.each(workload.sort, sizes);
            let same_instant = each.same_instant(flat).filter(|_| {
                !scatter && cache.is_none() && combined.is_none() && !loaded.scenario.client.reoffer
            });
            Source::Sampled { schedule, each: Box::new(each), same_instant }
        }
    };
    let name = if day == 0 { workload.name.clone() } else { format!("{}/{day}", workload.name) };
    Stream { name, workload: nth, operation, source, scatter, cache, combined, loader }
}
