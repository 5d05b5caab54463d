//! Scan, of a table or an index, parallel or not: one physical Scan; keys in cursors and items are
//! translated.
//!
//! Where the store cannot test or show items as the client knows them, that is done here
//! (`evaluated`). Keys on record that move, or have changed since the Scan began, are read by
//! themselves at its end (`apart`); cursors say when it began (`mark`).

mod apart;
mod evaluated;

use std::sync::Arc;

use bytes::Bytes;
use heatsink_dynamo::expression::{Checks, may_mention};
use heatsink_dynamo::{Error, IndexSchema, Operation, Value, json};
use heatsink_layout::Table;

use self::apart::{Image, KeysApart};
use self::evaluated::Evaluated;
use crate::answer::{rewrite, strip_object};
use crate::collection::keys::cursor_attributes;
use crate::collection::selection::Expressions;
use crate::context::PlanContext;
use crate::key::{CursorOf, place_cursor};
use crate::layout_cursor::Bare;
use crate::layout_cursor::mark::{self, Mark};
use crate::legacy::{compares, modernized};
use crate::plan::{Kind, Plan, Single};
use crate::preflight;
use crate::preflight::{pass_refusal, unplanned};
use crate::refusal::{Unplanned, strict_then_lenient};
use crate::request::{Request, set_members};
use crate::shared::Shared;
use crate::splice::Splice;
use crate::{counter, cursor, layout_cursor};

const WHY: &str =
    "a scan reads all physical keys anyway: one physical request, keys in cursor and items translated";

const MIXED: &str = "values of the index's key are being rewritten, or some items keep a former form of them: the table is scanned, in which each item has \
                         one place, and items that are not in the index are left out";

/// A Scan's way so far, as its cursor tells it.
struct Progress<'a> {
    shared: &'a Shared,
    /// What the next cursor says.
    mark: Mark,
    /// Where the cursor's item lies.
    of: CursorOf,
    /// The raw cursor of a Scan that has come to the keys which are read by themselves.
    apart: Option<(mark::Apart, Bytes)>,
}

/// The plan of a Scan of a recorded table.
///
/// # Errors
/// `ValidationException` for a cursor of another layout; `ServiceUnavailable` for one of a page
/// that knew more of the table's keys than this gateway.
pub(crate) fn plan(
    shared: &Shared,
    request: &Request<'_>,
    schema: &Arc<Table>,
    context: &PlanContext<'_>,
) -> Result<Plan, Error> {
    let index = request.string("IndexName")?;
    let order = layout_cursor::order(schema, index.as_deref());
    let (found, mut body) = layout_cursor::taken_off(request.body);
    let goes_through_table = order.as_deref().is_some_and(layout_cursor::is_of_the_table);
    let of_index = index.as_deref().filter(|_| !goes_through_table);
    let begun = || Mark::begun(order.clone(), schema);
    let (read, of) = match (&found, request.get("ExclusiveStartKey")) {
        (Some(text), _) => {
            let read = Mark::read(text);
            let of = read.shard.map_or(CursorOf::Former, CursorOf::Shard);
            (read, of)
        }
        (None, None) => (begun(), CursorOf::InForce),
        // A token comes back as it was: it is of before any key was on record.
        (None, Some(_)) if context.is_statement() => (Mark::default(), CursorOf::Former),
        // One of the index, from when a Scan of it did not go through the table.
        (None, Some(start))
            if goes_through_table && layout_cursor::is_bare_key(start, schema, index.as_deref()) =>
        {
            return Err(layout_cursor::of_another_layout(schema));
        }
        (None, Some(start)) => match Bare::of(schema, index.as_deref(), context.layouts()) {
            Bare::InForce => (begun(), CursorOf::InForce),
            Bare::Unknown if layout_cursor::is_bare_key(start, schema, of_index) => {
                return Err(layout_cursor::of_another_layout(schema));
            }
            Bare::Unknown => (Mark::default(), CursorOf::Former),
        },
    };
    let mark = read.next(order.clone(), schema)?;
    let mut progress = Progress { shared, mark, of, apart: None };
    let start = Request::read(&body)?.get("ExclusiveStartKey").map(|start| body.slice_ref(start));
    if let (Some(apart), Some(start)) = (read.apart, &start) {
        progress.apart = Some((apart, start.clone()));
        // It is no cursor of the store.
        body = set_members(&body, &vec![("ExclusiveStartKey", None)])?;
    }
    let request = Request::read(&body)?;
    let plan = if schema.has_externally_assigned() {
        let (body, shard) = cursor::without_shard(request.body, schema);
        untagged(&Request::read(&body)?, schema, &context.with_cursor(shard), &progress)?
    } else {
        untagged(&request, schema, context, &progress)?
    };
    if let Some(start) = start {
        if found.is_some() || layout_cursor::is_bare_key(&start, schema, of_index) {
            layout_cursor::admit(read.order.as_deref(), order.as_deref(), schema)?;
        } else if goes_through_table {
            // What is no cursor of the index is the store's to refuse.
            return Ok(pass_refusal(Operation::Scan, &body));
        }
    }
    Ok(plan)
}

