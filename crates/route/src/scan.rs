//! Scan, of a table or an index, parallel or not: one physical Scan; keys in cursors and items are translated.
//!
//! Where the store cannot test or show items as the client knows them, that is done here (`evaluated`).

mod evaluated;

use std::sync::Arc;

use bytes::Bytes;
use heatsink_dynamo::expression::{Checks, may_mention};
use heatsink_dynamo::{Error, IndexSchema, Operation, Value, json};
use heatsink_layout::Table;

use self::evaluated::Evaluated;
use crate::answer::{logical_page, rewrite};
use crate::collection::keys::cursor_attributes;
use crate::collection::selection::Expressions;
use crate::context::PlanContext;
use crate::key::place;
use crate::legacy::{compares, modernized};
use crate::plan::{Kind, Plan, Single};
use crate::preflight;
use crate::preflight::pass_refusal;
use crate::refusal::Unplanned;
use crate::request::{Request, set_members};
use crate::splice::Splice;
use crate::{counter, cursor};

const WHY: &str =
    "a scan reads all physical keys anyway: one physical request, keys in cursor and items translated";

const MIGRATING: &str = "the key of the index is being spread or brought back, and items change their place in the index meanwhile: the table is scanned, \
                         in which they keep theirs, and items that are not in the index are left out";

/// The plan of a Scan of a recorded table.
pub(crate) fn plan(
    request: &Request<'_>,
    schema: &Arc<Table>,
    context: &PlanContext<'_>,
) -> Result<Plan, Error> {
    if schema.has_externally_assigned() {
        let (body, shard) = cursor::without_shard(request.body, schema);
        return untagged(&Request::read(&body)?, schema, &context.with_cursor(shard));
    }
    untagged(request, schema, context)
}

fn untagged(request: &Request<'_>, schema: &Arc<Table>, context: &PlanContext<'_>) -> Result<Plan, Error> {
    let index = match request.string("IndexName")? {
        None => None,
        // An index that this schema does not know: the store refuses it, or was given it a moment ago.
        Some(name) => schema.indexes.iter().find(|index| index.name == name),
    };
    if let Some(index) = index.filter(|index| schema.is_index_migrating(index)) {
        return of_the_table(request, schema, context, index);
    }
    let by_key =
        |conditions| schema.stored_otherwise().any(|name| compares(conditions, name).unwrap_or(false));
    if has_counters(request, schema, index) || request.get("ScanFilter").is_some_and(by_key) {
        match modernized(request, "ScanFilter") {
            Ok(None) => {}
            // What such a filter may hold is the store's to say: it is asked first.
            Ok(Some(modern)) => {
                let then = untagged(&Request::read(&modern)?, schema, context)?;
                return Ok(preflight::as_it_came(Operation::Scan, request.body.clone(), then));
            }
            Err(Unplanned::Invalid) => return Ok(pass_refusal(Operation::Scan, request.body)),
            Err(Unplanned::Refused(error)) => return Err(error),
        }
    }
    let legacy = ["ScanFilter", "AttributesToGet", "ConditionalOperator"];
    if request.get("FilterExpression").is_some() && legacy.iter().any(|name| request.get(name).is_some()) {
        return Ok(pass_refusal(Operation::Scan, request.body));
    }
    match read(request, schema, context, index, Checks::All) {
        Ok(plan) => Ok(plan),
        // What only the checks here find wrong the store may take: it decides.
        Err(Unplanned::Invalid) => match read(request, schema, context, index, Checks::Meaning) {
            Ok(plan) => Ok(preflight::as_it_came(Operation::Scan, request.body.clone(), plan)),
            Err(Unplanned::Invalid) => Ok(pass_refusal(Operation::Scan, request.body)),
            Err(Unplanned::Refused(error)) => Err(error),
        },
        Err(Unplanned::Refused(error)) => Err(error),
    }
}

/// The plan of a Scan of an index whose partition key migrates: one of the table. Items change their place in the index meanwhile, and keep it
/// in the table. The cursors are those of the table. Whether the request is valid the store says, asked as it came but for the cursor.
fn of_the_table(
    request: &Request<'_>,
    schema: &Arc<Table>,
    context: &PlanContext<'_>,
    index: &IndexSchema,
) -> Result<Plan, Error> {
    let start = request.get("ExclusiveStartKey").map(json::members);
    if start.is_some_and(|start| !start.is_ok_and(|start| start.len() == schema.key.names().count())) {
        return Ok(pass_refusal(Operation::Scan, request.body));
    }
    let asked = set_members(request.body, &vec![("ExclusiveStartKey", None)])?;
    let planned = modernized(request, "ScanFilter").and_then(|modern| {
        let request = Request::read(modern.as_ref().unwrap_or(request.body))?;
        read(&request, schema, context, Some(index), Checks::Meaning)
    });
    match planned {
        Ok(plan) => Ok(preflight::as_it_came(Operation::Scan, asked, plan)),
        Err(Unplanned::Invalid) => Ok(pass_refusal(Operation::Scan, &asked)),
        Err(Unplanned::Refused(error)) => Err(error),
    }
}

