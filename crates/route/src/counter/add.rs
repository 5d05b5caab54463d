//! An ADD on one fragment, on condition that the fragment exists. Where it does not, a transaction
//! creates it beside the base fragment.

use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use heatsink_dynamo::expression::{Bindings, Condition, Fresh, Path, Update};
use heatsink_dynamo::{Code, Error, Operation, Value};
use heatsink_layout::Table;

use crate::answer;
use crate::dry_run::first_round;
use crate::fragments::transaction;
use crate::plan::{CallExplanation, Explanation, Kind, Planned};
use crate::refusal::too_large;
use crate::request::{Request, quoted, set_members};
use crate::{Answer, Calls, PhysicalCall};

/// How often a write that met a transaction is sent again, at once, before the client is told. Such
/// transactions create a fragment, which happens once in its life, or set or delete the counter.
const ATTEMPTS: u32 = 8;

/// An ADD on a fragment that is not the base fragment.
pub(super) struct Add {
    table: Arc<Table>,
    shard: u16,
    suffix: usize,
    /// `UpdateItem` on the fragment, if it exists.
    add: Bytes,
    /// `TransactWriteItems` that creates the fragment.
    create: Bytes,
}

impl Add {
    /// Of a request whose expression is `update`; `keys` are the physical keys of all fragments.
    ///
    /// # Errors
    /// `SerializationException` for a request that is none.
    pub(super) fn new(
        table: &Arc<Table>,
        request: &Request<'_>,
        update: &Update,
        keys: &[Bytes],
        shard: u16,
        suffix: usize,
    ) -> Result<Self, Error> {
        let (base, fragment) = (&keys[0], &keys[usize::from(shard)]);
        let bindings = Bindings::default();
        let mut fresh = Fresh::avoiding(&bindings);
        let expression = update.render(&mut fresh);
        let of_action = bindings.rewritten(&[], &fresh);
        let exists = Condition::Exists(Path::root(&table.key.partition.name)).render(&mut fresh);
        let (names, values) = bindings.rewritten(&[], &fresh);
        let add = set_members(
            request.body,
            &vec![
                ("Key", Some(fragment.to_vec())),
                ("UpdateExpression", Some(quoted(&expression))),
                ("ConditionExpression", Some(quoted(&exists))),
                ("ExpressionAttributeNames", names),
                ("ExpressionAttributeValues", values),
            ],
        )?;
        let action = |key: &[u8], expression: &str, placeholders| {
            transaction::update(request.get("TableName").unwrap_or(b"null"), key, expression, placeholders)
        };
        let mut fresh = Fresh::avoiding(&bindings);
        let zero = |(path, _): &(Path, Value)| (path.clone(), Value::N("0".to_owned()));
        let nothing = Update { add: update.add.iter().map(zero).collect(), ..Update::default() };
        let nothing = nothing.render(&mut fresh);
        let of_nothing = bindings.rewritten(&[], &fresh);
        let actions = [action(base, &nothing, of_nothing), action(fragment, &expression, of_action)];
        let create = transaction::body(request, &actions);
        Ok(Add { table: Arc::clone(table), shard, suffix, add, create })
    }
}

impl Planned for Add {
    fn run<'a>(self: Box<Self>, calls: &'a mut dyn Calls) -> BoxFuture<'a, Result<Answer, Error>> {
        Box::pin(async move {
            let answer = self.carry_out(calls).await;
            answer.map(Answer::from).map_err(|error| too_large(error, self.suffix))
        })
    }

    fn explain(&self) -> Explanation {
        let why = format!(
            "the update only adds to a counter: one physical request on fragment {}, whose turn it is. Where that fragment does not exist yet, a \
             transaction creates it beside the base fragment; that costs four units more, once",
            self.shard
        );
        let calls = first_round(async |calls| drop(self.carry_out(calls).await));
        let explained = |call| CallExplanation { shard: Some(self.shard), ..CallExplanation::from(call) };
        Explanation { plan: Kind::Single, why, calls: calls.iter().map(explained).collect() }
    }
}

impl Add {
    async fn carry_out(&self, calls: &mut dyn Calls) -> Result<Bytes, Error> {
        let mut attempts = 0;
        loop {
            let added = calls.one(PhysicalCall::only(Operation::UpdateItem, self.add.clone())).await;
            let mut answer =
                added.and_then(|body| answer::logical(Operation::UpdateItem, &self.table, &body));
            if is(&answer, &Code::ConditionalCheckFailedException) {
                let create = PhysicalCall::only(Operation::TransactWriteItems, self.create.clone());
                let created = calls.one(create).await.map_err(transaction::error);
                answer = created.and_then(|body| transaction::answer(&self.table, &body));
            }
            // Another has created the fragment meanwhile, most likely.
            if !is(&answer, &Code::TransactionConflictException) || attempts >= ATTEMPTS {
                return answer;
            }
            attempts += 1;
        }
    }
}

fn is(answer: &Result<Bytes, Error>, code: &Code) -> bool {
    answer.as_ref().is_err_and(|error| error.code == *code)
}
