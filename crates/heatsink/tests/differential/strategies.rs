//! The table of strategies by operations in docs/reference/compatibility-tests.md, held against the
//! tests that it names: where it says `d`, the worlds of this test must send that operation to keys
//! of that strategy, and every other test that it names must be there.
//!
//! Which strategy a request meets is seen where the router asks for it: at the layouts of the keys
//! that it plans for. Scans and streams ask for no key and meet every strategy of their table. That
//! most of these requests are also accepted is asserted where they are run.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use fastrand::Rng;
use futures::executor::block_on;
use heatsink_dynamo::Operation;
use heatsink_layout::{By, InForce, Layout, LayoutSource, Strategy, Table};
use heatsink_route::{Plan, Router};

use crate::judge::Judge;
use crate::matrix::{docs, unbacked};
use crate::world::{self, World};
use crate::{counters, generate, outside, recorded};

/// Steps of each world: enough for the rarest operation to come up, in every world several times.
const STEPS: usize = 1_000;

/// The strategy of a key as the table calls it; `None` for keys that stay whole.
fn called(layout: &Layout) -> Option<&'static str> {
    Some(match &layout.strategy {
        Strategy::None => return None,
        Strategy::Calculated { by: By::Part { .. }, .. } => "by part",
        Strategy::Calculated { .. } => "calculated",
        Strategy::Range { .. } => "range",
        Strategy::Bucket { .. } if layout.shards == 1 => "bucket",
        Strategy::Bucket { .. } => "bucket × calculated",
        Strategy::Counter { .. } => "counter",
        Strategy::Template { .. } if layout.follows_from_key() => "template",
        Strategy::Template { .. } => "assigned template",
    })
}

/// The layouts in force, and which strategies were asked for.
struct Noted<'a> {
    control: &'a heatsink_control::Control,
    met: Mutex<BTreeSet<&'static str>>,
}

impl LayoutSource for Noted<'_> {
    fn table(&self, name: &str) -> Option<Arc<Table>> {
        self.control.table(name)
    }
    fn in_force(&self, table: &Table, key: &[u8]) -> InForce {
        let in_force = self.control.in_force(table, key);
        self.met.lock().unwrap().extend(called(in_force.settled()));
        in_force
    }
    fn handle(&self) -> Arc<dyn LayoutSource> {
        self.control.handle()
    }
}

/// The strategies that a request meets; none if it is refused before it is sent.
fn met(world: &World, step: &generate::Step, random: bool) -> BTreeSet<&'static str> {
    let operation = Operation::by_name(&step.operation).unwrap();
    let named = step.body["TableName"].as_str().and_then(|name| world.control.table(name));
    let index_key = |table: &Table| {
        let index = step.body["IndexName"].as_str();
        let of_index = |name: &str| table.indexes.iter().find(|index| index.name == name);
        let spread = |name: &str| table.index_key(name).is_some();
        match (operation, index.and_then(of_index)) {
            (Operation::Query, Some(index)) => {
                index.key.partition.iter().any(|attribute| spread(&attribute.name))
            }
            // What else is read or written holds the attribute, or could.
            _ => !table.index_keys().is_empty() && operation != Operation::Query,
        }
    };
    let noted = Noted { control: &world.control, met: Mutex::default() };
    if operation == Operation::GetRecords {
        // The iterator comes from an answer, so its table is what is known beforehand.
        let Some(table) = &named else { return BTreeSet::new() };
        noted.met.lock().unwrap().extend(table.layouts().iter().filter_map(|one| called(one.layout())));
    } else {
        let body = Bytes::from(step.body.to_string());
        let Ok(plan) = Router::new().plan(operation, &body, &noted) else { return BTreeSet::new() };
        if matches!(plan, Plan::Forward { .. }) || plan.explain().plan == heatsink_route::Kind::Refused {
            return BTreeSet::new();
        }
        if let (Operation::Scan, Some(table)) = (operation, &named) {
            let own = table.layouts().iter().filter(|one| one.index().is_none());
            noted.met.lock().unwrap().extend(own.filter_map(|one| called(one.layout())));
        }
    }
    let mut met = noted.met.into_inner().unwrap();
    // Which tables a batch, a transaction or a statement names is found as the router finds it.
    let body = step.body.to_string();
    let tables = heatsink_route::tables_of(operation, body.as_bytes()).unwrap_or_default();
    if named.iter().any(|table| index_key(table))
        || named.is_none()
            && tables.iter().any(|name| world.control.table(name).is_some_and(|table| index_key(&table)))
    {
        met.insert("index key");
    }
    if random && met.remove("calculated") {
        met.insert("random");
    }
    met
}

