//! An ADD on one row: conditional on that row being there, and where it is not, a transaction that makes it beside row 0.

use std::sync::Arc;

use bytes::Bytes;
use heatsink_dynamo::expression::{Bindings, Condition, Fresh, Path, Update};
use heatsink_dynamo::json::{self, Object};
use heatsink_dynamo::{Code, Error, Operation, Value};
use heatsink_layout::Table;

use super::transaction;
use crate::answer;
use crate::item::too_large;
use crate::plan::{CallExplanation, Explanation, Kind, Planned};
use crate::request::{Request, set_members};
use crate::{Execution, PhysicalCall, Step};

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
    fn execute(self: Box<Self>) -> Box<dyn Execution> {
        Box::new(Adding { plan: *self, making: false, attempts: 0, answer: None })
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

/// An ADD under way.
struct Adding {
    plan: Add,
    making: bool,
    attempts: u32,
    answer: Option<Result<Bytes, Error>>,
}

impl Execution for Adding {
    fn step(&mut self) -> Step {
        if let Some(answer) = self.answer.take() {
            return Step::Done(answer);
        }
        let (operation, body) = if self.making {
            (Operation::TransactWriteItems, &self.plan.make)
        } else {
            (Operation::UpdateItem, &self.plan.add)
        };
        Step::Call(vec![PhysicalCall { id: 0, operation, body: body.clone(), retry_throttled: false }])
    }

    fn answer(&mut self, _id: usize, answer: Result<Bytes, Error>) {
        let table = &self.plan.table;
        let answer = if self.making {
            answer.map_err(transaction::error).and_then(|body| transaction::answer(table, &body))
        } else {
            answer.and_then(|body| answer::logical(Operation::UpdateItem, table, &body))
        };
        match answer {
            Err(error) if error.code == Code::ConditionalCheckFailedException && !self.making => {
                self.making = true;
            }
            // Another has made the row meanwhile, most likely.
            Err(error) if error.code == Code::TransactionConflictException && self.attempts < ATTEMPTS => {
                self.making = false;
                self.attempts += 1;
            }
            answer => {
                self.answer = Some(answer.map_err(|error| too_large(error, self.plan.suffix)));
            }
        }
    }
}
