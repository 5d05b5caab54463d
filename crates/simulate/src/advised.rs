//! The remedy "Heatsink, advised": how many shards Heatsink recommends for the hot key of a
//! scenario, or for each hot key of its traces.
//!
//! Not here: the recommendation itself (`heatsink-heat`, which `heatsink shards` and the gateway
//! ask too).

use std::collections::HashMap;

use heatsink_heat::advice::diagnose;
use heatsink_heat::{Asked, DEFAULT_RISK, advise};

use crate::numbers::percent;
use crate::partitions::{of_an_index, partitions};
use crate::recorded_load::hottest;
use crate::scenario::{
    Index, Keys, Kind, Load, Loaded, Operation, Rate, Remedy, Sort, Table, Whole, Workload,
};
use crate::schedule::Schedule;
use crate::sizes::item_bytes;

/// The most keys whose advice is told.
const TOLD: usize = 3;

/// The risks that some partition is overloaded at the peak, in the order in which they are
/// accepted.
const RISKS: [f64; 6] = [DEFAULT_RISK, 0.05, 0.1, 0.25, 0.5, 0.75];

/// What is advised.
pub(crate) struct Advised {
    /// The remedy that does it.
    pub remedy: Remedy,
    /// Shards of the keys of traces, by table and key.
    of_traces: HashMap<String, HashMap<String, u16>>,
}

impl Advised {
    /// Of a scenario. `asked`: the remedy as the scenario has it.
    pub(crate) fn of(loaded: &Loaded, asked: &Remedy) -> Advised {
        if loaded.traces.is_empty() {
            return Advised { remedy: of_rates(loaded, asked), of_traces: HashMap::new() };
        }
        let mut of_traces: HashMap<String, HashMap<String, u16>> = HashMap::new();
        let mut told = Vec::new();
        let mut counts = Vec::new();
        for ((table, key), seen) in hottest(loaded) {
            let diagnosis = diagnose(&seen);
            if let Some(shards) =
                diagnosis.shards().filter(|_| asked.key.as_deref().is_none_or(|only| only == key))
            {
                of_traces.entry(table.to_owned()).or_default().insert(key.to_owned(), shards);
                counts.push(shards);
            }
            if told.len() < TOLD {
                told.push(format!("{key:?} of {table}: {}", diagnosis.sentence));
            }
        }
        let name = match counts.as_slice() {
            [] => "Heatsink, advised: nothing".to_owned(),
            [one] => format!("Heatsink, advised N = {one}"),
            several => format!("Heatsink, advised N for {} keys", several.len()),
        };
        let remedy = named(asked, Kind::Advised, &name, told.join("; "));
        Advised { remedy, of_traces }
    }

    /// How many shards a key of a trace gets; `None` where nothing is advised.
    pub(crate) fn shards(&self, table: &str, key: &str) -> Option<u16> {
        self.of_traces.get(table)?.get(key).copied()
    }
}

fn named(asked: &Remedy, kind: Kind, name: &str, breaks: String) -> Remedy {
    let name = asked.name.clone().unwrap_or_else(|| name.to_owned());
    let breaks = asked.breaks.clone().or(Some(breaks).filter(|breaks| !breaks.is_empty()));
    Remedy { kind, name: Some(name), breaks, ..asked.clone() }
}

/// The key that a scenario's workloads name, and what they ask of it.
struct Named<'a> {
    table: &'a Table,
    key: &'a str,
    asked: Asked,
    /// Whether all updates go to one item, as those of a counter do.
    is_counter: bool,
}

