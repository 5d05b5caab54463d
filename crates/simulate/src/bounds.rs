//! Limits on a scenario's resources: memory for keys, pictures and requests that wait to be offered
//! again, time for requests that are sampled one by one.
//!
//! Estimates, made before anything is built, and rather high than low.

use std::collections::HashMap;

use heatsink_config_diagnostics::Fault;
use heatsink_physics::{Demand, Mode};

use crate::counts::Heat;
use crate::interleave::PARTS;
use crate::latency::backoff;
use crate::numbers::grouped;
use crate::retries::Retry;
use crate::scenario::{
    Drawn, Keys, Kind, Load, Loaded, MAX_RATE, ModeName, Operation, Rate, Remedy, Sort, Table, Workload,
    reads_again,
};
use crate::schedule::{Schedule, TICK};

/// The most memory of a run: 4 GB.
const MAX_BYTES: f64 = 4e9;

/// The most requests that are drawn one by one: about an hour of one core at 30 million a second
/// (docs/explain/performance.md).
const MAX_DRAWN: f64 = 1e11;

/// Bytes of a key's name: three words and some 20 letters with what the allocator adds; its weight
/// and its slot of the alias table.
const NAME_BYTES: f64 = 72.0 + 16.0;

/// Bytes of a recorded request: as it was read, with its sort key, and as it is offered.
const RECORDED_BYTES: f64 = 300.0;

const DAY: u64 = 86_400_000_000_000;

/// A list of the scenario, the number in it and the field that is to blame; the problem.
type Found = Option<((&'static str, usize, &'static str), String)>;

/// Refuses what is too much.
pub(crate) fn check(loaded: &Loaded, at: &dyn Fn(&str, usize, &str, String) -> Fault) -> Result<(), Fault> {
    match memory(loaded).or_else(|| time(loaded)) {
        Some(((list, nth, field), problem)) => Err(at(list, nth, field, problem)),
        None => Ok(()),
    }
}

fn memory(loaded: &Loaded) -> Found {
    let scenario = &loaded.scenario;
    let remedies: Vec<(usize, Option<&Remedy>)> = match scenario.remedy.len() {
        0 => vec![(0, None)],
        _ => scenario.remedy.iter().map(Some).enumerate().collect(),
    };
    // The pictures' figures of all runs are kept; the keys of one run at a time.
    let maps: f64 = remedies.iter().map(|(_, remedy)| map_bytes(loaded, *remedy)).sum();
    for (nth, remedy) in remedies {
        let each: Vec<f64> = scenario
            .workload
            .iter()
            .enumerate()
            .map(|(nth, load)| key_bytes(loaded, nth, load, remedy))
            .collect();
        let waiting: f64 = scenario.workload.iter().map(|load| retry_bytes(loaded, load, remedy)).sum();
        let total = maps + waiting + each.iter().sum::<f64>();
        if total <= MAX_BYTES {
            continue;
        }
        let problem = |what: &str| {
            format!(
                "that takes about {} of memory; expected at most {}: {what}",
                size(total),
                size(MAX_BYTES)
            )
        };
        if maps > total / 2.0 {
            return Some((("", 0, "step"), problem("a longer step, less capacity or fewer remedies")));
        }
        if waiting > total / 2.0 {
            let way_out = "reoffer = false, fewer attempts, a shorter backoff or lower rates";
            return Some((("", 0, "client"), problem(way_out)));
        }
        let largest = each.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1)).map_or(0, |(at, _)| at);
        let spread = remedy.is_some_and(|remedy| shards(remedy, &scenario.workload[largest]) > 1.0);
        return Some(if spread {
            (("remedy", nth, "shards"), problem("fewer shards or fewer keys"))
        } else {
            (("workload", largest, "name"), problem("fewer keys, parts or recorded requests"))
        });
    }
    None
}

/// Requests that wait for their next attempt, where clients offer them again: all that come within
/// the pauses of a request that is throttled each time.
fn retry_bytes(loaded: &Loaded, load: &Workload, remedy: Option<&Remedy>) -> f64 {
    let scenario = &loaded.scenario;
    if !scenario.client.reoffer || load.items.is_some() {
        return 0.0;
    }
    let attempts = usize::try_from(scenario.client.attempts.0).unwrap_or(usize::MAX);
    let first = scenario.client.backoff.0.max(TICK);
    let pauses: f64 = (1..attempts).map(|nth| (backoff(first, nth) + TICK) as f64).sum();
    let seconds = pauses.min(scenario.duration.0 as f64) / 1e9;
    let (_, busiest) = offered(loaded, load);
    // Equal requests of a part of a tick wait together.
    let apart = if is_alike(loaded, load) { busiest.min(PARTS as f64 * 1e9 / TICK as f64) } else { busiest };
    let table = loaded.scenario.table.iter().find(|table| table.name == load.table);
    let indexes = table.map_or(0, |table| table.index.len()) as f64;
    let asks = remedy.map_or(1.0, |remedy| shards(remedy, load)).max(1.0 + indexes);
    // A list grows to twice what it holds.
    let each =
        2.0 * (size_of::<Retry>() + size_of::<Vec<Demand>>()) as f64 + asks * size_of::<Demand>() as f64;
    apart * seconds * each
}

