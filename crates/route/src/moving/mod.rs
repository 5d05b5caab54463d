//! Requests on keys that move from one layout to another while clients use them
//! (`heatsink_layout::Moving`).
//!
//! Items that keep their slot are read and written as ever. What a request does with the others is
//! said by the table of the protocol ([`heatsink_reshard::act`]), and each request that concerns
//! both slots is a machine of it, which is run here over calls:
//!
//! | machine | run by |
//! |---|---|
//! | [`Write`], with the pull that goes before it | `pull` |
//! | [`PointRead`](heatsink_reshard::PointRead) of single items | `items::read` |
//! | [`RangeRead`](heatsink_reshard::RangeRead) of collections | `query` |
//!
//! Not by machines, since the calls are other ones: a transaction reads both slots at once
//! (`items::added`), rows of indexes are looked at in both slots (`query::locally_sorted`), a Scan
//! reads keys that move by themselves (`scan::apart`), a SELECT of one item is sent for both slots
//! (`partiql::both`).
//!
//! A key of which only buckets without items get another number of shards does not move
//! (`heatsink_layout::Stepping`): what would be put into these buckets waits as in `Hold`
//! ([`PlanContext::learn_bucket`](crate::context::PlanContext::learn_bucket)), and all else goes
//! on.
//!
//! Not here: who moves items that no client touches, and when a phase ends (`heatsink_reshard`).

mod blind;
mod pull;
pub(crate) mod query;

use heatsink_dynamo::{Error, Operation};
use heatsink_layout::{LayoutSource, Placement};
use heatsink_reshard::{Rules, Side, Write, WriteCall, WriteStep, act};

use self::pull::{Pull, PullFirst};
use crate::fragments;
use crate::moving_item::MovingItem;
use crate::plan::Plan;
use crate::request::{Request, malformed};

/// The plan of a request that writes to these items, whose bodies go to the new slots: it waits, or
/// first brings the items there.
///
/// # Errors
/// [`Origin::Held`](heatsink_dynamo::Origin::Held) for a request that has to wait.
pub(crate) fn plan(
    plan: Plan,
    operation: Operation,
    request: &Request<'_>,
    items: Vec<MovingItem>,
    layouts: &dyn LayoutSource,
) -> Result<Plan, Error> {
    let mut pulls: Vec<(MovingItem, Pull)> = Vec::new();
    for item in items {
        let access = blind::access(operation, request, &item.identity, item.moving.expires.as_deref())?;
        // Above the high water a write goes to the new slot whatever it is, and none is kept here.
        let write = Write::new(act(item.moving.phase, access, false, Rules::ALL), Rules::ALL);
        match write.step() {
            // The plan's own call goes to the new slot, without a guard.
            WriteStep::Send(WriteCall::Own { side: Side::New, guard: None }) => continue,
            WriteStep::Send(WriteCall::Pull(_)) => {}
            WriteStep::Wait | WriteStep::TooLarge | WriteStep::Send(WriteCall::Own { .. }) => {
                return Err(held(&item.table));
            }
        }
        let known =
            |(other, _): &(MovingItem, Pull)| other.table == item.table && other.identity == item.identity;
        if !pulls.iter().any(known) {
            let table = layouts.table(&item.table).ok_or_else(malformed)?;
            let keys = fragments::keys(&table, &item.moving.to, &Placement::Moving(item.slots), &item.key)?;
            let keys = <[_; 2]>::try_from(keys).map_err(|_| malformed())?;
            let pull = Pull::new(&table, keys, item.moving.marks, write);
            pulls.push((item, pull));
        }
    }
    if pulls.is_empty() {
        return Ok(plan);
    }
    let pulls = pulls.into_iter().map(|(_, pull)| pull).collect();
    Ok(plan.wrapped(|then| PullFirst { pulls, then }))
}

/// The error of an operation that keys do not support while they move.
pub(crate) fn unsupported(operation: Operation, table: &str) -> Error {
    Error::unavailable(
        format!(
            "A key of table {table} is being moved to other shards, and {} is not carried out on it meanwhile. Nothing was read or written; \
             try again",
            operation.name()
        ),
        heatsink_dynamo::Outcome::NotDone,
    )
}

/// The error of a write that waits.
pub(crate) fn held(table: &str) -> Error {
    Error::held(format!(
        "A key of table {table} gets other shards, and writes to it wait for a moment. Nothing was written; try again"
    ))
}
