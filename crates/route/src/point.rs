//! GetItem, PutItem, UpdateItem, DeleteItem: the shard follows from the primary key, so each is one physical request.

use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use heatsink_dynamo::capacity::write_units;
use heatsink_dynamo::size::item_size;
use heatsink_dynamo::value::read_item;
use heatsink_dynamo::{Error, Operation};
use heatsink_layout::{Slot, Table};

use crate::answer::{self, pass_refusal};
use crate::context::PlanContext;
use crate::item::{Physical, in_store_words, physical};
use crate::key::Located;
use crate::plan::{CallExplanation, Estimate, Explanation, Finish, Kind, Plan, Planned, Single, one_call};
use crate::refusal::too_large;
use crate::request::Request;
use crate::{Answer, Calls};

/// The plan of a point operation on a recorded table.
pub(crate) fn plan(
    operation: Operation,
    request: &Request<'_>,
    schema: &Arc<Table>,
    context: &PlanContext<'_>,
) -> Result<Plan, Error> {
    let (body, located) = match physical(request, holder(operation), schema, context)? {
        Physical::Sent { body, located } => (body, located),
        Physical::Invalid => return Ok(pass_refusal(operation, request.body)),
        Physical::Meaningless { body, error } => {
            let why = "an expression is not valid: the store is asked for its words, with a key that nothing can be written to";
            return Ok(Single::new(operation, body, Some(in_store_words(error)), why).plan());
        }
    };
    let finish = finish(operation, schema, &located);
    Ok(Plan::Single(Box::new(Point {
        operation,
        body,
        finish,
        schema: Arc::clone(schema),
        slot: located.slot,
    })))
}

pub(crate) fn holder(operation: Operation) -> &'static str {
    if operation == Operation::PutItem { "Item" } else { "Key" }
}

/// A point operation, rewritten. Explains itself only when asked: it is the hot path.
struct Point {
    operation: Operation,
    body: Bytes,
    finish: Option<Finish>,
    schema: Arc<Table>,
    slot: Slot,
}

impl Planned for Point {
    fn run<'a>(self: Box<Self>, calls: &'a mut dyn Calls) -> BoxFuture<'a, Result<Answer, Error>> {
        let Point { operation, body, finish, .. } = *self;
        Box::pin(one_call(calls, operation, body, finish))
    }

    fn explain(&self) -> Explanation {
        let mut call = CallExplanation::new(self.operation, &self.body);
        let partition = &self.schema.key.partition;
        let object = &call.body[holder(self.operation)];
        call.key = object[&partition.name][partition.key_type.name()].as_str().map(str::to_owned);
        call.estimate = Some(estimate(self.operation, &call.body));
        call.shard = Some(self.slot.shard);
        let why = format!(
            "the item's primary key puts it into {}: one physical request, the partition key rewritten",
            self.slot
        );
        Explanation { plan: Kind::Single, why, calls: vec![call] }
    }
}

/// What to make of the answer. A key without a suffix is its own physical key, and its answers hold no other: they stay as
/// they are.
pub(crate) fn finish(operation: Operation, schema: &Arc<Table>, located: &Located<'_>) -> Option<Finish> {
    if located.affixes.is_empty() && schema.index_keys().is_empty() {
        return None;
    }
    let schema = Arc::clone(schema);
    let suffix = located.affixes.len();
    Some(Box::new(move |answer| match answer {
        Ok(body) => answer::logical(operation, &schema, &body),
        Err(error) => Err(too_large(answer::logical_error(&schema, error), suffix)),
    }))
}

/// What a point operation costs, as far as the request tells; what is stored is not known here.
fn estimate(operation: Operation, body: &serde_json::Value) -> Estimate {
    match operation {
        Operation::GetItem => Estimate {
            read_units: if body["ConsistentRead"] == true { 1.0 } else { 0.5 },
            write_units: 0.0,
            assumes: "an item of at most 4 KB".to_owned(),
        },
        Operation::PutItem => {
            let size = read_item(body["Item"].to_string().as_bytes()).map_or(0, |item| item_size(&item));
            Estimate {
                read_units: 0.0,
                write_units: write_units(0, size),
                assumes: "no larger item is overwritten, and no index".to_owned(),
            }
        }
        _ => Estimate {
            read_units: 0.0,
            write_units: 1.0,
            assumes: "an item of at most 1 KB, and no index".to_owned(),
        },
    }
}