/// The heat of every partition at every step.
fn map_bytes(loaded: &Loaded, remedy: Option<&Remedy>) -> f64 {
    let scenario = &loaded.scenario;
    let steps = (scenario.duration.0 / loaded.step()).max(1) as f64;
    let raised = remedy.filter(|remedy| remedy.kind == Kind::RaiseCapacity);
    let partitions = |table: &Table| {
        let units = |own: Option<u64>, warm: Option<u64>, raised: Option<u64>| {
            own.unwrap_or(0).max(warm.unwrap_or(0)).max(raised.unwrap_or(0))
        };
        let read = units(
            table.read.filter(|_| table.mode == ModeName::Provisioned).map(|units| units.0),
            table.warm_read.map(|units| units.0),
            raised.and_then(|remedy| remedy.read).map(|units| units.0),
        );
        let write = units(
            table.write.filter(|_| table.mode == ModeName::Provisioned).map(|units| units.0),
            table.warm_write.map(|units| units.0),
            raised.and_then(|remedy| remedy.write).map(|units| units.0),
        );
        // A raise doubles their number, which may overshoot by nearly as much.
        let overshoot = if raised.is_some() { 2.0 } else { 1.0 };
        let own = (Mode::Provisioned { read, write }.partitions() as f64 * overshoot).min(10_000.0);
        own * (table.index.len() + 1) as f64
    };
    // Once as they are recorded, once for the report.
    2.0 * steps * scenario.table.iter().map(partitions).sum::<f64>() * size_of::<Heat>() as f64
}

/// Names, weights and positions of a workload's keys and of the index keys that its writes reach.
fn key_bytes(loaded: &Loaded, nth: usize, load: &Workload, remedy: Option<&Remedy>) -> f64 {
    if load.trace.is_some() {
        return RECORDED_BYTES * loaded.taken.get(nth).copied().unwrap_or_default() as f64;
    }
    let keys = load.key.as_ref().map_or(1.0, |keys| count(loaded, keys));
    let parts = load.part.as_ref().map_or(0.0, |keys| count(loaded, keys));
    let shards = remedy.map_or(1.0, |remedy| shards(remedy, load));
    let reads = load.operation.is_some_and(|operation| !operation.writes());
    // A scatter keeps a list for each shard besides.
    let positions = 8.0 * keys * shards * if reads && shards > 1.0 { 2.0 } else { 1.0 };
    let table = loaded.scenario.table.iter().find(|table| table.name == load.table);
    let index = |keys: &Option<Keys>| {
        let spread = remedy.and_then(|remedy| match remedy.kind {
            Kind::IndexSharding => remedy.shards,
            _ => remedy.index_shards,
        });
        let own = keys.as_ref().map_or(parts.max(keys_or(parts, load, loaded)), |keys| count(loaded, keys));
        own * (NAME_BYTES + 8.0) * spread.map_or(1.0, |shards| shards.0 as f64)
    };
    let indexes: f64 = match table {
        Some(table) if !reads => table.index.iter().map(|known| index(&known.key)).sum(),
        _ => 0.0,
    };
    let days = match remedy {
        Some(remedy) if remedy.kind == Kind::Bucket => loaded.scenario.duration.0.div_ceil(DAY) as f64,
        _ => 1.0,
    };
    let items = if let Some(Keys::Drawn(Drawn::File(file))) = &load.key {
        let list = loaded.lists.get(&file.path);
        4.0 * list.map_or(0.0, |list| list.iter().map(|(_, times)| f64::from(*times)).sum())
    } else {
        0.0
    };
    let dropped = match remedy {
        Some(remedy) if remedy.kind == Kind::GatewayCache && reads_again(load) => {
            let writes = |other: &&Workload| {
                other.table == load.table && other.operation.is_some_and(Operation::writes)
            };
            let others = scenario_keys(loaded, writes);
            (keys + others) * NAME_BYTES
        }
        _ => 0.0,
    };
    dropped + days * (keys * NAME_BYTES + parts * (NAME_BYTES + 10.0) + positions + indexes + items)
}

/// The keys of some workloads.
fn scenario_keys(loaded: &Loaded, which: impl Fn(&&Workload) -> bool) -> f64 {
    let keys = loaded.scenario.workload.iter().filter(which).filter_map(|load| load.key.as_ref());
    keys.map(|keys| count(loaded, keys)).sum()
}

