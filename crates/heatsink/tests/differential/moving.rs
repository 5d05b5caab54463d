//! What goes on beside clients while a key moves: between the requests items are brought to their
//! new slots or lie in their old ones again, and old copies stay behind where a blind put has
//! written the item anew.

use fastrand::Rng;
use heatsink_control::Control;
use heatsink_dynamo::{Number, Operation};
use heatsink_layout::{InForce, LayoutSource, MOVED, Phase, Slots};
use heatsink_store::Store;
use serde_json::{Value as Json, json};

use crate::counters::COUNTED;
use crate::generate::Step;
use crate::physical::{bytes, items, sort_key, value};
use crate::schema::Table;
use crate::world::World;
use crate::{compare, recorded};

/// Leaves out what shows copies as well as items: streams, and counts of items.
pub fn hide(steps: &mut Vec<Step>) {
    let shows = ["GetRecords", "ListStreams", "DescribeTable", "UpdateTable"];
    steps.retain(|step| !shows.contains(&step.operation.as_str()));
    // DynamoDB adds what a local index does not hold where a Scan of it asks for certain
    // attributes, and the engine does not. Items of keys that move are read from the table.
    let scans_local = |step: &&mut Step| {
        step.operation == "Scan" && ["by-n", "by-b"].iter().any(|index| step.body["IndexName"] == *index)
    };
    for step in steps.iter_mut().filter(scans_local) {
        let asks = step.body["Select"] == "COUNT" || step.body.get("ProjectionExpression").is_some();
        let names = ["ProjectionExpression", "FilterExpression"];
        let bindings = ["ExpressionAttributeNames", "ExpressionAttributeValues"];
        if let (true, Some(body)) = (asks, step.body.as_object_mut()) {
            names.iter().chain(&bindings).for_each(|name| drop(body.remove(*name)));
        }
        if let (true, Some(body)) = (step.body["Select"] == "ALL_ATTRIBUTES", step.body.as_object_mut()) {
            body.remove("Select");
        }
    }
}

/// The two slots of a stored item, and its logical key, if it changes its slot.
pub fn slots(table: &Table, world: &World, item: &Json) -> Option<(Vec<u8>, Slots)> {
    slots_by(table, world.newest(), item)
}

fn slots_by(table: &Table, control: &Control, item: &Json) -> Option<(Vec<u8>, Slots)> {
    let schema = control.table(table.name)?;
    let (name, kind) = table.partition;
    let logical = schema.logical(&bytes(&item[name], kind)).to_vec();
    let InForce::Moving(moving) = control.in_force(&schema, &logical) else { return None };
    // Before that all items lie where they lay.
    if moving.phase != Phase::Move {
        return None;
    }
    let sort = table.sort.map(|(name, kind)| (bytes(&item[name], kind), kind));
    let sort = sort.as_ref().map(|(bytes, kind)| sort_key(bytes, kind));
    let slots = moving.slots(sort).unwrap()?;
    // Above the high water an item is in its new slot, and nothing is in its old one.
    let above = moving.is_above_high_water(sort);
    Some((logical, if above { Slots { from: slots.to, ..slots } } else { slots }))
}

/// Before some of the steps, moves an item of each table, or leaves an old copy behind. Which
/// follows from the step alone.
pub fn stir(tables: &[Table], world: &World, step: &Step) {
    let text = step.body.to_string();
    let seed = text.bytes().fold(0_u64, |seed, byte| seed.wrapping_mul(31).wrapping_add(byte.into()));
    let mut rng = Rng::with_seed(seed);
    for table in tables {
        if rng.bool() {
            continue;
        }
        let control = world.newest();
        let Some(schema) = control.table(table.name) else { continue };
        let (name, kind) = table.partition;
        let mut stored = items(table, &*world.raw);
        stored.retain(|item| slots(table, world, item).is_some_and(|(_, slots)| slots.from != slots.to));
        if stored.is_empty() {
            continue;
        }
        let item = stored.swap_remove(rng.usize(..stored.len()));
        let (logical, slots) = slots(table, world, &item).unwrap();
        let InForce::Moving(moving) = control.in_force(&schema, &logical) else { continue };
        let new = value(&schema.physical(&logical, &moving.to, slots.to).unwrap(), kind);
        let old = value(&schema.physical(&logical, &moving.from, slots.from).unwrap(), kind);
        let other = |partition: &Json| {
            let mut other = item.clone();
            other[name] = partition.clone();
            other
        };
        match (item[name] == new, rng.u32(..4)) {
            // Not moved yet; or so lately that a read sees the old copy, marked, and no new one.
            (true, of @ (0 | 1)) => {
                let mut before = other(&old);
                if of == 1 {
                    before[MOVED] = json!({ "BOOL": true });
                }
                put(&*world.raw, table, &before);
                delete(&*world.raw, table, &item);
            }
            // Written blindly, and its old copy is still there: what may expire is not written so.
            (true, 2) if recorded::expires(table).is_none_or(|expires| item.get(expires).is_none()) => {
                let mut stale = other(&old);
                stale["stale"] = json!({ "BOOL": true });
                put(&*world.raw, table, &stale);
            }
            (false, 0 | 1) => {
                let there = stored.iter().any(|stored| stored[name] == new && same(table, stored, &item));
                if !there {
                    put(&*world.raw, table, &unmarked(other(&new)));
                }
                delete(&*world.raw, table, &item);
            }
            _ => {}
        }
    }
}

