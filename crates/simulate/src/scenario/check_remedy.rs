//! Checks a remedy: whether its fields fit its kind, and whether the scenario has what it acts on.

use heatsink_layout::MOST_RANGES;

use super::file::{Consistency, ModeName, Operation, Page, Scenario, Sort, Workload};
use super::found::{Found, fault};
use super::remedy::{Kind, Remedy};
use super::values::Length;

/// The longest age of an answer that a rule may allow.
const MOST_AGE: Length = Length::seconds(10);

pub(super) fn remedy(remedy: &Remedy, scenario: &Scenario) -> Found {
    use Kind as K;
    let kind = remedy.kind;
    let shards =
        matches!(kind, K::WriteSharding | K::CounterSharding | K::Bucket | K::IndexSharding | K::Range);
    let key = matches!(kind, K::WriteSharding | K::CounterSharding | K::Bucket | K::Range | K::Advised);
    let fields = [
        ("read", remedy.read.is_some(), kind == K::RaiseCapacity, "raise-capacity"),
        ("write", remedy.write.is_some(), kind == K::RaiseCapacity, "raise-capacity"),
        (
            "shards",
            remedy.shards.is_some(),
            shards,
            "write-sharding, counter-sharding, bucket, index-sharding and range",
        ),
        ("key", remedy.key.is_some(), key, "write-sharding, counter-sharding, bucket, range and advised"),
        ("ttl", remedy.ttl.is_some(), kind == K::ReadCache, "read-cache"),
        ("nodes", remedy.nodes.is_some(), kind == K::ReadCache, "read-cache"),
        ("node_usd_per_hour", remedy.node_usd_per_hour.is_some(), kind == K::ReadCache, "read-cache"),
        ("max_age", remedy.max_age.is_some(), kind == K::GatewayCache, "gateway-cache"),
        (
            "gateways",
            remedy.gateways.is_some(),
            matches!(kind, K::GatewayCache | K::Combine),
            "gateway-cache and combine",
        ),
        ("latency", remedy.latency.is_some(), kind == K::Combine, "combine"),
    ];
    if let Some((field, _, _, kinds)) = fields.iter().find(|(_, given, fits, _)| *given && !fits) {
        return fault(field, format!("only {kinds} takes notice of it"));
    }
    if matches!(kind, K::RaiseCapacity | K::OnDemand)
        && scenario.table.iter().all(|table| table.mode == ModeName::OnDemand)
    {
        return fault("kind", "no table is provisioned");
    }
    let any = |acts_on: fn(&Workload) -> bool| scenario.workload.iter().any(acts_on);
    match remedy.kind {
        K::RaiseCapacity if remedy.read.is_none() && remedy.write.is_none() => {
            fault("kind", "\"raise-capacity\" needs read, write or both")
        }
        K::WriteSharding | K::CounterSharding | K::IndexSharding if remedy.shards.is_none() => {
            fault("kind", "needs shards: how many physical keys for each logical key")
        }
        K::Range if remedy.shards.is_none() => {
            fault("kind", "needs shards: how many ranges for each logical key")
        }
        K::Range if remedy.shards.is_some_and(|ranges| ranges.0 > u64::from(MOST_RANGES)) => {
            fault("shards", format!("expected at most {MOST_RANGES} ranges"))
        }
        K::Range if !any(has_sort_keys) => fault(
            "kind",
            "no workload has several sort keys in a key of a table: all are of one item, an index, a Scan or recorded",
        ),
        K::GatewayCache if !any(reads_again) => fault(
            "kind",
            "no workload reads the same page or item again, eventually consistent and not of an index; recorded ones are left as they are",
        ),
        K::Combine if !any(writes_one_item) => fault(
            "kind",
            "needs a workload of puts, updates or deletes with sort = \"one\"; recorded ones are left as they are",
        ),
        K::Index | K::TurnKeyRound if !any(|load| load.part.is_some()) => {
            fault("kind", "needs a workload with a part, which becomes the key")
        }
        K::IndexSharding if scenario.table.iter().all(|table| table.index.is_empty()) => {
            fault("kind", "no table has an index")
        }
        K::Split if !scenario.strict_keys => {
            fault("kind", "every run has it already; only a scenario with strict_keys goes without")
        }
        _ if remedy.ttl.is_some_and(|ttl| ttl.0 == 0) => fault("ttl", "expected more than 0s"),
        _ if remedy.max_age.is_some_and(|age| age.0 == 0 || age > MOST_AGE) => {
            fault("max_age", "expected 1ms to 10s")
        }
        _ if remedy.latency.is_some_and(|latency| latency.0 == 0) => {
            fault("latency", "expected more than 0s")
        }
        _ => Ok(()),
    }
}

/// Whether ranges can spread it: it is of a table with a sort key.
fn has_sort_keys(load: &Workload) -> bool {
    load.trace.is_none()
        && load.index.is_none()
        && load.operation != Some(Operation::Scan)
        && (load.sort != Sort::One || load.part.is_some() || load.operation == Some(Operation::Query))
}

/// Whether a gateway may answer its reads without asking: equal ones come again.
pub(crate) fn reads_again(load: &Workload) -> bool {
    load.index.is_none() && reads_equal(load)
}

/// Whether equal reads of it come again, of the table or of an index, and may be somewhat old.
pub(crate) fn reads_equal(load: &Workload) -> bool {
    let again = match load.operation {
        Some(Operation::Query) => load.page != Some(Page::Any),
        Some(Operation::Get) => load.part.is_some() || load.sort == Sort::One,
        _ => false,
    };
    again && load.trace.is_none() && load.consistency == Consistency::Eventual
}

/// Whether writes of it go to one item of each key.
pub(crate) fn writes_one_item(load: &Workload) -> bool {
    load.trace.is_none()
        && load.sort == Sort::One
        && load.part.is_none()
        && load.operation.is_some_and(Operation::writes)
}
