//! The summary of one run: what was recorded step by step, as sums, rates, percentiles and costs.

use crate::combined::WAITS;
use crate::cost;
use crate::counts::{Count, Heat, Step};
use crate::diagnosis;
use crate::display;
use crate::latency::{Attempts, Service, quantile};
use crate::model::Resource;
use crate::record::Record;
use crate::report::{Load, Map, Point, Run};
use crate::scenario::{Loaded, Operation, Remedy};
use crate::sizes::{item_bytes, scan_bytes};
use crate::stream::Stream;

/// `record` is the run of `loaded` with `remedy`; `resources` are in the order of its heat.
pub(crate) fn summary(
    loaded: &Loaded,
    remedy: Option<&Remedy>,
    resources: &[Resource],
    record: &Record,
) -> Run {
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
    let loaded_seconds = diagnosis::loaded_seconds(&series);
    // The same units over the loaded time.
    let a_loaded_second =
        |mean: f64| if loaded_seconds > 0.0 { mean * seconds / loaded_seconds } else { 0.0 };
    let heat: Vec<Map> = maps(record, resources);
    Run {
        name: display::name(remedy),
        offered: all.offered,
        accepted: all.accepted,
        throttled: all.offered - all.accepted,
        throttled_share: share(all),
        loaded_seconds,
        write_units_per_s: a_loaded_second(units.iter().map(|(_, writes)| writes).sum()),
        read_units_per_s: a_loaded_second(units.iter().map(|(reads, _)| reads).sum()),
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
        cached: count.cached,
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
    let median = if stream.combined.is_some() { median * WAITS } else { median };
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
