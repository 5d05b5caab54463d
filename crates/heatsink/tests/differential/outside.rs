//! A writer that bypasses Heatsink, whose code draws the shard of every item: between the requests
//! it moves items to other shards.

use fastrand::Rng;
use heatsink_dynamo::Operation;
use heatsink_layout::{InForce, LayoutSource};
use serde_json::{Value as Json, json};

use crate::compare;
use crate::generate::Step;
use crate::physical::{bytes, items, sort_key, value};
use crate::schema::Table;
use crate::world::World;

/// Whether rules have shards that others draw.
pub fn has(rules: &str) -> bool {
    rules.contains("hash = \"random\"")
}

/// Leaves out what shows the other writer's work: streams. And projections of transactions, to
/// which the engine adds key attributes; DynamoDB does not.
pub fn hide(steps: &mut Vec<Step>) {
    steps.retain(|step| !["GetRecords", "ListStreams"].contains(&step.operation.as_str()));
    for step in steps.iter_mut().filter(|step| step.operation == "TransactGetItems") {
        for action in step.body["TransactItems"].as_array_mut().into_iter().flatten() {
            for get in action.as_object_mut().into_iter().flat_map(|action| action.values_mut()) {
                if let Some(get) = get.as_object_mut() {
                    get.remove("ProjectionExpression");
                    get.remove("ExpressionAttributeNames");
                }
            }
        }
    }
}

/// Before some of the steps, moves an item of each table. Which follows from the step alone, so
/// that a case can be cut down.
pub fn stir(tables: &[Table], world: &World, step: &Step) {
    let seed = step
        .body
        .to_string()
        .bytes()
        .fold(0_u64, |seed, byte| seed.wrapping_mul(31).wrapping_add(byte.into()));
    let mut rng = Rng::with_seed(seed);
    if rng.u32(..4) > 0 {
        return;
    }
    for table in tables {
        let Some(schema) = world.control.table(table.name) else { continue };
        let (name, kind) = table.partition;
        let mut drawn = items(table, &*world.raw);
        drawn.retain(|item| schema.assigned_slot(&bytes(&item[name], kind)).is_some());
        if drawn.is_empty() {
            continue;
        }
        let mut item = drawn.swap_remove(rng.usize(..drawn.len()));
        let physical = bytes(&item[name], kind);
        let logical = schema.logical(&physical).to_vec();
        let InForce::Stable(layout) = world.control.in_force(&schema, &logical) else { continue };
        let sort = table.sort.map(|(name, kind)| (bytes(&item[name], kind), kind));
        let sort = sort.as_ref().map(|(bytes, kind)| sort_key(bytes, kind));
        let slots = layout.slots_of(sort).expect("it has a slot");
        let slot = slots[rng.usize(..slots.len())];
        let Ok(moved) = schema.physical(&logical, &layout, slot) else { continue };
        if moved == physical {
            continue;
        }
        let mut key = json!({ name: item[name] });
        if let Some((sort, _)) = table.sort {
            key[sort] = item[sort].clone();
        }
        item[name] = value(&moved, kind);
        let put = json!({ "TableName": table.name, "Item": item });
        let put = Step { operation: Operation::PutItem.name().to_owned(), body: put };
        if compare::run(&*world.raw, &put).error.is_some() {
            // DynamoDB Local lets an update make an item that it does not let anyone put: with an
            // index key of a wrong type.
            continue;
        }
        let delete = json!({ "TableName": table.name, "Key": key });
        run(world, Operation::DeleteItem, delete);
    }
}

/// What the other writer removes was there.
fn run(world: &World, operation: Operation, body: Json) {
    let step = Step { operation: operation.name().to_owned(), body };
    assert_eq!(compare::run(&*world.raw, &step).error, None);
}
