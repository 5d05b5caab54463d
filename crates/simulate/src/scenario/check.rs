//! Checks the fields of a scenario against each other. The limits of a single field are in its
//! type.

use super::check_remedy::remedy;
use super::file::{Changing, Consistency, Index, Load, ModeName, Operation, Scenario, Size, Table, Workload};
use super::found::{Found, fault};
use super::keys::{Drawn, Keys};
use super::values::Length;
use heatsink_config_diagnostics::Fault;

/// A fault in the field of that name of the nth of a list.
type At<'a> = &'a dyn Fn(&str, usize, &str, String) -> Fault;

/// Points of a series; more are of no use to an eye, and each is kept in memory for every
/// partition.
const MAX_POINTS: u64 = 2_000;

pub(crate) fn check(scenario: &Scenario, at: At<'_>) -> Result<(), Fault> {
    let top = |name: &str, problem: &str| Err(at("", 0, name, problem.to_owned()));
    let duration = scenario.duration.0;
    if duration < Length::seconds(1).0 {
        return top("duration", "expected at least 1s");
    }
    if let Some(step) = scenario.step {
        if step.0 < 100_000_000 || step.0 > duration {
            return top("step", "expected a length from 100ms to the duration");
        }
        if duration / step.0 > MAX_POINTS {
            return Err(at(
                "",
                0,
                "step",
                format!("that makes {} points; expected at most {MAX_POINTS}", duration / step.0),
            ));
        }
    }
    if scenario.table.is_empty() {
        return top("table", "expected at least one [[table]]");
    }
    if scenario.workload.is_empty() {
        return top("workload", "expected at least one [[workload]]");
    }
    for (nth, table) in scenario.table.iter().enumerate() {
        let twice = scenario.table.iter().take(nth).any(|earlier| earlier.name == table.name);
        self::table(table, twice).map_err(|(field, problem)| at("table", nth, field, problem))?;
    }
    for (nth, load) in scenario.workload.iter().enumerate() {
        let twice = scenario.workload.iter().take(nth).any(|earlier| earlier.name == load.name);
        let table = scenario.table.iter().find(|table| table.name == load.table);
        workload(load, table, twice, duration)
            .map_err(|(field, problem)| at("workload", nth, field, problem))?;
    }
    for (nth, of_run) in scenario.remedy.iter().enumerate() {
        remedy(of_run, scenario).map_err(|(field, problem)| at("remedy", nth, field, problem))?;
    }
    Ok(())
}

fn table(table: &Table, twice: bool) -> Found {
    if table.name.is_empty() || twice {
        return fault("name", "expected a name of its own");
    }
    if table.mode == ModeName::Provisioned {
        if table.read.is_none() || table.write.is_none() {
            return fault("mode", "\"provisioned\" needs read and write, in units per second");
        }
        if table.warm_read.is_some() || table.warm_write.is_some() {
            return fault(
                "warm_write",
                "a provisioned table is as warm as its capacity; for \"on-demand\" only",
            );
        }
    }
    if table.local_indexes && table.item_bytes.is_none() && table.items.is_some() {
        return fault("item_bytes", "a table with local indexes and items needs their size");
    }
    let named = |index: &Index| !index.name.is_empty();
    let unique = table.index.iter().enumerate().all(|(nth, index)| {
        named(index) && table.index.iter().take(nth).all(|earlier| earlier.name != index.name)
    });
    if unique { Ok(()) } else { fault("index", "each needs a name of its own") }
}

