//! GetItem, PutItem, UpdateItem, DeleteItem: the front end for one item.
//!
//! A request is made physical, then its item's placement says who goes on. Most items have one
//! slot, and their requests stay one.

use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use heatsink_dynamo::capacity::write_units;
use heatsink_dynamo::size::item_size;
use heatsink_dynamo::value::read_item;
use heatsink_dynamo::{Error, Operation};
use heatsink_layout::{Placement, Slot, Table};

use super::physical::{finish, holder, physical};
use super::read;
use crate::context::PlanContext;
use crate::key::Located;
use crate::plan::{CallExplanation, Estimate, Explanation, Finish, Kind, Plan, Planned, one_call};
use crate::request::Request;
use crate::{Answer, Calls};

/// A write of a counter.
pub(crate) struct CounterWrite<'l> {
    /// The request for the base fragment.
    pub(crate) body: Bytes,
    /// Where the base fragment lies.
    pub(crate) located: &'l Located<'l>,
    /// The slots of the other fragments, in order.
    pub(crate) others: &'l [Slot],
    /// The attributes that are summed.
    pub(crate) attributes: &'l [String],
    /// How many of the fragments take ADDs, from the base fragment on.
    pub(crate) adds: u16,
}

/// The plan of a point operation on a recorded table. `of_counter`: plans a write of a counter.
///
/// # Errors
/// `ValidationException` for an item that cannot be placed.
pub(crate) fn plan(
    operation: Operation,
    request: &Request<'_>,
    table: &Arc<Table>,
    context: &PlanContext<'_>,
    of_counter: impl FnOnce(CounterWrite<'_>) -> Result<Plan, Error>,
) -> Result<Plan, Error> {
    let physical = physical(request, holder(operation), table, context)?;
    let (body, located) = match physical.sent(operation, request) {
        Ok(sent) => sent,
        Err(refused) => return Ok(refused),
    };
    match (&located.location.placement, operation) {
        (Placement::AnyOf { .. } | Placement::SumOf { .. } | Placement::Moving(_), Operation::GetItem) => {
            read::get(request, table, body, &located)
        }
        (Placement::SumOf { others, attributes, adds, .. }, _) => {
            of_counter(CounterWrite { body, located: &located, others, attributes, adds: *adds })
        }
        (Placement::One(_) | Placement::AnyOf { .. } | Placement::Moving(_), _) => {
            Ok(Plan::Single(Box::new(Point {
                finish: finish(operation, table, &located),
                operation,
                body,
                table: Arc::clone(table),
                slot: located.location.slot,
            })))
        }
    }
}

/// A point operation, rewritten. Explains itself only when asked: it is the hot path.
struct Point {
    operation: Operation,
    body: Bytes,
    finish: Option<Finish>,
    table: Arc<Table>,
    slot: Slot,
}

impl Planned for Point {
    fn run<'a>(self: Box<Self>, calls: &'a mut dyn Calls) -> BoxFuture<'a, Result<Answer, Error>> {
        let Point { operation, body, finish, .. } = *self;
        Box::pin(one_call(calls, operation, body, finish))
    }

    fn is_one_call(&self) -> bool {
        true
    }

    fn explain(&self) -> Explanation {
        let mut call = CallExplanation::new(self.operation, &self.body);
        let partition = &self.table.key.partition;
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
