//! The results of a run: sums, rates, percentiles, costs.

use serde::Serialize;

use crate::compile::{Run as Compiled, compile};
use crate::cost;
use crate::counts::{Count, Heat, Step};
use crate::diagnosis;
use crate::display;
use crate::engine::Engine;
use crate::latency::{Attempts, Service, quantile};
use crate::model::Resource;
use crate::record::Record;
use crate::scenario::{Loaded, Operation, Remedy};
use crate::sizes::{item_bytes, scan_bytes};
use crate::stream::Stream;

/// All runs of a scenario.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Its name.
    pub scenario: String,
    /// What happens in it.
    pub about: String,
    /// Where its figures come from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Virtual seconds of each run.
    pub seconds: f64,
    /// Lines of traces that were left out because they cannot be read.
    pub skipped_lines: usize,
    /// Lines of traces that come after the end of the run and were not offered.
    pub late_lines: usize,
    /// One for each remedy.
    pub runs: Vec<Run>,
}

/// One remedy's run.
#[derive(Clone, Debug, Serialize)]
pub struct Run {
    /// The remedy.
    pub name: String,
    /// Requests offered to the tables or to what stands before them.
    pub offered: u64,
    /// Of those, accepted.
    pub accepted: u64,
    /// Of those, throttled.
    pub throttled: u64,
    /// Throttled over offered; 0 without requests.
    pub throttled_share: f64,
    /// Write units consumed per second, tables and indexes.
    pub write_units_per_s: f64,
    /// Read units consumed per second, tables and indexes.
    pub read_units_per_s: f64,
    /// 99th percentile of all requests in milliseconds, retries included: a model, see the documentation.
    pub p99_ms: Option<f64>,
    /// US dollars per month: what is provisioned, or what would be consumed.
    pub usd_per_month: f64,
    /// Partitions of all tables at the end, indexes left out.
    pub partitions: usize,
    /// What breaks or stays broken.
    pub breaks: String,
    /// What the partitions show, in a sentence.
    pub diagnosis: String,
    /// By workload.
    pub workloads: Vec<Load>,
    /// Over time.
    pub series: Vec<Point>,
    /// The heat of every partition over time, for pictures.
    #[serde(skip)]
    pub(crate) heat: Vec<Map>,
}

/// One workload in one run.
#[derive(Clone, Debug, Serialize)]
pub struct Load {
    /// Its name.
    pub name: String,
    /// What it does: the remedy may have changed it.
    pub operation: &'static str,
    /// Requests offered.
    pub offered: u64,
    /// Of those, accepted.
    pub accepted: u64,
    /// Of those, throttled.
    pub throttled: u64,
    /// Throttled over offered; 0 without requests.
    pub throttled_share: f64,
    /// Capacity units of one request, indexes left out.
    pub units_per_request: f64,
    /// Physical requests of one request: more than 1 for a scatter.
    pub requests_per_request: usize,
    /// Median in milliseconds: a model.
    pub p50_ms: Option<f64>,
    /// 99th percentile in milliseconds: a model.
    pub p99_ms: Option<f64>,
}

/// One step. All but `seconds` and `partitions` are per second.
#[derive(Clone, Debug, Serialize)]
pub struct Point {
    /// Its end, in seconds since the start.
    pub seconds: f64,
    /// Requests offered.
    pub offered: f64,
    /// Of those, accepted.
    pub accepted: f64,
    /// Of those, throttled.
    pub throttled: f64,
    /// Write requests accepted.
    pub writes_accepted: f64,
    /// Write requests throttled.
    pub writes_throttled: f64,
    /// Read requests accepted.
    pub reads_accepted: f64,
    /// Read requests throttled.
    pub reads_throttled: f64,
    /// Write units consumed.
    pub write_units: f64,
    /// Read units consumed.
    pub read_units: f64,
    /// Partitions of all tables, indexes left out.
    pub partitions: usize,
}

/// The partitions of a table or index over time.
#[derive(Clone, Debug)]
pub(crate) struct Map {
    pub name: String,
    pub index: bool,
    /// Ends of the steps, in seconds.
    pub ends: Vec<f64>,
    /// By step: partitions in order.
    pub steps: Vec<Vec<Heat>>,
}

