//! PutItem, UpdateItem and DeleteItem of a counter's item.

use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use heatsink_dynamo::{Error, Operation};
use heatsink_layout::{Layout, Table};

use super::add::Add;
use super::transaction;
use super::write::{self, Write};
use crate::answer::pass_refusal;
use crate::context::PlanContext;
use crate::item::{Physical, in_store_words, meaningless, of_empty_key, physical};
use crate::key::Located;
use crate::plan::{CallExplanation, Explanation, Finish, Kind, Plan, Planned, Single, one_call};
use crate::point::{finish, holder};
use crate::refusal::{Unsent, too_large};
use crate::request::Request;
use crate::rows::keys;
use crate::{Answer, Calls, Router, asked};

pub(crate) const MEANINGLESS: &str =
    "an expression is not valid: the store is asked for its words, with a key that nothing can be written to";

/// The plan of a write of one counter.
pub(crate) fn plan(
    router: &Router,
    operation: Operation,
    request: &Request<'_>,
    table: &Arc<Table>,
    layout: &Layout,
    context: &PlanContext<'_>,
) -> Result<Plan, Error> {
    let counted = layout.counted().unwrap_or_default();
    let holder = holder(operation);
    let (body, located) = match physical(request, holder, table, context)? {
        Physical::Sent { body, located } => (body, located),
        Physical::Invalid => return Ok(pass_refusal(operation, request.body)),
        Physical::Meaningless { body, error } => {
            return Ok(Single::new(operation, body, Some(in_store_words(error)), MEANINGLESS).plan());
        }
    };
    let object = request.get(holder).unwrap_or_default();
    if holder == "Key" && !keys::is_key(table, object) {
        return Ok(pass_refusal(operation, request.body));
    }
    let keys = keys::keys(table, layout, object)?;
    let ask = if write::doubtful(request) {
        match meaningless(request, &located, Error::validation("")) {
            Physical::Meaningless { body, .. } => Some(body),
            _ => None,
        }
    } else {
        None
    };
    let write = match write::read(Some(operation), request, counted) {
        Ok(write) => write,
        Err(Unsent::Refused(error)) => return Err(error),
        Err(Unsent::Meaningless(error)) => {
            let Physical::Meaningless { body, error } = meaningless(request, &located, error) else {
                return Ok(pass_refusal(operation, request.body));
            };
            return Ok(Single::new(operation, body, Some(in_store_words(error)), MEANINGLESS).plan());
        }
    };
    let longest = keys.last().map_or(0, Bytes::len) - keys.first().map_or(0, Bytes::len);
    let suffix = located.affixes.len() + longest;
    match write {
        Write::Whole => {
            let why = "the write does not only add to the counter: one physical request on row 0, which holds the item. Such writes are not spread";
            Ok(row0(operation, body, finish(operation, table, &located), &located, why))
        }
        Write::Add(update) => {
            let shard = router.draw(layout.shards);
            if shard == 0 {
                let why = "the update only adds to a counter: one physical request on row 0, drawn in turn";
                return Ok(row0(operation, body, finish(operation, table, &located), &located, why));
            }
            let add = Add::new(table, request, &update, &keys, shard, suffix)?;
            Ok(expressions_first(operation, ask, Plan::Single(Box::new(add))))
        }
        Write::All(gone) => {
            if keys.len() == 1 {
                let why = "the counter has one row: one physical request";
                return Ok(row0(operation, body, finish(operation, table, &located), &located, why));
            }
            let action = match operation {
                Operation::PutItem => "Put",
                Operation::DeleteItem => "Delete",
                _ => "Update",
            };
            let sent = Request::read(&body)?;
            let mut actions = vec![transaction::whole(action, &sent)];
            let name = request.get("TableName").unwrap_or(b"null");
            let others = keys.iter().skip(1);
            actions.extend(others.map(|key| transaction::cleared(name, key, gone.as_deref())));
            let body = transaction::body(&sent, &actions);
            let rows = actions.len();
            let table = Arc::clone(table);
            let finish: Finish = Box::new(move |answer| match answer {
                Ok(body) => transaction::answer(&table, &body),
                Err(error) => Err(too_large(transaction::error(error), suffix)),
            });
            Ok(expressions_first(operation, ask, Plan::Scatter(Box::new(Over { body, rows, finish }))))
        }
    }
}

/// One request on row 0.
pub(crate) fn row0(
    operation: Operation,
    body: Bytes,
    finish: Option<Finish>,
    located: &Located<'_>,
    why: &str,
) -> Plan {
    let shard = Some(located.slot.shard);
    Single { shard, ..Single::new(operation, body, finish, why) }.plan()
}

/// A plan that is carried out if the store finds nothing wrong with the expressions of `ask`, whose key it refuses.
fn expressions_first(operation: Operation, ask: Option<Bytes>, then: Plan) -> Plan {
    let why =
        "whether an expression is valid, the store says, asked with a key that nothing can be written to";
    match ask {
        None => then,
        Some(body) => asked::unless(operation, body, then, why, |error| !of_empty_key(error)),
    }
}

/// A write as a transaction over all rows.
struct Over {
    body: Bytes,
    rows: usize,
    finish: Finish,
}

impl Planned for Over {
    fn run<'a>(self: Box<Self>, calls: &'a mut dyn Calls) -> BoxFuture<'a, Result<Answer, Error>> {
        let Over { body, finish, .. } = *self;
        Box::pin(one_call(calls, Operation::TransactWriteItems, body, Some(finish)))
    }

    fn explain(&self) -> Explanation {
        let why = format!(
            "the write sets, removes or replaces the counter: one transaction over its {} rows, which costs at least {} write units",
            self.rows,
            2 * self.rows
        );
        let calls = vec![CallExplanation::new(Operation::TransactWriteItems, &self.body)];
        Explanation { plan: Kind::Scatter, why, calls }
    }
}