fn untagged(
    request: &Request<'_>,
    schema: &Arc<Table>,
    context: &PlanContext<'_>,
    progress: &Progress<'_>,
) -> Result<Plan, Error> {
    let index = match request.string("IndexName")? {
        None => None,
        // An index that this schema does not know: the store refuses it, or was given it a moment
        // ago.
        Some(name) => schema.indexes.iter().find(|index| index.name == name),
    };
    if let Some(index) = index.filter(|index| schema.is_index_mixed(index)) {
        return of_the_table(request, schema, context, index, progress);
    }
    let by_key =
        |conditions| schema.stored_otherwise().any(|name| compares(conditions, name).unwrap_or(false));
    if has_counters(request, schema, index)
        || progress.reads_apart(schema)
        || request.get("ScanFilter").is_some_and(by_key)
    {
        match modernized(request, "ScanFilter") {
            Ok(None) => {}
            // What such a filter may hold is the store's to say: it is asked first.
            Ok(Some(modern)) => {
                let then = untagged(&Request::read(&modern)?, schema, context, progress)?;
                return Ok(preflight::as_it_came(Operation::Scan, request.body.clone(), then));
            }
            Err(why) => return unplanned(Operation::Scan, request.body, why),
        }
    }
    let legacy = ["ScanFilter", "AttributesToGet", "ConditionalOperator"];
    if request.get("FilterExpression").is_some() && legacy.iter().any(|name| request.get(name).is_some()) {
        return Ok(pass_refusal(Operation::Scan, request.body));
    }
    let read = |checks| read(request, schema, context, index, checks, progress);
    match strict_then_lenient(Unplanned::is_for_the_store, read) {
        Ok((plan, true)) => Ok(plan),
        Ok((plan, false)) => Ok(preflight::as_it_came(Operation::Scan, request.body.clone(), plan)),
        Err(why) => unplanned(Operation::Scan, request.body, why),
    }
}

/// The plan of a Scan of an index whose partition key migrates: one of the table. Items change
/// their place in the index meanwhile, and keep it in the table. The cursors are those of the
/// table. Whether the request is valid the store says, asked as it came but for the cursor.
fn of_the_table(
    request: &Request<'_>,
    schema: &Arc<Table>,
    context: &PlanContext<'_>,
    index: &IndexSchema,
    progress: &Progress<'_>,
) -> Result<Plan, Error> {
    let start = request.get("ExclusiveStartKey").map(json::members);
    if start.is_some_and(|start| !start.is_ok_and(|start| start.len() == schema.key.names().count())) {
        return Ok(pass_refusal(Operation::Scan, request.body));
    }
    let asked = set_members(request.body, &vec![("ExclusiveStartKey", None)])?;
    let planned = modernized(request, "ScanFilter").and_then(|modern| {
        let request = Request::read(modern.as_ref().unwrap_or(request.body))?;
        read(&request, schema, context, Some(index), Checks::Meaning, progress)
    });
    match planned {
        Ok(plan) => Ok(preflight::as_it_came(Operation::Scan, asked, plan)),
        Err(why) => unplanned(Operation::Scan, &asked, why),
    }
}

fn read(
    request: &Request<'_>,
    schema: &Arc<Table>,
    context: &PlanContext<'_>,
    index: Option<&IndexSchema>,
    checks: Checks,
    progress: &Progress<'_>,
) -> Result<Plan, Unplanned> {
    let mut splice = Splice::new(request.body);
    if let Some(start) = request.get("ExclusiveStartKey") {
        place_cursor(schema, context, start, progress.of, &mut splice)?;
    }
    let body = splice.finish(request.body);
    if let Some(scan) = evaluated(request, schema, context, index, checks, &body, progress)? {
        return Ok(match scan.kind() {
            Kind::Single => Plan::Single(Box::new(scan)),
            _ => Plan::Scatter(Box::new(scan)),
        });
    }
    let (table, mark) = (Arc::clone(schema), progress.mark.clone());
    let finish = move |answer: Result<Bytes, Error>| {
        let body = answer?;
        rewrite(Operation::Scan, &body, |splice| {
            let [items, last] = json::attributes_of(&body, ["Items", "LastEvaluatedKey"])?;
            for item in json::elements(items.filter(|raw| *raw != b"null").unwrap_or(b"[]"))? {
                strip_object(&table, item, splice)?;
            }
            last.map_or(Ok(()), |last| mark.logical(&table, last, splice))
        })
    };
    Ok(Single::new(Operation::Scan, body, Some(Box::new(finish)), WHY).plan())
}

