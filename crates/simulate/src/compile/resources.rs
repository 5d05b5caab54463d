//! The effect of a remedy on capacity: the tables and indexes of a run.

use heatsink_physics::{Mode, ResourceId};

use crate::model::Resource;
use crate::scenario::{Kind, ModeName, Remedy, Scenario, Table, Whole};

/// The index that the `index` remedy creates.
pub(super) const REMEDY_INDEX: &str = "by-part";

/// Finds the table of that name, or its index.
pub(super) type FindResource<'a> = &'a dyn Fn(&str, Option<&str>) -> ResourceId;

/// The tables and indexes of a scenario with that remedy.
pub(super) fn resources(scenario: &Scenario, remedy: Option<&Remedy>) -> Vec<Resource> {
    let mut resources = Vec::new();
    for table in &scenario.table {
        let made = mode(table.mode, table.read, table.write);
        let warm = (table.warm_read.map(|units| units.0), table.warm_write.map(|units| units.0));
        resources.push(Resource {
            table: table.name.clone(),
            index: None,
            made,
            mode: changed(made, remedy),
            local_indexes: table.local_indexes,
            warm,
        });
        let mut index = |name: &str, made: Mode| {
            resources.push(Resource {
                table: table.name.clone(),
                index: Some(name.to_owned()),
                made,
                mode: changed(made, remedy),
                local_indexes: false,
                warm: (None, None),
            });
        };
        for known in &table.index {
            index(&known.name, mode(table.mode, known.read.or(table.read), known.write.or(table.write)));
        }
        if remedy.is_some_and(|remedy| remedy.kind == Kind::Index) && has_part(scenario, table) {
            index(REMEDY_INDEX, made);
        }
    }
    resources
}

fn has_part(scenario: &Scenario, table: &Table) -> bool {
    scenario.workload.iter().any(|workload| workload.table == table.name && workload.part.is_some())
}

fn mode(name: ModeName, read: Option<Whole<10_000_000>>, write: Option<Whole<10_000_000>>) -> Mode {
    let (read, write) = (read.map(|units| units.0), write.map(|units| units.0));
    match name {
        ModeName::Provisioned => Mode::Provisioned { read: read.unwrap_or(1), write: write.unwrap_or(1) },
        ModeName::OnDemand => Mode::OnDemand { max_read: read, max_write: write },
    }
}

fn changed(made: Mode, remedy: Option<&Remedy>) -> Mode {
    match (remedy.map(|remedy| (remedy.kind, remedy)), made) {
        (Some((Kind::OnDemand, _)), Mode::Provisioned { .. }) => Mode::ON_DEMAND,
        (Some((Kind::RaiseCapacity, remedy)), Mode::Provisioned { read, write }) => Mode::Provisioned {
            read: remedy.read.map_or(read, |raised| raised.0),
            write: remedy.write.map_or(write, |raised| raised.0),
        },
        _ => made,
    }
}
