//! An ADD on one row: conditional on that row being there, and where it is not, a transaction that makes it beside row 0.

use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use heatsink_dynamo::expression::{Bindings, Condition, Fresh, Path, Update};
use heatsink_dynamo::json::{self, Object};
use heatsink_dynamo::{Code, Error, Operation, Value};
use heatsink_layout::Table;

use super::transaction;
use crate::answer;
use crate::plan::{CallExplanation, Explanation, Kind, Planned};
use crate::refusal::too_large;
use crate::request::{Request, set_members};
use crate::{Answer, Calls, PhysicalCall};

/// How often a write that met a transaction is sent again, at once, before the client is told. Such transactions make a row, which
/// happens once in its life, or set or delete the counter.
const ATTEMPTS: u32 = 8;

/// An ADD on a row that is not row 0.
pub(super) struct Add {
    table: Arc<Table>,
    shard: u16,
    suffix: usize,
    /// `UpdateItem` on the row, if it is there.
    add: Bytes,
    /// `TransactWriteItems` that makes the row.
    make: Bytes,
}

impl Add {
    /// Of a request whose expression is `update`; `keys` are the physical keys of all rows.
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
        let (row0, row) = (&keys[0], &keys[usize::from(shard)]);
        let bindings = Bindings::default();
        let mut fresh = Fresh::avoiding(&bindings);
        let quoted = |text: &str| {
            let mut quoted = Vec::new();
            json::write_string(&mut quoted, text);
            quoted
        };
        let expression = update.render(&mut fresh);
        let (action_names, action_values) = bindings.rewritten(&[], &fresh);
        let there = Condition::Exists(Path::root(&table.key.partition.name)).render(&mut fresh);
        let (names, values) = bindings.rewritten(&[], &fresh);
        let add = set_members(
            request.body,
            &vec![
                ("Key", Some(row.to_vec())),
                ("UpdateExpression", Some(quoted(&expression))),
                ("ConditionExpression", Some(quoted(&there))),
                ("ExpressionAttributeNames", names),
                ("ExpressionAttributeValues", values),
            ],
        )?;
        let table_name = request.get("TableName").unwrap_or(b"null");
        let action = |key: &[u8], expression: &str, names: Option<Vec<u8>>, values: Option<Vec<u8>>| {
            let mut action = Object::new();
            action.raw("TableName", table_name).raw("Key", key).string("UpdateExpression", expression);
            if let Some(names) = names {
                action.raw("ExpressionAttributeNames", &names);
            }
            if let Some(values) = values {
                action.raw("ExpressionAttributeValues", &values);
            }
            let mut element = Object::new();
            element.raw("Update", &action.finish());
            element.finish()
        };
        let mut fresh = Fresh::avoiding(&bindings);
        let zero = |(path, _): &(Path, Value)| (path.clone(), Value::N("0".to_owned()));
        let nothing = Update { add: update.add.iter().map(zero).collect(), ..Update::default() };
        let nothing = nothing.render(&mut fresh);
        let (zero_names, zero_values) = bindings.rewritten(&[], &fresh);
        let actions = [
            action(row0, &nothing, zero_names, zero_values),
            action(row, &expression, action_names, action_values),
        ];
        let make = transaction::body(request, &actions);
        Ok(Add { table: Arc::clone(table), shard, suffix, add, make })
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
        let mut call = CallExplanation::new(Operation::UpdateItem, &self.add);
        call.shard = Some(self.shard);
        let why = format!(
            "the update only adds to a counter: one physical request on row {}, drawn in turn. Where that row is not there yet, a \
             transaction makes it beside row 0; that costs four units more, once",
            self.shard
        );
        Explanation { plan: Kind::Single, why, calls: vec![call] }
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
                let made = PhysicalCall::only(Operation::TransactWriteItems, self.make.clone());
                let made = calls.one(made).await.map_err(transaction::error);
                answer = made.and_then(|body| transaction::answer(&self.table, &body));
            }
            // Another has made the row meanwhile, most likely.
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