/// How many requests of each operation meet each strategy, over all worlds.
fn generated() -> BTreeMap<(String, &'static str), usize> {
    let mut found = BTreeMap::new();
    for (seed, rules) in
        world::RULES.iter().chain(world::RESPREAD).chain(world::IN_SLOTS).chain(world::IN_RANGES).enumerate()
    {
        let mut rng = Rng::with_seed(seed as u64);
        let tables = counters::tables(rules);
        let mut steps = generate::steps(&mut rng, &tables, STEPS);
        if counters::has(rules) {
            counters::count(&mut rng, &mut steps);
        }
        if outside::has(rules) || recorded::moves(rules) {
            outside::hide(&mut steps);
        }
        let world = World::new(Judge::Engine, &tables, rules);
        let names: Vec<Cow<str>> = tables.iter().map(|table| table.name.into()).collect();
        block_on(world.control.resolve(&names)).unwrap();
        for step in &steps {
            for strategy in met(&world, step, rules.contains("\"random\", shards")) {
                let group = match step.operation.as_str() {
                    "ExecuteStatement" | "BatchExecuteStatement" | "ExecuteTransaction" => "PartiQL",
                    "GetRecords" => "streams",
                    operation => operation,
                };
                *found.entry((group.to_owned(), strategy)).or_default() += 1;
            }
        }
    }
    found
}

#[test]
fn every_strategy_and_operation_is_backed_by_a_test() {
    let (page, text) = docs();
    let table = text.split("<!-- strategies -->").nth(1).expect("the page has the table");
    let cells = |line: &str| -> Vec<String> {
        line.trim().trim_matches('|').split('|').map(|cell| cell.trim().replace('`', "")).collect()
    };
    let mut rows = table.lines().filter(|line| line.starts_with("| ")).map(cells);
    let strategies = rows.next().expect("a head");
    let rows: Vec<_> = rows.collect();
    assert!(rows.len() >= 12 && strategies.len() >= 9, "{} by {}", rows.len(), strategies.len());
    let generated = generated();
    let mut missing = Vec::new();
    for (operation, strategy) in generated.keys() {
        let listed =
            rows.iter().any(|row| row[0] == *operation) && strategies.iter().any(|name| name == strategy);
        // Operations on the table itself are the other matrix's.
        if !listed && Operation::by_name(operation).is_none_or(Operation::touches_items) {
            missing.push(format!("{operation} on {strategy}: generated, and not in the table"));
        }
    }
    for row in &rows {
        assert_eq!(row.len(), strategies.len(), "{row:?}");
        for (strategy, cell) in strategies.iter().zip(row).skip(1) {
            let operation = &row[0];
            let times: usize = generated
                .iter()
                .filter(|((of, met), _)| of == operation && met == strategy)
                .map(|(_, times)| times)
                .sum();
            let differential = cell.split(',').next() == Some("d");
            if differential && times == 0 {
                missing.push(format!("{operation} on {strategy}: never generated"));
            }
            if !differential && times > 0 {
                missing.push(format!(
                    "{operation} on {strategy}: {times} times generated, and the table is silent"
                ));
            }
            missing.extend(unbacked(&page, &format!("{operation} on {strategy}"), cell));
            if !differential && !cell.contains("](") {
                missing.push(format!("{operation} on {strategy}: no test"));
            }
        }
    }
    assert!(missing.is_empty(), "{}\n{generated:#?}", missing.join("\n"));
}
