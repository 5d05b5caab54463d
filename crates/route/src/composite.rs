//! Query and Scan of a global index whose key has several partition key or several sort key attributes.
//!
//! Where all of those attributes are stored as the client sent them, the store reads the index as it would without shards: one
//! physical request, keys in cursor and items translated. What needs more than that is refused by name: a key attribute that is
//! stored with shard suffixes, a filter that reads one, and counters, of which an index holds a part.

use std::sync::Arc;

use bytes::Bytes;
use heatsink_dynamo::expression::{Bindings, Checks, Condition, Kind, may_mention};
use heatsink_dynamo::{CompositeIndex, Error, Operation, Value};
use heatsink_layout::Table;

use crate::answer::{logical_page, rewrite};
use crate::context::PlanContext;
use crate::cursor;
use crate::key::place;
use crate::legacy::compares;
use crate::plan::{Plan, Single};
use crate::preflight::pass_refusal;
use crate::refusal::Unplanned;
use crate::request::Request;
use crate::splice::Splice;

/// The composite index that a Query or Scan names.
///
/// # Errors
/// `SerializationException` where `IndexName` is no string.
pub(crate) fn named<'a>(
    request: &Request<'_>,
    table: &'a Table,
) -> Result<Option<&'a CompositeIndex>, Error> {
    if table.composite_indexes.is_empty() {
        return Ok(None);
    }
    Ok(request.string("IndexName")?.and_then(|name| table.composite_index(&name)))
}

/// The plan of such a Query or Scan.
///
/// # Errors
/// `ValidationException` for what is not supported on such an index of a sharded table.
pub(crate) fn plan(
    operation: Operation,
    request: &Request<'_>,
    table: &Arc<Table>,
    index: &CompositeIndex,
    context: &PlanContext<'_>,
) -> Result<Plan, Error> {
    if let Some(error) = unreadable(table, index) {
        return Err(error);
    }
    if let Some(name) = filtered(request, table) {
        return Err(filter(index, name));
    }
    let (body, shard) = cursor::without_shard(request.body, table);
    let body = &body;
    let request = Request::read(body)?;
    let mut splice = Splice::new(body);
    if let Some(start) = request.get("ExclusiveStartKey") {
        match place(table, &context.with_cursor(shard), start, &mut splice) {
            Ok(_) => {}
            Err(Unplanned::Invalid) => return Ok(pass_refusal(operation, body)),
            Err(Unplanned::Refused(error)) => return Err(error),
        }
    }
    let sent = splice.finish(body);
    let schema = Arc::clone(table);
    let finish = move |answer: Result<Bytes, Error>| {
        let body = answer?;
        rewrite(operation, &body, |splice| logical_page(&schema, &body, splice))
    };
    let why = format!(
        "no key attribute of index {} is stored with shard suffixes: one physical request, keys in cursor and items translated",
        index.name
    );
    Ok(Single::new(operation, sent, Some(Box::new(finish)), why).plan())
}

/// Why an index cannot be read at all.
pub(crate) fn unreadable(table: &Table, index: &CompositeIndex) -> Option<Error> {
    let refuse = |why: String| {
        Error::gateway_rejection(format!(
            "The index {} has several attributes of one kind in its key, and {why}: reading it is not supported on a sharded table \
             yet. Nothing was read",
            index.name
        ))
    };
    if table.has_counters() {
        return Some(refuse("the table holds counters, of which an index has a part".to_owned()));
    }
    let name = suffixed(table).find(|name| index.has(name))?;
    Some(refuse(format!("{name} among them is stored with shard suffixes")))
}

/// The attributes that are stored with shard suffixes.
pub(crate) fn suffixed(table: &Table) -> impl Iterator<Item = &str> {
    let whole = table.keys_are_whole().then_some(table.key.partition.name.as_str());
    table.stored_otherwise().filter(move |name| Some(*name) != whole)
}

/// The refusal of a test that the index cannot answer.
pub(crate) fn filter(index: &CompositeIndex, name: &str) -> Error {
    Error::gateway_rejection(format!(
        "The index {} has several attributes of one kind in its key, and a filter that reads {name}, which is stored with shard suffixes, \
         is not supported on it yet. Nothing was read",
        index.name
    ))
}

/// The attribute that a filter compares and that is stored otherwise than the client sent it.
fn filtered<'a>(request: &Request<'_>, table: &'a Table) -> Option<&'a str> {
    let legacy = ["QueryFilter", "ScanFilter"].into_iter().filter_map(|name| request.get(name));
    let legacy: Vec<&[u8]> = legacy.collect();
    let names = request.get("ExpressionAttributeNames");
    let text = request.string("FilterExpression").ok().flatten();
    let filter = text.as_deref().map(|text| {
        let bindings = Bindings::read(names, request.get("ExpressionAttributeValues")).ok()?;
        Condition::read(Kind::Filter, text, &bindings, Checks::Meaning).ok()
    });
    suffixed(table).find(|name| {
        legacy.iter().any(|conditions| compares(conditions, name).unwrap_or(true))
            || match (&text, &filter) {
                (_, Some(Some(filter))) => filter.substitute(name, &Value::Null) != *filter,
                // What cannot be read here the store refuses; should it not, nothing is compared with a stored key.
                (Some(text), _) => may_mention(text, names, name),
                (None, _) => false,
            }
    })
}
