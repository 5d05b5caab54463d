//! The scenario of a gateway's recording that is given without one: its tables, a workload for each
//! kind of request, and the remedies that act on recorded requests.
//!
//! The capacity of a table is in no request. Where the table was seen to refuse requests that no
//! key explains, it is what the table took meanwhile. Else it is assumed as `heatsink shards` does:
//! four times what is asked of it, on demand. A scenario of one's own that names the trace says
//! otherwise.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use heatsink_trace::{Operation, read};

use crate::numbers::{grouped, percent};
use crate::recorded_capacity::Recorded;
use crate::recorded_load::WINDOW;
use crate::scenario::Fault;

/// Units that a new on-demand table takes: reads and writes
/// (docs/explain/partitions.md#how-much-a-table-may-take).
const NEW_TABLE: (f64, f64) = (12_000.0, 4_000.0);
/// How many times its busiest seconds a table is assumed to take.
const ROOM: f64 = 4.0;
/// The most units that a scenario may give a table.
const MOST: f64 = 10_000_000.0;

/// The text of the scenario of a recording. `file` is its name, for messages, and what the scenario
/// calls it.
///
/// # Errors
/// As those of [`heatsink_trace::read`].
pub fn scenario_of_trace(file: &str, text: &str, skip_bad: bool) -> Result<String, Fault> {
    let trace = read(file, text, skip_bad)?;
    let mut workloads: BTreeSet<(&str, Option<&str>, &str)> = BTreeSet::new();
    let mut windows: HashMap<(&str, u64), (f64, f64)> = HashMap::new();
    let (mut requests, mut last) = (0, 0);
    let mut recorded = Recorded::default();
    for access in &trace.accesses {
        recorded.add(access);
        let writes = matches!(access.op, Operation::Put | Operation::Update);
        workloads.insert((&*access.table, access.index.as_deref(), word(access.op)));
        requests += u64::from(access.weight);
        last = last.max(access.us);
        if access.index.is_none() {
            let window = windows.entry((&*access.table, access.us * 1_000 / WINDOW)).or_default();
            let units = access.units as f64 / 1_000.0 * f64::from(access.weight);
            let of = if writes { &mut window.1 } else { &mut window.0 };
            *of += units / (WINDOW as f64 / 1e9);
        }
    }
    let mut tables: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
    for ((table, _), (reads, writes)) in windows {
        let busiest = tables.entry(table).or_default();
        *busiest = (busiest.0.max(reads), busiest.1.max(writes));
    }
    for (table, _, _) in &workloads {
        tables.entry(table).or_default();
    }
    let seconds = last / 1_000_000 + 1;
    let about = format!(
        "Recorded traffic: {} requests in {} s; tables are assumed to take four times as much, where they were not seen to refuse any",
        grouped(requests as f64),
        grouped(seconds as f64)
    );
    let measured =
        format!("{} of all requests were throttled in the recording", percent(recorded.refused_share()));
    let mut scenario = format!(
        "about = {}\nmeasured = {}\nduration = \"{seconds}s\"\nstrict_keys = true\n",
        quoted(&about),
        quoted(&measured)
    );
    for (table, (reads, writes)) in &tables {
        let units = |busiest: f64, least: f64| (busiest * ROOM).max(least).min(MOST).ceil();
        let local = trace.tables.iter().any(|known| known.name == *table && known.local_index);
        scenario += &format!(
            "\n[[table]]\nname = {}\nmode = \"on-demand\"\nwarm_read = {}\nwarm_write = {}\nlocal_indexes = {local}\n",
            quoted(table),
            units(*reads, NEW_TABLE.0),
            units(*writes, NEW_TABLE.1)
        );
        for (side, writes) in [("read", false), ("write", true)] {
            if let Some(limit) = recorded.limit(table, writes) {
                scenario += &format!("{side} = {}\n", limit.round());
            }
        }
        let indexes: BTreeSet<&str> =
            workloads.iter().filter(|(of, _, _)| of == table).filter_map(|(_, index, _)| *index).collect();
        for index in indexes {
            scenario += &format!("\n[[table.index]]\nname = {}\n", quoted(index));
        }
    }
    for (table, index, operation) in &workloads {
        let name = match index {
            Some(index) => format!("{operation}, index {index} of {table}"),
            None => format!("{operation}, {table}"),
        };
        scenario += &format!(
            "\n[[workload]]\nname = {}\ntable = {}\ntrace = {}\nonly = \"{operation}\"\n",
            quoted(&name),
            quoted(table),
            quoted(file)
        );
        if let Some(index) = index {
            scenario += &format!("index = {}\n", quoted(index));
        }
    }
    scenario += "\n[[remedy]]\nkind = \"nothing\"\n\n[[remedy]]\nkind = \"split\"\n\n[[remedy]]\nkind = \"read-cache\"\n\n\
                 [[remedy]]\nkind = \"write-sharding\"\nshards = 10\n\n[[remedy]]\nkind = \"advised\"\n";
    Ok(scenario)
}

const fn word(operation: Operation) -> &'static str {
    match operation {
        Operation::Put => "put",
        Operation::Update => "update",
        Operation::Get => "get",
        Operation::Query => "query",
        Operation::Scan => "scan",
    }
}

fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}