fn workload(load: &Workload, table: Option<&Table>, twice: bool, duration: u64) -> Found {
    if load.name.is_empty() || twice {
        return fault("name", "expected a name of its own");
    }
    let Some(table) = table else {
        return fault("table", format!("there is no [[table]] named {:?}", load.table));
    };
    if load.trace.is_some() {
        let other = [
            ("operation", load.operation.is_some()),
            ("rate", load.rate.is_some()),
            ("key", load.key.is_some()),
            ("part", load.part.is_some()),
            ("items", load.items.is_some()),
            ("burst", load.burst.is_some()),
            ("start", load.start.is_some()),
            ("end", load.end.is_some()),
            ("item_bytes", load.item_bytes.is_some()),
            ("limit", load.limit.is_some()),
            ("page", load.page.is_some()),
            ("window", load.window.is_some()),
        ];
        return match other.iter().find(|(_, given)| *given) {
            Some((field, _)) => fault(field, "not together with trace, whose lines say it"),
            None => Ok(()),
        };
    }
    if load.only.is_some() {
        return fault("only", "only a workload with a trace takes notice of it");
    }
    let Some(operation) = load.operation else {
        return fault(
            "operation",
            "missing; expected \"put\", \"update\", \"delete\", \"get\", \"query\" or \"scan\"",
        );
    };
    if load.rate.is_none() {
        return fault("rate", "missing; expected requests per second");
    }
    if load.key.is_none() && operation != Operation::Scan {
        return fault("key", "missing; expected a key or how it is drawn");
    }
    let contradiction = [
        ("limit", load.limit.is_some() && operation != Operation::Query, "only a query reads so many items"),
        ("page", load.page.is_some() && operation != Operation::Query, "only a query reads one"),
        ("consistency", load.consistency == Consistency::Strong && operation.writes(), "only reads have one"),
        (
            "consistency",
            load.consistency == Consistency::Strong && load.index.is_some(),
            "a global index answers eventually consistent reads only",
        ),
        ("key", load.key.is_some() && operation == Operation::Scan, "a scan reads all keys"),
        ("part", load.part.is_some() && operation == Operation::Scan, "a scan reads all items"),
    ];
    if let Some((field, _, problem)) = contradiction.into_iter().find(|(_, found, _)| *found) {
        return fault(field, problem);
    }
    if load.end.is_some_and(|end| end.0 > duration) {
        return fault("end", "that is after the end of the run");
    }
    if let Some(index) = &load.index {
        if operation.writes() {
            return fault("index", "only reads name an index; writes reach all of a table's indexes");
        }
        if !table.index.iter().any(|known| known.name == *index) {
            return fault("index", format!("table {:?} has no index {index:?}", load.table));
        }
    }
    if load.start.unwrap_or_default().0 >= load.end.map_or(duration, |end| end.0) {
        return fault("start", "the workload would never run: it starts at its end or later");
    }
    match (&load.key, load.items) {
        (Some(Keys::Drawn(Drawn::Sequential(_))), None) => {
            return fault("items", "missing; a sequential load needs to know how many items it has");
        }
        (_, Some(_)) if !operation.writes() => return fault("items", "only writes are loaded"),
        (_, None) if load.window.is_some() => return fault("window", "only a loader (with items) has one"),
        _ => {}
    }
    if let Some(Keys::Drawn(Drawn::Sequential(_))) = &load.part {
        return fault("part", "a part cannot be sequential");
    }
    for (field, keys) in [("key", &load.key), ("part", &load.part)] {
        if let Some(Keys::Drawn(Drawn::Rolling(rolling))) = keys
            && rolling.each.0 == 0
        {
            return fault(field, "each: expected more than 0s");
        }
    }
    if let Some(Size::Between(between)) = &load.item_bytes
        && between.from.0 > between.to.0
    {
        return fault("item_bytes", "from is more than to");
    }
    rate(load)
}

fn rate(load: &Workload) -> Found {
    if let Some(burst) = &load.burst
        && (burst.lasts.0 == 0 || burst.lasts >= burst.every)
    {
        return fault("burst", "expected lasts to be more than 0s and less than every");
    }
    match &load.rate {
        Some(Load::Changing(Changing::Curve(points)))
            if points.is_empty() || !points.is_sorted_by(|(before, _), (after, _)| before < after) =>
        {
            fault("rate", "curve: expected points in order of time, each later than the last")
        }
        Some(Load::Changing(Changing::Growth(growth))) if growth.every.0 < 1_000_000_000 => {
            fault("rate", "growth: expected every to be at least 1s")
        }
        _ => Ok(()),
    }
}