/// Runs every remedy of a scenario. `progress` is told the share done, now and then.
pub fn simulate(loaded: &Loaded, progress: &mut dyn FnMut(f64)) -> Report {
    let scenario = &loaded.scenario;
    let remedies: Vec<Option<&Remedy>> =
        if scenario.remedy.is_empty() { vec![None] } else { scenario.remedy.iter().map(Some).collect() };
    let count = remedies.len() as f64;
    let runs = remedies
        .iter()
        .enumerate()
        .map(|(nth, remedy)| run(loaded, *remedy, true, &mut |share| progress((nth as f64 + share) / count)));
    Report {
        scenario: loaded.name.clone(),
        about: scenario.about.clone(),
        source: scenario.source.clone(),
        seconds: scenario.duration.as_seconds(),
        skipped_lines: loaded.skipped,
        late_lines: loaded.late,
        runs: runs.collect(),
    }
}

/// One remedy. `batches`: equal requests at once, which changes no count.
pub(crate) fn run(
    loaded: &Loaded,
    remedy: Option<&Remedy>,
    batches: bool,
    progress: &mut dyn FnMut(f64),
) -> Run {
    let compiled: Compiled = compile(loaded, remedy);
    let resources = compiled.resources.clone();
    let engine = Engine::new(compiled, loaded.scenario.seed, batches);
    let record = engine.run(loaded.scenario.duration.0, loaded.step(), resources.len(), progress);
    summary(loaded, remedy, &resources, &record)
}

fn summary(loaded: &Loaded, remedy: Option<&Remedy>, resources: &[Resource], record: &Record) -> Run {
    let seconds = loaded.scenario.duration.as_seconds();
    let all = sum(record, |_| true);
    let consumed = |on: usize| {
        let heat = || record.steps.iter().flat_map(move |step| &step.heat[on]);
        let total =
            |units: fn(&Heat) -> f32| heat().map(|heat| f64::from(units(heat))).sum::<f64>() / seconds;
        (total(|heat| heat.reads), total(|heat| heat.writes))
    };
    let units: Vec<(f64, f64)> = (0..resources.len()).map(consumed).collect();
    let months = resources
        .iter()
        .zip(&units)
        .map(|(resource, (reads, writes))| cost::month(resource.mode, *reads, *writes));
    let services: Vec<Service> = record.streams.iter().map(|stream| service(loaded, stream)).collect();
    let latencies: Vec<(&Attempts, &Service)> = record.attempts.iter().zip(&services).collect();
    let workloads: Vec<Load> =
        (0..loaded.scenario.workload.len()).filter_map(|nth| load(loaded, record, &services, nth)).collect();
    let series = series(record, resources);
    let heat: Vec<Map> = maps(record, resources);
    Run {
        name: display::name(remedy),
        offered: all.offered,
        accepted: all.accepted,
        throttled: all.offered - all.accepted,
        throttled_share: share(all),
        write_units_per_s: units.iter().map(|(_, writes)| writes).sum(),
        read_units_per_s: units.iter().map(|(reads, _)| reads).sum(),
        p99_ms: quantile(&latencies, 0.99),
        usd_per_month: months.sum::<f64>() + cost::extra(remedy),
        partitions: series.last().map_or(0, |point| point.partitions),
        breaks: display::breaks(loaded, remedy, &workloads),
        diagnosis: diagnosis::diagnosis(&heat, &series, share(all)),
        workloads,
        series,
        heat,
    }
}

fn sum(record: &Record, which: impl Fn(&Stream) -> bool) -> Count {
    record.steps.iter().fold(Count::default(), |sum, step| add(sum, of_step(record, step, &which)))
}

fn of_step(record: &Record, step: &Step, which: &impl Fn(&Stream) -> bool) -> Count {
    let counts = record.streams.iter().zip(&step.counts).filter(|(stream, _)| which(stream));
    counts.fold(Count::default(), |sum, (_, count)| add(sum, *count))
}