fn read(
    request: &Request<'_>,
    schema: &Arc<Table>,
    context: &PlanContext<'_>,
    index: Option<&IndexSchema>,
    checks: Checks,
) -> Result<Plan, Unplanned> {
    let mut splice = Splice::new(request.body);
    start_key(request, schema, context, &mut splice)?;
    let body = splice.finish(request.body);
    if let Some(scan) = evaluated(request, schema, index, checks, &body)? {
        return Ok(match scan.kind() {
            Kind::Single => Plan::Single(Box::new(scan)),
            _ => Plan::Scatter(Box::new(scan)),
        });
    }
    let table = Arc::clone(schema);
    let finish = move |answer: Result<Bytes, Error>| {
        let body = answer?;
        rewrite(Operation::Scan, &body, |splice| logical_page(&table, &body, splice))
    };
    Ok(Single::new(Operation::Scan, body, Some(Box::new(finish)), WHY).plan())
}

/// The Scan as one whose items are tested here, if that is needed: the table holds counters, or the filter reads a key that is stored with
/// shard suffixes. `body`: the request with its cursor physical.
fn evaluated(
    request: &Request<'_>,
    schema: &Arc<Table>,
    index: Option<&IndexSchema>,
    checks: Checks,
    body: &Bytes,
) -> Result<Option<Evaluated>, Unplanned> {
    let counters = has_counters(request, schema, index);
    let migrating = index.filter(|index| schema.is_index_migrating(index));
    if !counters && migrating.is_none() && !may_filter_by_key(request, schema) {
        return Ok(None);
    }
    let mut expressions = Expressions::read(request, schema, None, checks)?;
    if let Some(index) = migrating {
        expressions.confine(schema, index);
    }
    let filter = expressions.filter.as_ref().map(|(_, filter)| filter);
    let compares = |name: &str| filter.is_some_and(|filter| filter.substitute(name, &Value::Null) != *filter);
    let by_key = schema.stored_otherwise().any(compares);
    let fold = match index {
        _ if !counters => None,
        None => counter::of_table(request, &expressions, schema),
        Some(index) => counter::of_index(request, &expressions, schema, index).map_err(Unplanned::Refused)?,
    };
    if !by_key && fold.is_none() && migrating.is_none() && !(counters && index.is_none()) {
        return Ok(None);
    }
    let mut why = match migrating {
        None => WHY.to_owned(),
        Some(_) => MIGRATING.to_owned(),
    };
    if by_key {
        why += "; the filter reads a key that is stored with shard suffixes and is evaluated here, on logical keys";
    }
    if counters && index.is_none() {
        why += "; the table holds counters: their fragments but the base one are left out, and filter, projection and Limit are applied here. Where only left \
                out rows were read, the scan goes on";
    }
    if let Some(fold) = &fold {
        why = fold.why(&why);
    }
    let mut changes = expressions.changes(schema, index);
    if migrating.is_some() {
        changes.extend([("IndexName", None), ("Select", None)]);
    }
    let cursor = cursor_attributes(schema, index.filter(|_| migrating.is_none()));
    Ok(Some(Evaluated {
        body: set_members(body, &changes).map_err(Unplanned::Refused)?,
        table: Arc::clone(schema),
        selection: expressions.selection(schema, index),
        limit: request.limit()?,
        fold,
        cursor: cursor.into_iter().map(|key| key.name.clone()).collect(),
        within: migrating.map(|index| index.key.clone()),
        why,
    }))
}

/// Whether what is read can hold counters. Of an index that is not known here, and that the store therefore refuses, nobody knows.
fn has_counters(request: &Request<'_>, schema: &Table, index: Option<&IndexSchema>) -> bool {
    schema.has_counters() && (index.is_some() || request.get("IndexName").is_none())
}

/// Whether the filter may mention a key that is stored with shard suffixes.
fn may_filter_by_key(request: &Request<'_>, schema: &Table) -> bool {
    let text = request.string("FilterExpression").ok().flatten();
    let names = request.get("ExpressionAttributeNames");
    text.is_some_and(|text| schema.stored_otherwise().any(|name| may_mention(&text, names, name)))
}

/// Makes `ExclusiveStartKey` physical: it holds the table's primary key, on an index too.
fn start_key<'a>(
    request: &Request<'a>,
    schema: &Table,
    context: &PlanContext<'_>,
    splice: &mut Splice<'a>,
) -> Result<(), Unplanned> {
    let Some(start) = request.get("ExclusiveStartKey") else { return Ok(()) };
    place(schema, context, start, splice).map(drop)
}
