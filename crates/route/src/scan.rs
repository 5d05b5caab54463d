//! Scan, of a table or an index, parallel or not: one physical Scan; keys in cursors and items are translated.

use std::sync::Arc;

use bytes::Bytes;
use heatsink_dynamo::expression::Checks;
use heatsink_dynamo::{Error, IndexSchema, Operation};
use heatsink_layout::Table;

use crate::answer::{logical_page, pass_refusal, rewrite, unreadable};
use crate::asked::asked_first;
use crate::context::PlanContext;
use crate::cursor;
use crate::filter::LocalFilter;
use crate::key::place;
use crate::legacy::compares;
use crate::plan::{Plan, Single};
use crate::query::legacy::modernized;
use crate::refusal::Unplanned;
use crate::request::{Request, set_members};
use crate::splice::Splice;

const WHY: &str =
    "a scan reads all physical keys anyway: one physical request, keys in cursor and items translated";

/// The plan of a Scan of a recorded table.
pub(crate) fn plan(
    request: &Request<'_>,
    schema: &Arc<Table>,
    context: &PlanContext<'_>,
) -> Result<Plan, Error> {
    if schema.has_drawn() {
        let (body, shard) = cursor::taken_off(request.body, schema);
        return unmarked(&Request::read(&body)?, schema, &context.with_cursor(shard));
    }
    unmarked(request, schema, context)
}

fn unmarked(request: &Request<'_>, schema: &Arc<Table>, context: &PlanContext<'_>) -> Result<Plan, Error> {
    let index = match request.string("IndexName")? {
        None => None,
        // An index that this schema does not know: the store refuses it, or was given it a moment ago.
        Some(name) => schema.indexes.iter().find(|index| index.name == name),
    };
    if let Some(index) = index
        && schema.index_key(&index.key.partition.name).is_some_and(|key| key.turn().is_some())
    {
        // A cursor does not say under which of two stored values its item lies, nor does the item stay there.
        return Err(Error::validation(format!(
            "The key {} of index {} is being spread or brought back by `heatsink adopt`, and until that is done the index cannot be read by \
             Scan. Query it, or Scan the table",
            index.key.partition.name, index.name
        )));
    }
    if let Some(conditions) = request.get("ScanFilter")
        && schema.stored_otherwise().any(|name| compares(conditions, name).unwrap_or(false))
    {
        return legacy_filter(request, schema, context);
    }
    let legacy = ["ScanFilter", "AttributesToGet", "ConditionalOperator"];
    if request.get("FilterExpression").is_some() && legacy.iter().any(|name| request.get(name).is_some()) {
        return Ok(pass_refusal(Operation::Scan, request.body));
    }
    match read(request, schema, context, index, Checks::All) {
        Ok(plan) => Ok(plan),
        // What only the checks here find wrong the store may take: it decides.
        Err(Unplanned::Invalid) => match read(request, schema, context, index, Checks::Meaning) {
            Ok(plan) => Ok(asked_first(Operation::Scan, request.body.clone(), plan)),
            Err(Unplanned::Invalid) => Ok(pass_refusal(Operation::Scan, request.body)),
            Err(Unplanned::Refused(error)) => Err(error),
        },
        Err(Unplanned::Refused(error)) => Err(error),
    }
}

/// The plan of a Scan with a `ScanFilter` that compares the partition key: as an expression, which is evaluated here. What such
/// a filter may hold is the store's to say: it is asked first.
fn legacy_filter(
    request: &Request<'_>,
    schema: &Arc<Table>,
    context: &PlanContext<'_>,
) -> Result<Plan, Error> {
    let as_it_came = request.body;
    match modernized(request, "ScanFilter") {
        Ok(Some(modern)) => {
            let then = unmarked(&Request::read(&modern)?, schema, context)?;
            Ok(asked_first(Operation::Scan, as_it_came.clone(), then))
        }
        Ok(None) | Err(Unplanned::Invalid) => Ok(pass_refusal(Operation::Scan, as_it_came)),
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
    let filter = LocalFilter::new(request, schema, index, checks)?;
    let mut splice = Splice::new(request.body);
    start_key(request, schema, context, &mut splice)?;
    let body = splice.finish(request.body);
    let table = Arc::clone(schema);
    let (body, filter, why) = match filter {
        None => (body, None, WHY.to_owned()),
        Some((filter, changes)) => {
            let why = format!(
                "{WHY}; the filter reads a key that is stored with shard suffixes and is evaluated here, on logical keys"
            );
            (set_members(&body, &changes).map_err(Unplanned::Refused)?, Some(filter), why)
        }
    };
    let finish = move |answer: Result<Bytes, Error>| {
        let body = answer?;
        let body = rewrite(Operation::Scan, &body, |splice| logical_page(&table, &body, splice))?;
        match &filter {
            None => Ok(body),
            Some(filter) => filter.answer(&body).map_err(|_| unreadable(Operation::Scan)),
        }
    };
    Ok(Single::new(Operation::Scan, body, Some(Box::new(finish)), why).plan())
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