fn add(a: Count, b: Count) -> Count {
    Count { offered: a.offered + b.offered, accepted: a.accepted + b.accepted, cached: a.cached + b.cached }
}

fn share(count: Count) -> f64 {
    if count.offered == 0 { 0.0 } else { (count.offered - count.accepted) as f64 / count.offered as f64 }
}

fn load(loaded: &Loaded, record: &Record, services: &[Service], nth: usize) -> Option<Load> {
    let workload = &loaded.scenario.workload[nth];
    let count = sum(record, |stream| stream.workload == nth);
    let streams = record.streams.iter().zip(record.attempts.iter().zip(services));
    let streams: Vec<_> = streams.filter(|(stream, _)| stream.workload == nth).collect();
    let (first, _) = streams.first()?;
    let latencies: Vec<(&Attempts, &Service)> = streams.iter().map(|(_, latency)| *latency).collect();
    Some(Load {
        name: workload.name.clone(),
        operation: display::operation(first.operation),
        offered: count.offered,
        accepted: count.accepted,
        throttled: count.offered - count.accepted,
        throttled_share: share(count),
        units_per_request: first.units(),
        requests_per_request: first.at_once(),
        p50_ms: quantile(&latencies, 0.5),
        p99_ms: quantile(&latencies, 0.99),
    })
}

/// Medians in milliseconds, for a client in the same region. A Scan goes page by page, 1 MB each.
fn service(loaded: &Loaded, stream: &Stream) -> Service {
    let workload = &loaded.scenario.workload[stream.workload];
    let median = match stream.operation {
        Operation::Get => 2.5,
        Operation::Put | Operation::Update | Operation::Delete => 4.0,
        Operation::Query => {
            3.5 + 0.01 * (workload.limit.map_or(1, |limit| limit.0) * item_bytes(workload)) as f64 / 1_024.0
        }
        Operation::Scan => {
            let table = loaded.scenario.table.iter().find(|table| table.name == workload.table);
            10.0 * table.map_or(1, |table| scan_bytes(table).div_ceil(1 << 20).max(1)) as f64
        }
    };
    Service { median, at_once: stream.at_once(), backoff: loaded.scenario.client.backoff.0 }
}

fn series(record: &Record, resources: &[Resource]) -> Vec<Point> {
    let mut start = 0.0;
    let points = record.steps.iter().map(|step| {
        let seconds = step.end as f64 / 1e9;
        let length = seconds - start;
        start = seconds;
        let writes = of_step(record, step, &|stream: &Stream| stream.operation.writes());
        let reads = of_step(record, step, &|stream: &Stream| !stream.operation.writes());
        let rate = |count: u64| count as f64 / length;
        let units = |of: fn(&Heat) -> f32| {
            step.heat.iter().flatten().map(|heat| f64::from(of(heat))).sum::<f64>() / length
        };
        let tables = resources.iter().zip(&step.heat).filter(|(resource, _)| resource.index.is_none());
        Point {
            seconds,
            offered: rate(writes.offered + reads.offered),
            accepted: rate(writes.accepted + reads.accepted),
            throttled: rate(writes.offered + reads.offered - writes.accepted - reads.accepted),
            writes_accepted: rate(writes.accepted),
            writes_throttled: rate(writes.offered - writes.accepted),
            reads_accepted: rate(reads.accepted),
            reads_throttled: rate(reads.offered - reads.accepted),
            write_units: units(|heat| heat.writes),
            read_units: units(|heat| heat.reads),
            partitions: tables.map(|(_, heat)| heat.len()).sum(),
        }
    });
    points.collect()
}

fn maps(record: &Record, resources: &[Resource]) -> Vec<Map> {
    let maps = resources.iter().enumerate().map(|(on, resource)| Map {
        name: resource
            .index
            .as_ref()
            .map_or_else(|| resource.table.clone(), |index| format!("{}.{index}", resource.table)),
        index: resource.index.is_some(),
        ends: record.steps.iter().map(|step| step.end as f64 / 1e9).collect(),
        steps: record.steps.iter().map(|step| step.heat[on].clone()).collect(),
    });
    maps.collect()
}
