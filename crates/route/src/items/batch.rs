//! BatchGetItem and BatchWriteItem: the front end for many items. Where every item has one slot,
//! every key becomes one physical key of the same table, so that a batch stays one request.
//! Recorded and unrecorded tables may mix.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use heatsink_dynamo::{Error, Operation, json};
use heatsink_layout::{Placement, Table};

use super::read;
use crate::answer::{rewrite, strip_metrics_list, strip_object};
use crate::context::PlanContext;
use crate::key::place;
use crate::plan::{Plan, Single};
use crate::preflight::{pass_refusal, unplanned};
use crate::request::{Request, malformed};
use crate::splice::Splice;
use crate::tables::table_name;

/// The recorded tables of a batch, by name.
type Recorded = HashMap<String, Arc<Table>>;

/// Plans a BatchWriteItem that names counters.
pub(crate) type OfCounters = fn(&Request<'_>, &PlanContext<'_>) -> Result<Plan, Error>;

/// The plan of a batch that names a recorded table.
pub(crate) fn plan(
    operation: Operation,
    request: &Request<'_>,
    context: &PlanContext<'_>,
    of_counters: OfCounters,
) -> Result<Plan, Error> {
    let Some(items) = request.get("RequestItems") else { return Ok(pass_refusal(operation, request.body)) };
    let mut recorded = Recorded::new();
    let mut splice = Splice::new(request.body);
    for (name, value) in json::members(items).map_err(|_| malformed())? {
        let Some(schema) = context.table(table_name(&name)) else { continue };
        for object in objects(operation, value).map_err(|_| malformed())? {
            let located = match place(&schema, context, object, &mut splice) {
                Ok(located) => located,
                Err(why) => return unplanned(operation, request.body, why),
            };
            match (&located.location.placement, operation) {
                (
                    Placement::AnyOf { .. } | Placement::SumOf { .. } | Placement::Moving(_),
                    Operation::BatchGetItem,
                ) => {
                    return read::batch(request, context);
                }
                (Placement::SumOf { .. }, _) => return of_counters(request, context),
                (Placement::One(_) | Placement::AnyOf { .. } | Placement::Moving(_), _) => {}
            }
        }
        recorded.insert(schema.name.clone(), schema);
    }
    if splice.is_empty() && recorded.values().all(|schema| schema.index_keys().is_empty()) {
        let why =
            "every key of the batch lies in its shard 0, whose physical key is the logical key".to_owned();
        return Ok(Single::new(operation, request.body.clone(), None, why).plan());
    }
    let why =
        "every key of the batch has one physical key of the same table: one physical batch, keys rewritten";
    let finish = move |answer: Result<Bytes, Error>| {
        let body = answer?;
        rewrite(operation, &body, |splice| logical(operation, &recorded, &body, splice))
    };
    Ok(Single::new(operation, splice.finish(request.body), Some(Box::new(finish)), why).plan())
}

/// The raw keys and items under one table of `RequestItems`, `UnprocessedKeys` or
/// `UnprocessedItems`. A repeated member is given every time: whichever of them a store believes,
/// its key is physical.
fn objects(operation: Operation, table: &[u8]) -> Result<Vec<&[u8]>, json::Malformed> {
    let mut found = Vec::new();
    if operation == Operation::BatchGetItem {
        for keys in named(table, &["Keys"])? {
            found.extend(json::elements(keys)?);
        }
        return Ok(found);
    }
    for write in json::elements(table)? {
        for request in named(write, &["PutRequest", "DeleteRequest"])? {
            found.extend(named(request, &["Item", "Key"])?);
        }
    }
    Ok(found)
}

fn named<'a>(object: &'a [u8], names: &[&str]) -> Result<Vec<&'a [u8]>, json::Malformed> {
    let members = json::members(object)?.into_iter();
    Ok(members
        .filter(|(name, value)| names.contains(&&**name) && *value != b"null")
        .map(|(_, value)| value)
        .collect())
}

/// Makes every key of an answer logical.
fn logical<'a>(
    operation: Operation,
    recorded: &Recorded,
    body: &'a [u8],
    splice: &mut Splice<'a>,
) -> Result<(), json::Malformed> {
    let names = ["Responses", "UnprocessedKeys", "UnprocessedItems", "ItemCollectionMetrics"];
    let [responses, keys, items, metrics] = json::attributes_of(body, names)?;
    each(recorded, responses, |schema, table| {
        json::elements(table)?.into_iter().try_for_each(|item| strip_object(schema, item, splice))
    })?;
    for unprocessed in [keys, items] {
        each(recorded, unprocessed, |schema, table| {
            let objects = objects(operation, table)?;
            objects.into_iter().try_for_each(|object| strip_object(schema, object, splice))
        })?;
    }
    each(recorded, metrics, |schema, table| strip_metrics_list(schema, table, splice))
}

/// Calls `table` for each recorded table of an object by table names.
fn each<'a>(
    recorded: &Recorded,
    by_table: Option<&'a [u8]>,
    mut table: impl FnMut(&Table, &'a [u8]) -> Result<(), json::Malformed>,
) -> Result<(), json::Malformed> {
    let Some(by_table) = by_table.filter(|raw| *raw != b"null") else { return Ok(()) };
    for (name, value) in json::members(by_table)? {
        if let Some(schema) = recorded.get(table_name(&name)) {
            table(schema, value)?;
        }
    }
    Ok(())
}
