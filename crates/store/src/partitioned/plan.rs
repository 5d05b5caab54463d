//! The capacity changes that a `CreateTable` or `UpdateTable` asks for, of a table and its global
//! indexes.

use heatsink_dynamo::Operation;
use heatsink_physics::{Mode, Plan};
use serde::Deserialize;

use super::catalogue::TableInfo;

/// The changes that a request asks for; none if it cannot be parsed, and the store refuses it.
pub(super) fn plans(operation: Operation, body: &[u8], known: Option<&TableInfo>) -> Vec<Plan> {
    let Ok(asked) = serde_json::from_slice::<Request>(body) else { return Vec::new() };
    match (operation, known) {
        (Operation::CreateTable, None) => created(&asked),
        (Operation::UpdateTable, Some(table)) => updated(&asked, table),
        _ => Vec::new(),
    }
}

fn created(asked: &Request) -> Vec<Plan> {
    let on_demand = asked.billing.as_deref() == Some(ON_DEMAND);
    let plan =
        |throughput: Option<Throughput>, index| Plan { on: None, mode: mode(on_demand, throughput), index };
    let indexes = asked.indexes.iter().flatten().map(|index| plan(index.throughput, true));
    [plan(asked.throughput, false)].into_iter().chain(indexes).collect()
}

fn updated(asked: &Request, table: &TableInfo) -> Vec<Plan> {
    let on_demand = match asked.billing.as_deref() {
        Some(mode) => mode == ON_DEMAND,
        None => !table.mode.provisioned(),
    };
    // Settings that are left out stay as they are.
    let changed = |throughput, was: Mode| match mode(on_demand, throughput) {
        Some(mode) if mode.provisioned() != was.provisioned() || throughput.is_some() => mode,
        _ => was,
    };
    let mut plans =
        vec![Plan { on: Some(table.id), mode: Some(changed(asked.throughput, table.mode)), index: false }];
    let updates = || asked.updates.iter().flatten();
    for index in &table.indexes {
        let named = |one: &&Index| one.name.as_deref() == Some(&*index.name);
        let dropped = updates().filter_map(|update| update.delete.as_ref()).any(|one| named(&one));
        let update = updates().filter_map(|update| update.update.as_ref()).find(named);
        let mode = changed(update.and_then(|update| update.throughput), index.mode);
        plans.push(Plan { on: Some(index.id), mode: (!dropped).then_some(mode), index: true });
    }
    let made = updates().filter_map(|update| update.create.as_ref());
    plans.extend(made.map(|index| Plan { on: None, mode: mode(on_demand, index.throughput), index: true }));
    plans
}

fn mode(on_demand: bool, throughput: Option<Throughput>) -> Option<Mode> {
    if on_demand {
        return Some(Mode::ON_DEMAND);
    }
    throughput.map(|Throughput { read, write }| Mode::Provisioned { read, write })
}

const ON_DEMAND: &str = "PAY_PER_REQUEST";

#[derive(Deserialize)]
struct Request {
    #[serde(rename = "BillingMode")]
    billing: Option<String>,
    #[serde(rename = "ProvisionedThroughput")]
    throughput: Option<Throughput>,
    #[serde(rename = "GlobalSecondaryIndexes")]
    indexes: Option<Vec<Index>>,
    #[serde(rename = "GlobalSecondaryIndexUpdates")]
    updates: Option<Vec<Update>>,
}

#[derive(Clone, Copy, Deserialize)]
struct Throughput {
    #[serde(rename = "ReadCapacityUnits")]
    read: u64,
    #[serde(rename = "WriteCapacityUnits")]
    write: u64,
}

#[derive(Deserialize)]
struct Update {
    #[serde(rename = "Create")]
    create: Option<Index>,
    #[serde(rename = "Update")]
    update: Option<Index>,
    #[serde(rename = "Delete")]
    delete: Option<Index>,
}

#[derive(Deserialize)]
struct Index {
    #[serde(rename = "IndexName")]
    name: Option<String>,
    #[serde(rename = "ProvisionedThroughput")]
    throughput: Option<Throughput>,
}