/// The remedy for the hottest key that is named.
fn of_rates(loaded: &Loaded, asked: &Remedy) -> Remedy {
    let nothing = |why: &str| named(asked, Kind::Nothing, "Heatsink, advised: nothing", why.to_owned());
    let mut keys = keys(loaded);
    keys.retain(|named| asked.key.as_deref().is_none_or(|only| only == named.key));
    keys.sort_by(|a, b| load(&b.asked).total_cmp(&load(&a.asked)));
    let Some(hottest) = keys.first() else {
        return nothing("no workload names one hot key");
    };
    // Where no count is within the usual risk, `heatsink shards` advises none: the one of least
    // risk is run, and said to be that.
    let within = |risk: &f64| advise(Asked { risk: *risk, ..hottest.asked }).recommended;
    let Some(row) = RISKS.iter().find_map(within) else {
        return nothing("no shard count carries this key; `heatsink shards` says why");
    };
    let shards = |count: u16| Some(Whole(u64::from(count)));
    let of_index = of_index(loaded, hottest.table);
    if row.shards == 1 && of_index.is_none() {
        return nothing("one partition carries this key");
    }
    let kind = if hottest.is_counter { Kind::CounterSharding } else { Kind::WriteSharding };
    let advised = if row.risk > DEFAULT_RISK { "" } else { "advised " };
    let mut name = format!("Heatsink, {advised}N = {}", row.shards);
    if let Some(of_index) = of_index {
        name += &format!(", index {of_index}");
    }
    if row.risk > DEFAULT_RISK {
        // `heatsink shards` advises none.
        name += &format!(", not advised: risk {}", percent(row.risk));
    }
    Remedy {
        shards: shards(row.shards),
        index_shards: of_index.and_then(shards),
        key: Some(hottest.key.to_owned()),
        ..named(asked, kind, &name, String::new())
    }
}

fn load(asked: &Asked) -> f64 {
    asked.peak * 3.0 + asked.reads
}

/// Every key that workloads on tables name.
fn keys(loaded: &Loaded) -> Vec<Named<'_>> {
    let mut keys: Vec<Named<'_>> = Vec::new();
    let duration = loaded.scenario.duration.0;
    for workload in loaded.scenario.workload.iter().filter(|workload| workload.index.is_none()) {
        let (Some(Keys::Constant(key)), Some(operation)) = (&workload.key, workload.operation) else {
            continue;
        };
        let Some(table) = loaded.scenario.table.iter().find(|table| table.name == workload.table) else {
            continue;
        };
        let at = keys.iter().position(|known| known.key == key && known.table.name == table.name);
        let at = at.unwrap_or_else(|| {
            let asked = Asked {
                writes: 0.0,
                peak: 0.0,
                reads: 0.0,
                item_bytes: small(item_bytes(workload)),
                page: 1,
                partitions: partitions(table),
                risk: DEFAULT_RISK,
            };
            keys.push(Named { table, key, asked, is_counter: false });
            keys.len() - 1
        });
        let Some(Named { asked, is_counter, .. }) = keys.get_mut(at) else { continue };
        let (mean, peak) = rates(workload, duration);
        if operation.writes() {
            asked.writes += mean;
            asked.peak += peak;
            asked.item_bytes = small(item_bytes(workload));
            *is_counter |= operation == Operation::Update && workload.sort == Sort::One;
        } else if operation == Operation::Query || workload.sort == Sort::One {
            asked.reads += peak;
            asked.page = asked.page.max(small(workload.limit.map_or(1, |limit| limit.0)));
        }
    }
    keys
}

/// Shards for the one key of an index of the table, if it has such an index and its writes need
/// them.
fn of_index(loaded: &Loaded, table: &Table) -> Option<u16> {
    let one = |index: &&Index| matches!(index.key, Some(Keys::Constant(_)));
    let index = table.index.iter().find(one)?;
    let writes = |workload: &&Workload| {
        workload.table == table.name && workload.operation.is_some_and(Operation::writes)
    };
    let of_table = loaded.scenario.workload.iter().filter(writes);
    let peak = of_table.map(|workload| rates(workload, loaded.scenario.duration.0).1).sum();
    let partitions = of_an_index(table, index);
    let asked =
        Asked { writes: peak, peak, reads: 0.0, item_bytes: 1, page: 1, partitions, risk: DEFAULT_RISK };
    advise(asked).recommended.map(|row| row.shards).filter(|shards| *shards > 1)
}

/// Requests a second: on average, and at the peak.
fn rates(workload: &Workload, duration: u64) -> (f64, f64) {
    const POINTS: u64 = 1_000;
    let rate = workload.rate.clone().unwrap_or(Load::Constant(Rate(1.0)));
    let mut schedule = Schedule::new(rate, workload.burst.clone(), workload.start, workload.end);
    let tick = (duration / POINTS).max(1);
    let due: Vec<u64> = (0..POINTS).map(|nth| schedule.due(nth * tick, tick)).collect();
    let of_tick = |requests: u64| requests as f64 / (tick as f64 / 1e9);
    let sum: u64 = due.iter().sum();
    (of_tick(sum) / POINTS as f64, of_tick(due.into_iter().max().unwrap_or_default()))
}

fn small(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
