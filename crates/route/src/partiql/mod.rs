//! PartiQL on sharded tables: ExecuteStatement, BatchExecuteStatement, ExecuteTransaction.
//!
//! - A statement that names one primary key becomes one physical statement: the key made physical where it is written, in
//!   the text or in a parameter (`rewrite`). One that concerns all fragments of a counter becomes a transaction (`over`).
//! - Any other SELECT is read by the plans of Query and Scan, with the `WHERE` clause evaluated here (`read`, `gather`).
//! - While a key moves, a SELECT of one of its items by ExecuteStatement is a Query; in a batch or a transaction it is sent for both slots (`both`).
//! - A write that does not name a primary key, or that cannot be read here, is asked for under a table name that no table can
//!   have: the store refuses it in its own words, and nothing can be written (`guard`).
//!
//! Beneath: `keys` (which key a statement names), `pages` (bodies of the reads), `token` (NextToken), `many` (several
//! statements). Why so: docs/decisions/0005-partiql.md.

mod both;
mod gather;
mod guard;
mod keys;
mod many;
mod over;
mod pages;
mod read;
mod rewrite;
mod statement;
mod token;

use std::sync::Arc;

use bytes::Bytes;
use heatsink_dynamo::partiql::Action;
use heatsink_dynamo::{Error, Operation, json};
use heatsink_layout::Table;

use self::keys::Target;
use self::statement::Written;
pub(crate) use self::statement::reads;
use crate::answer::{logical_error, rewrite as edited, strip_object};
use crate::context::PlanContext;
use crate::plan::{Finish, Plan, Single};
use crate::refusal::too_large;
use crate::request::Request;
use crate::splice::Splice;
use crate::tables::table_name;
use crate::{Router, preflight};

/// The plan of a PartiQL request that names a recorded table.
pub(crate) fn plan(
    router: &Router,
    operation: Operation,
    request: &Request<'_>,
    context: &PlanContext<'_>,
) -> Result<Plan, Error> {
    if operation == Operation::ExecuteStatement {
        one(router, request, context)
    } else {
        many::plan(operation, request, context)
    }
}

/// Whether a statement goes on where one on a table under a layout stopped.
pub(crate) fn names_layout(body: &Bytes) -> bool {
    let token = json::member(body, "NextToken").ok().flatten().and_then(|raw| json::string(raw).ok());
    token.is_some_and(|token| token::is_own(&token))
}

fn one(router: &Router, request: &Request<'_>, context: &PlanContext<'_>) -> Result<Plan, Error> {
    let written = match Written::read(request) {
        Ok(Some(written)) => written,
        Ok(None) => return Ok(unread(request.body, "it holds no statement", true)),
        Err(why) => {
            return if reads(request) {
                Ok(unread(request.body, &why, true))
            } else {
                guard::one(request, why)
            };
        }
    };
    let Some(table) = context.table(table_name(&written.statement.table.name)) else {
        return guard::one(request, "it names several tables".to_owned());
    };
    if let Action::Select { shown, order } = &written.statement.action {
        // With a further test of the key the store would be sent another condition than it would judge.
        let whole = written.statement.index.is_none()
            && rewrite::further_tests(&written, &table.key.partition.name).is_empty()
            && order.is_empty()
            && read::names_apart(shown, &table)
            && request.get("Limit").is_none()
            && request.get("NextToken").is_none();
        if whole
            && !keys::names_assigned(&written, &table, context)
            && !keys::names_moving(&written, &table, context)
            && let Target::At(place) = keys::target(&written, &table, context, true)
            && let Ok(body) = rewrite::body(request.body, &written, &table, &place)
        {
            return Ok(pointed(body, &table, &place));
        }
        let select = read::Select { written: &written, schema: &table, shown, order };
        return select.plan(router, request, context);
    }
    match keys::target(&written, &table, context, false) {
        Target::At(place) => {
            let body = rewrite::body(request.body, &written, &table, &place)?;
            if place.deleted.is_empty() {
                Ok(pointed(body, &table, &place))
            } else {
                over::plan(request, &body, &written, &table, &place)
            }
        }
        Target::Invalid => Ok(preflight::pass_refusal(Operation::ExecuteStatement, request.body)),
        Target::Nowhere(error) | Target::Counter(error) => guard::plan(request, error),
    }
}

/// One physical statement.
fn pointed(body: Bytes, table: &Arc<Table>, place: &keys::Place) -> Plan {
    let why = format!(
        "the statement names one primary key, which is in {}: one physical statement, the key rewritten where it stands",
        place.slot
    );
    let length = |key: &crate::collection::keys::Key| key.canonical_bytes().len();
    let suffix = length(&place.physical) - length(&place.logical);
    let logical = logical(Arc::clone(table));
    // A key in its shard 0 is its own physical key, and the answer holds no other but the spread keys of indexes.
    let finish: Option<Finish> = (suffix > 0 || !table.index_keys().is_empty()).then(|| -> Finish {
        Box::new(move |answer| logical(answer).map_err(|error| too_large(error, suffix)))
    });
    let single = Single::new(Operation::ExecuteStatement, body, finish, why);
    Single { shard: Some(place.slot.shard), ..single }.plan()
}

/// Makes the keys of an answer to ExecuteStatement logical.
fn logical(table: Arc<Table>) -> Finish {
    Box::new(move |answer| {
        let body = answer.map_err(|error| logical_error(&table, error))?;
        edited(Operation::ExecuteStatement, &body, |splice| strip_items(&table, &body, splice))
    })
}

fn strip_items<'a>(table: &Table, body: &'a [u8], splice: &mut Splice<'a>) -> Result<(), json::Malformed> {
    let items = json::member(body, "Items")?.filter(|items| *items != b"null").unwrap_or(b"[]");
    json::elements(items)?.into_iter().try_for_each(|item| strip_object(table, item, splice))
}

/// The refusal of a statement that is not understood here.
fn not_understood(why: &str) -> Error {
    Error::gateway_rejection(format!(
        "The table is sharded, and Heatsink does not understand this statement: {why}. Nothing was read or written"
    ))
}

/// A read that is refused here unless the store refuses it first.
fn unread(body: &Bytes, why: &str, asked: bool) -> Plan {
    refused_read(body, not_understood(why), asked)
}

fn refused_read(body: &Bytes, error: Error, ask: bool) -> Plan {
    let refused = gather::Refused(error).plan();
    if ask { as_sent(body, refused) } else { refused }
}

/// A read that is carried out if the store takes its statement.
fn as_sent(body: &Bytes, then: Plan) -> Plan {
    let one_item = [("NextToken", None), ("Limit", Some(&b"1"[..]))];
    let limit = json::member(body, "Limit").ok().flatten().unwrap_or(b"1");
    let valid = limit.iter().all(u8::is_ascii_digit) && limit != b"0";
    let changes = if valid { &one_item[..] } else { &one_item[..1] };
    let body = json::splice_members(body, changes).map_or_else(|_| body.clone(), Bytes::from);
    let why = "whether the statement is one that DynamoDB takes, the store says";
    preflight::first(Operation::ExecuteStatement, body, then, why)
}