/// The Scan as one whose items are tested here, if that is needed: the table holds counters, keys
/// are read by themselves, or the filter reads a key that is stored with shard suffixes. `body`:
/// the request with its cursor physical.
fn evaluated(
    request: &Request<'_>,
    schema: &Arc<Table>,
    context: &PlanContext<'_>,
    index: Option<&IndexSchema>,
    checks: Checks,
    body: &Bytes,
    progress: &Progress<'_>,
) -> Result<Option<Evaluated>, Unplanned> {
    let counters = has_counters(request, schema, index);
    let mixed = index.filter(|index| schema.is_index_mixed(index));
    // What the store refuses has no keys to read.
    let apart = progress.reads_apart(schema) && (index.is_some() || request.get("IndexName").is_none());
    if !apart && !counters && mixed.is_none() && !may_filter_by_key(request, schema) {
        return Ok(None);
    }
    let mut expressions = Expressions::read(request, schema, None, checks)?;
    if let Some(index) = mixed {
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
    if !apart && !by_key && fold.is_none() && mixed.is_none() && !(counters && index.is_none()) {
        return Ok(None);
    }
    let mut why = match mixed {
        None => WHY.to_owned(),
        Some(_) => MIXED.to_owned(),
    };
    if by_key {
        why += "; the filter reads a key that is stored with shard suffixes and is evaluated here, on logical keys";
    }
    if counters && index.is_none() {
        why += "; the table holds counters: their fragments but the base one are left out, and filter, projection and Limit are applied here. Where only left \
                out rows were read, the scan goes on";
    }
    if apart {
        why += "; keys have moved to other shards since the scan began, or move: what it meets of them is left out, and at its end they are read by themselves";
    }
    if let Some(fold) = &fold {
        why = fold.why(&why);
    }
    let keys =
        apart.then(|| progress.keys_apart(request, schema, context, &expressions, index)).transpose()?;
    let at = match (&keys, &progress.apart) {
        (Some(keys), Some((apart, start))) => Some(keys.at(*apart, start).map_err(|_| Unplanned::Invalid)?),
        _ => None,
    };
    let mut changes = expressions.changes(schema, index);
    if mixed.is_some() {
        changes.extend([("IndexName", None), ("Select", None)]);
    }
    let cursor = cursor_attributes(schema, index.filter(|_| mixed.is_none()));
    Ok(Some(Evaluated {
        body: set_members(body, &changes).map_err(Unplanned::Refused)?,
        mark: progress.mark.clone(),
        apart: keys,
        at,
        table: Arc::clone(schema),
        selection: expressions.selection(schema, index),
        limit: request.limit()?,
        fold,
        cursor: cursor.into_iter().map(|key| key.name.clone()).collect(),
        within: mixed.map(|index| index.key.clone()),
        why,
    }))
}

impl Progress<'_> {
    /// Whether keys are read by themselves.
    fn reads_apart(&self, schema: &Table) -> bool {
        self.apart.is_some() || schema.key_layouts().any_apart(self.mark.since)
    }

    fn keys_apart(
        &self,
        request: &Request<'_>,
        schema: &Arc<Table>,
        context: &PlanContext<'_>,
        expressions: &Expressions<'_>,
        index: Option<&IndexSchema>,
    ) -> Result<KeysApart, Unplanned> {
        let number = |name| {
            let text = request.get(name).map(|raw| std::str::from_utf8(raw).unwrap_or_default());
            text.map(|text| text.parse::<u64>().map_err(|_| Unplanned::Invalid)).transpose()
        };
        let select = request.string("Select").map_err(Unplanned::Refused)?;
        let wanted = expressions.wanted(schema, index);
        // Of a local index the store adds what the index does not hold.
        let whole = index.is_some_and(|index| index.local)
            && (select.as_deref() == Some("ALL_ATTRIBUTES") || wanted.is_some());
        let mixed = index.is_some_and(|index| schema.is_index_mixed(index));
        let cursor = cursor_attributes(schema, index.filter(|_| !mixed)).into_iter();
        let is_own = |name: &str| schema.key.names().any(|own| own == name);
        Ok(KeysApart {
            shared: self.shared.clone(),
            layouts: context.handle(),
            table: Arc::clone(schema),
            segment: number("Segment")?.zip(number("TotalSegments")?),
            report: request.get("ReturnConsumedCapacity").map(<[u8]>::to_vec),
            image: Image::of(schema, index, wanted, whole),
            index: cursor.filter(|attribute| !is_own(&attribute.name)).cloned().collect(),
        })
    }
}

/// Whether what is read can hold counters. Of an index that is not known here, and that the store
/// therefore refuses, nobody knows.
fn has_counters(request: &Request<'_>, schema: &Table, index: Option<&IndexSchema>) -> bool {
    schema.has_counters() && (index.is_some() || request.get("IndexName").is_none())
}

/// Whether the filter may mention a key that is stored with shard suffixes.
fn may_filter_by_key(request: &Request<'_>, schema: &Table) -> bool {
    let text = request.string("FilterExpression").ok().flatten();
    let names = request.get("ExpressionAttributeNames");
    text.is_some_and(|text| schema.stored_otherwise().any(|name| may_mention(&text, names, name)))
}
