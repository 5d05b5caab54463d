//! Names of remedies and operations, and what each remedy breaks.

use crate::cost::{MONTH_HOURS, READ_REQUEST};
use crate::numbers::percent;
use crate::report::Load;
use crate::scenario::{Kind, Loaded, Operation, Remedy, reads_again};

pub(crate) fn name(remedy: Option<&Remedy>) -> String {
    let Some(remedy) = remedy else { return "as it is".to_owned() };
    if let Some(name) = &remedy.name {
        return name.clone();
    }
    let shards = |what: &str| format!("{what}, N = {}", remedy.shards.map_or(1, |shards| shards.0));
    match remedy.kind {
        Kind::Nothing => "nothing".to_owned(),
        Kind::RaiseCapacity => "raise capacity".to_owned(),
        Kind::AdaptiveCapacity => "adaptive capacity".to_owned(),
        Kind::OnDemand => "on-demand".to_owned(),
        Kind::ReadCache => "read cache in front".to_owned(),
        Kind::Index => "index on another key".to_owned(),
        Kind::TurnKeyRound => "key turned round".to_owned(),
        Kind::WriteSharding => shards("write sharding"),
        Kind::CounterSharding => shards("counter sharding"),
        Kind::Bucket if remedy.shards.is_some() => shards("daily bucket × calculated"),
        Kind::Bucket => "daily bucket".to_owned(),
        Kind::IndexSharding => shards("index sharding"),
        Kind::Range => shards("ranges"),
        Kind::GatewayCache => {
            format!("the gateways' cache, {} ms", remedy.max_age.map_or(100, |age| age.0 / 1_000_000))
        }
        Kind::Combine => "combined writes".to_owned(),
        Kind::Split => "waiting for DynamoDB's split".to_owned(),
        Kind::Advised => "Heatsink, advised".to_owned(),
    }
}

pub(crate) fn operation(operation: Operation) -> &'static str {
    match operation {
        Operation::Put => "put",
        Operation::Update => "update",
        Operation::Delete => "delete",
        Operation::Get => "get",
        Operation::Query => "query",
        Operation::Scan => "scan",
    }
}

/// What breaks or stays broken. General words for each kind; figures where the run has them.
pub(crate) fn breaks(loaded: &Loaded, remedy: Option<&Remedy>, workloads: &[Load]) -> String {
    let Some(remedy) = remedy else { return String::new() };
    if let Some(breaks) = &remedy.breaks {
        return breaks.clone();
    }
    match remedy.kind {
        Kind::Nothing => "the hot key, as it is",
        Kind::RaiseCapacity => "nothing new; the ceiling is the partition's, not the table's",
        Kind::AdaptiveCapacity => "on by default already; it ends at one partition's ceiling",
        Kind::OnDemand => "nothing new; the same partitions, the same ceiling",
        Kind::ReadCache => "writes pass through it; reads are as old as its entries",
        Kind::Index => "the table's own key stays hot, and every write pays for the index too",
        Kind::TurnKeyRound => return scans(loaded, workloads),
        Kind::WriteSharding => return fan_out(workloads),
        Kind::CounterSharding => "the application must sum the shards (Heatsink does it for it)",
        Kind::Bucket if remedy.shards.is_none() => {
            "today's key is as hot as the old one: buckets bound size, not rate"
        }
        Kind::Bucket => "reads over many days ask many keys",
        Kind::IndexSharding => "queries on the index ask every shard",
        Kind::Range => {
            "one range takes all writes whose sort keys grow, and all pages at one end; behind Heatsink nothing changes"
        }
        Kind::GatewayCache => return again(loaded, workloads),
        Kind::Combine => {
            "a refusal is that of all writes that went together, and a write takes up to twice as long"
        }
        Kind::Split => "throttled until DynamoDB has split the partition; one item, and sort keys that only grow, are not split",
        Kind::Advised => "",
    }
    .to_owned()
}

/// Queries that became scans: what one costs, and what all of them would.
fn scans(loaded: &Loaded, workloads: &[Load]) -> String {
    let scan = workloads.iter().find(|load| {
        let asked = loaded.scenario.workload.iter().find(|workload| workload.name == load.name);
        load.operation == "scan" && asked.is_some_and(|asked| asked.operation == Some(Operation::Query))
    });
    let Some(scan) = scan else { return "lists by the old key become Scans of the table".to_owned() };
    let rate = scan.offered as f64 / loaded.scenario.duration.as_seconds();
    let month = rate * scan.units_per_request * READ_REQUEST * MONTH_HOURS * 3_600.0;
    format!(
        "{} is a Scan of the table: {} read units each; to serve all of them on demand would cost ${} a month",
        scan.name,
        crate::numbers::grouped(scan.units_per_request),
        crate::numbers::grouped(month)
    )
}

fn fan_out(workloads: &[Load]) -> String {
    match workloads.iter().find(|load| load.requests_per_request > 1) {
        Some(load) => format!(
            "by hand: every writer and reader changes, {} is {} queries and a merge ({} read units); behind Heatsink: nothing",
            load.name, load.requests_per_request, load.units_per_request
        ),
        None => "by hand: every writer and reader changes; behind Heatsink: nothing".to_owned(),
    }
}

/// What a gateway's cache saves, where writes of the key drop its answers.
fn again(loaded: &Loaded, workloads: &[Load]) -> String {
    let reads = |load: &&Load| {
        let asked = loaded.scenario.workload.iter().find(|workload| workload.name == load.name);
        load.offered > 0 && asked.is_some_and(reads_again)
    };
    let saved = workloads.iter().find(reads).map(|load| {
        let share = percent(load.cached as f64 / load.offered as f64);
        format!("{share} of {} are not sent; ", load.name)
    });
    format!(
        "{}a write of the key through a gateway drops its answers, and other gateways' writes show up to the age later",
        saved.unwrap_or_default()
    )
}
