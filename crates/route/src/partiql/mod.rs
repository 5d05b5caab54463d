//! PartiQL on sharded tables: ExecuteStatement, BatchExecuteStatement, ExecuteTransaction.
//!
//! - A statement that names one primary key becomes one physical statement: the key made physical
//!   where it is written, in the text or in a parameter (`rewrite`). One that concerns all
//!   fragments of a counter becomes a transaction (`over`).
//! - Any other SELECT is read by the plans of Query and Scan, with the `WHERE` clause evaluated
//!   here (`read`, `gather`).
//! - While a key moves, a SELECT of one of its items by ExecuteStatement is a Query; in a batch or
//!   a transaction it is sent for both slots (`both`).
//! - A write that does not name a primary key, or that cannot be read here, is asked for under a
//!   table name that no table can have: the store refuses it in its own words, and nothing can be
//!   written (`guard`).
//!
//! Beneath: `keys` (which key a statement names), `pages` (bodies of the reads), `token`
//! (NextToken), `many` (several statements). Why so: docs/develop/decisions/0005-partiql.md.

mod answer;
mod both;
mod gather;
mod guard;
mod keys;
mod many;
mod over;
mod pages;
mod read;
mod refused;
mod rewrite;
mod statement;
mod token;

use std::sync::Arc;

use bytes::Bytes;
use heatsink_dynamo::partiql::Action;
use heatsink_dynamo::{Error, Operation, json};
use heatsink_layout::Table;

use self::answer::logical;
use self::keys::Target;
use self::refused::unread;
use self::statement::Written;
pub(crate) use self::statement::reads;
use crate::context::PlanContext;
use crate::plan::{Finish, Plan, Single};
use crate::preflight;
use crate::refusal::too_large;
use crate::request::Request;
use crate::shared::Shared;
use crate::tables::table_name;

/// The plan of a PartiQL request that names a recorded table.
pub(crate) fn plan(
    shared: &Shared,
    operation: Operation,
    request: &Request<'_>,
    context: &PlanContext<'_>,
) -> Result<Plan, Error> {
    if operation == Operation::ExecuteStatement {
        one(shared, request, context)
    } else {
        many::plan(operation, request, context)
    }
}

/// Whether a statement goes on where one on a table under a layout stopped.
pub(crate) fn names_layout(body: &Bytes) -> bool {
    let token = json::member(body, "NextToken").ok().flatten().and_then(|raw| json::string(raw).ok());
    token.is_some_and(|token| token::is_own(&token))
}

fn one(shared: &Shared, request: &Request<'_>, context: &PlanContext<'_>) -> Result<Plan, Error> {
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
        // With a further test of the key the store would be sent another condition than it would
        // judge.
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
        return select.plan(shared, request, context);
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
    // A key in its shard 0 is its own physical key, and the answer holds no other but the spread
    // keys of indexes.
    let finish: Option<Finish> = (suffix > 0 || !table.index_keys().is_empty()).then(|| -> Finish {
        Box::new(move |answer| logical(answer).map_err(|error| too_large(error, suffix)))
    });
    let single = Single::new(Operation::ExecuteStatement, body, finish, why);
    Single { shard: Some(place.slot.shard), ..single }.plan()
}