/// An index without a key of its own is keyed by the part, or by the key where there is none.
fn keys_or(parts: f64, load: &Workload, loaded: &Loaded) -> f64 {
    if parts > 0.0 { parts } else { load.key.as_ref().map_or(1.0, |keys| count(loaded, keys)) }
}

fn shards(remedy: &Remedy, load: &Workload) -> f64 {
    match remedy.kind {
        Kind::WriteSharding | Kind::CounterSharding | Kind::Bucket | Kind::Range if load.index.is_none() => {
            remedy.shards.map_or(1.0, |shards| shards.0 as f64)
        }
        _ => 1.0,
    }
}

fn count(loaded: &Loaded, keys: &Keys) -> f64 {
    let number = match keys {
        Keys::Constant(_) => 1,
        Keys::Drawn(Drawn::Uniform(uniform)) => uniform.keys.0,
        Keys::Drawn(Drawn::Zipf(zipf) | Drawn::Sequential(zipf)) => zipf.keys.0,
        Keys::Drawn(Drawn::Rolling(rolling)) => rolling.keys.0,
        Keys::Drawn(Drawn::File(file)) => loaded.lists.get(&file.path).map_or(0, Vec::len) as u64,
    };
    number as f64
}

fn time(loaded: &Loaded) -> Found {
    let scenario = &loaded.scenario;
    let runs = scenario.remedy.len().max(1) as f64;
    let retries = if scenario.client.reoffer { scenario.client.attempts.0 as f64 } else { 1.0 };
    let each: Vec<f64> = scenario.workload.iter().map(|load| drawn(loaded, load) * runs * retries).collect();
    let total: f64 = each.iter().sum();
    if total <= MAX_DRAWN {
        return None;
    }
    let busiest = each.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1)).map_or(0, |(at, _)| at);
    let problem = format!(
        "all runs together would draw about {} billion requests one by one; expected at most {} billion, which is about an hour: \
         a shorter duration, lower rates or fewer remedies",
        grouped(total / 1e9),
        grouped(MAX_DRAWN / 1e9)
    );
    Some((("workload", busiest, "rate"), problem))
}

/// Requests of a workload that are not all alike, and are drawn one by one.
fn drawn(loaded: &Loaded, load: &Workload) -> f64 {
    let scenario = &loaded.scenario;
    if load.trace.is_some() || is_alike(loaded, load) {
        return 0.0;
    }
    let (due, _) = offered(loaded, load);
    match load.items {
        // Each tick tries again what waits, at most the window.
        Some(items) => {
            let ticks = scenario.duration.0 as f64 / TICK as f64;
            let window = load.window.map_or(100.0, |window| window.0 as f64);
            due.min(items.0 as f64) + window * ticks
        }
        None => due.min(MAX_RATE * scenario.duration.as_seconds()),
    }
}

/// Whether all requests of a workload are equal.
fn is_alike(loaded: &Loaded, load: &Workload) -> bool {
    let one = matches!(load.key, None | Some(Keys::Constant(_))) && load.part.is_none();
    let at_one_place = load.sort != Sort::Random || loaded.scenario.strict_keys;
    load.trace.is_none() && one && (at_one_place || load.operation == Some(Operation::Scan))
}

/// Requests of a workload: all of them, and those of its busiest second.
fn offered(loaded: &Loaded, load: &Workload) -> (f64, f64) {
    const POINTS: u64 = 1_000;
    let duration = loaded.scenario.duration.0;
    if load.trace.is_some() {
        let all = loaded
            .traces
            .iter()
            .filter(|(path, _)| Some(*path) == load.trace.as_ref())
            .flat_map(|(_, recorded)| recorded)
            .filter(|request| request.is_of(load));
        let mut seconds: HashMap<u64, f64> = HashMap::new();
        all.for_each(|one| *seconds.entry(one.at / 1_000_000_000).or_default() += one.weight() as f64);
        return (seconds.values().sum(), seconds.into_values().fold(0.0, f64::max));
    }
    let rate = load.rate.clone().unwrap_or(Load::Constant(Rate(1.0)));
    let mut schedule = Schedule::new(rate, load.burst.clone(), load.start, load.end);
    let tick = (duration / POINTS).max(1);
    let due: Vec<f64> = (0..POINTS).map(|nth| schedule.due(nth * tick, tick) as f64).collect();
    let busiest = due.iter().copied().fold(0.0, f64::max) * 1e9 / tick as f64;
    (due.iter().sum(), busiest)
}

fn size(bytes: f64) -> String {
    if bytes < 10e9 { format!("{:.1} GB", bytes / 1e9) } else { format!("{} GB", grouped(bytes / 1e9)) }
}