/// The copy of an item that may be marked.
pub fn unmarked(mut copy: Json) -> Json {
    if let Some(copy) = copy.as_object_mut() {
        copy.remove(MOVED);
    }
    copy
}

/// Brings all items to their new slots of the keys that move as `control` knows it, and of which
/// that holds; copies that are old are removed.
pub fn bring_all(table: &Table, control: &Control, raw: &dyn Store, of: impl Fn(&[u8]) -> bool) {
    let Some(schema) = control.table(table.name) else { return };
    let (name, kind) = table.partition;
    let stored = items(table, raw);
    for item in &stored {
        let Some((logical, slots)) = slots_by(table, control, item) else { continue };
        let InForce::Moving(moving) = control.in_force(&schema, &logical) else { continue };
        let new = value(&schema.physical(&logical, &moving.to, slots.to).unwrap(), kind);
        if !of(&logical) || slots.from == slots.to || item[name] == new {
            continue;
        }
        if !stored.iter().any(|stored| stored[name] == new && same(table, stored, item)) {
            let mut moved = item.clone();
            moved[name] = new;
            put(raw, table, &unmarked(moved));
        }
        delete(raw, table, item);
    }
}

/// Folds what is left of the fragments that a worker folds as `control` knows it, of the keys of
/// which that holds.
pub fn fold_all(table: &Table, control: &Control, raw: &dyn Store, of: impl Fn(&[u8]) -> bool) {
    let Some(schema) = control.table(table.name) else { return };
    let (name, kind) = table.partition;
    for fragment in items(table, raw) {
        let physical = bytes(&fragment[name], kind);
        let (logical, slot) = schema.decode(&physical);
        let folds = match control.in_force(&schema, logical) {
            InForce::Narrowing(one) => one.folds && slot.is_some_and(|slot| slot.shard >= one.adds),
            _ => false,
        };
        if !folds || !of(logical) {
            continue;
        }
        let base = value(logical, kind);
        let mut whole = items(table, raw)
            .into_iter()
            .find(|item| item[name] == base && same(table, item, &fragment))
            .expect("the base fragment exists whenever another one does");
        if let Some(part) = fragment[COUNTED]["N"].as_str() {
            let own = whole[COUNTED]["N"].as_str().unwrap_or("0");
            let sum = Number::parse(own).unwrap().plus(Number::parse(part).unwrap()).unwrap();
            whole[COUNTED] = json!({ "N": sum.to_string() });
            put(raw, table, &whole);
        }
        delete(raw, table, &fragment);
    }
}

fn same(table: &Table, a: &Json, b: &Json) -> bool {
    table.sort.is_none_or(|(sort, _)| a[sort] == b[sort])
}

fn put(raw: &dyn Store, table: &Table, item: &Json) {
    run(raw, Operation::PutItem, json!({ "TableName": table.name, "Item": item }));
}

fn delete(raw: &dyn Store, table: &Table, item: &Json) {
    let mut key = json!({ table.partition.0: item[table.partition.0] });
    if let Some((sort, _)) = table.sort {
        key[sort] = item[sort].clone();
    }
    run(raw, Operation::DeleteItem, json!({ "TableName": table.name, "Key": key }));
}

fn run(raw: &dyn Store, operation: Operation, body: Json) {
    let step = Step { operation: operation.name().to_owned(), body };
    assert_eq!(compare::run(raw, &step).error, None);
}
