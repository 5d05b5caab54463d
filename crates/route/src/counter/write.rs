//! PutItem, UpdateItem and DeleteItem of a counter: the step of a write that says which fragments
//! it concerns.

use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use heatsink_dynamo::{Error, Operation};
use heatsink_layout::Table;

use super::add::Add;
use crate::dry_run::first_round;
use crate::fragments::effect::{self, Effect};
use crate::fragments::transaction;
use crate::items::physical::{Physical, holder, meaningless, of_empty_key, to_one_slot};
use crate::items::point::CounterWrite;
use crate::key::Located;
use crate::plan::{CallExplanation, Explanation, Kind, Plan, Planned};
use crate::preflight::pass_refusal;
use crate::refusal::{Unsent, too_large};
use crate::request::Request;
use crate::shared::Shared;
use crate::{Answer, Calls, PhysicalCall, preflight};
use crate::{fragments, identity};

/// The plan of a write of one counter.
///
/// # Errors
/// `ValidationException` for a write that reads or returns a number, and for a key that its suffix
/// makes too long.
pub(crate) fn plan(
    shared: &Shared,
    operation: Operation,
    request: &Request<'_>,
    table: &Arc<Table>,
    counter: CounterWrite<'_>,
) -> Result<Plan, Error> {
    let CounterWrite { body, located, others, attributes, adds } = counter;
    let holder = holder(operation);
    let object = request.get(holder).unwrap_or_default();
    if holder == "Key" && !identity::is_key(table, object) {
        return Ok(pass_refusal(operation, request.body));
    }
    let effect = match effect::read(Some(operation), request, attributes) {
        Ok(effect) => effect,
        Err(Unsent::Refused(error)) => return Err(error),
        Err(Unsent::Meaningless(error)) => {
            let refused = meaningless(request, located, error).sent(operation, request);
            return Ok(refused.err().unwrap_or_else(|| pass_refusal(operation, request.body)));
        }
    };
    let keys = fragments::keys(table, &located.layout, &located.location.placement, object)?;
    let on_base = |why| Ok(to_one_slot(operation, body.clone(), table, located, why));
    match effect {
        Effect::Base => on_base(
            "the write does not only add to the counter: one physical request on the base fragment, which holds the item. Such writes are not \
             spread",
        ),
        Effect::Add(update) => {
            let shard = shared.next_fragment(adds);
            if shard == 0 {
                return on_base(
                    "the update only adds to a counter: one physical request on the base fragment, whose turn it is",
                );
            }
            let add = Add::new(table, request, &update, &keys, shard, suffix(located, &keys))?;
            Ok(expressions_first(operation, request, located, Plan::Single(Box::new(add))))
        }
        Effect::All(_) if others.is_empty() => on_base("the counter has one fragment: one physical request"),
        Effect::All(gone) => {
            let over = Over::new(operation, &Request::read(&body)?, table, located, &keys, gone.as_deref());
            Ok(expressions_first(operation, request, located, Plan::Scatter(Box::new(over))))
        }
    }
}

/// The length of the longest suffix among physical keys of a counter's fragments.
fn suffix(located: &Located<'_>, keys: &[Bytes]) -> usize {
    let longest = keys.last().map_or(0, Bytes::len) - keys.first().map_or(0, Bytes::len);
    located.affixes.len() + longest
}

/// A plan that is carried out if the store finds nothing wrong with the expressions, where the
/// checks here do. It is asked with a key that it refuses.
fn expressions_first(operation: Operation, request: &Request<'_>, located: &Located<'_>, then: Plan) -> Plan {
    let why =
        "whether an expression is valid, the store says, asked with a key that nothing can be written to";
    let doubtful = effect::doubtful(request).then(|| meaningless(request, located, Error::validation("")));
    match doubtful {
        Some(Physical::Meaningless { body, .. }) => {
            preflight::unless(operation, body, then, why, |error| !of_empty_key(error))
        }
        _ => then,
    }
}

/// A write as a transaction over all fragments.
pub(super) struct Over {
    table: Arc<Table>,
    body: Bytes,
    fragments: usize,
    /// The length of the longest suffix.
    suffix: usize,
}

impl Over {
    /// Of a write that is physical for the base fragment; `keys` are the physical keys of all
    /// fragments. In the others the attributes `gone` go, or all.
    pub(super) fn new(
        operation: Operation,
        sent: &Request<'_>,
        table: &Arc<Table>,
        located: &Located<'_>,
        keys: &[Bytes],
        gone: Option<&[String]>,
    ) -> Self {
        let action = match operation {
            Operation::PutItem => "Put",
            Operation::DeleteItem => "Delete",
            _ => "Update",
        };
        let name = sent.get("TableName").unwrap_or(b"null");
        let mut actions = vec![transaction::whole(action, sent)];
        actions.extend(keys.iter().skip(1).map(|key| transaction::cleared(name, key, gone)));
        Over {
            table: Arc::clone(table),
            body: transaction::body(sent, &actions),
            fragments: actions.len(),
            suffix: suffix(located, keys),
        }
    }

    /// The transaction, as the call of that number in its round.
    pub(super) fn call(&self, id: usize) -> PhysicalCall {
        PhysicalCall { id, ..PhysicalCall::only(Operation::TransactWriteItems, self.body.clone()) }
    }

    /// The answer of the write, from the transaction's.
    pub(super) fn answer(&self, answer: Result<Bytes, Error>) -> Result<Bytes, Error> {
        match answer {
            Ok(body) => transaction::answer(&self.table, &body),
            Err(error) => Err(too_large(transaction::error(error), self.suffix)),
        }
    }

    async fn carry_out(&self, calls: &mut dyn Calls) -> Result<Answer, Error> {
        let answer = calls.one(self.call(0)).await;
        self.answer(answer).map(Answer::from)
    }
}

impl Planned for Over {
    fn run<'a>(self: Box<Self>, calls: &'a mut dyn Calls) -> BoxFuture<'a, Result<Answer, Error>> {
        Box::pin(async move { self.carry_out(calls).await })
    }

    fn explain(&self) -> Explanation {
        let why = format!(
            "the write sets, removes or replaces the counter: one transaction over its {} fragments, which costs at least {} write units",
            self.fragments,
            2 * self.fragments
        );
        let calls = first_round(async |calls| drop(self.carry_out(calls).await));
        let calls = calls.iter().map(CallExplanation::from).collect();
        Explanation { plan: Kind::Scatter, why, calls }
    }
}
