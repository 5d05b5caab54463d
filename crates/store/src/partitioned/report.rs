//! The partitions of a table as JSON, for tools.

use heatsink_physics::{Health, Mode, PartitionSnapshot, ResourceSnapshot};
use serde_json::{Value, json};

/// One document: the table's own partitions, then those of each global index. `now`: nanoseconds on
/// the model's clock.
pub(super) fn document(table: &str, now: u64, resources: &[ResourceSnapshot]) -> Value {
    let resources: Vec<Value> = resources.iter().map(|resource| of_resource(now, resource)).collect();
    json!({ "table": table, "resources": resources })
}

fn of_resource(now: u64, resource: &ResourceSnapshot) -> Value {
    let mode = match resource.mode {
        Mode::Provisioned { .. } => "provisioned",
        Mode::OnDemand { .. } => "on-demand",
    };
    let partitions: Vec<Value> = resource.partitions.iter().map(|one| of_partition(now, one)).collect();
    json!({
        "index": resource.index.as_deref(),
        "mode": mode,
        "read_units_per_s": resource.reads,
        "write_units_per_s": resource.writes,
        "warm_read_units_per_s": resource.warm_reads,
        "warm_write_units_per_s": resource.warm_writes,
        "partitions": partitions,
    })
}

fn of_partition(now: u64, partition: &PartitionSnapshot) -> Value {
    let (state, due, reason) = match partition.health {
        Health::Calm => ("calm", None, None),
        Health::Splitting(due) => ("splitting", Some(due.saturating_sub(now) / 1_000_000_000), None),
        Health::Stuck(why) => ("stuck", None, Some(why.name())),
    };
    json!({
        "id": partition.id,
        // Positions are 64 bits, which JSON numbers do not hold in every language.
        "first_position": format!("{:016x}", partition.first),
        "last_position": format!("{:016x}", partition.last),
        "first_sort_key": partition.from.sort.shown(),
        "heat": partition.heat,
        "state": state,
        "splits_in_s": due,
        "not_split_because": reason,
        "read_units_per_s": partition.reads_per_second,
        "write_units_per_s": partition.writes_per_second,
        "throttled_per_s": partition.throttles_per_second,
        "read_units": partition.reads,
        "write_units": partition.writes,
        "throttled": partition.throttles,
        "lag_ms": partition.lag / 1_000_000,
    })
}
