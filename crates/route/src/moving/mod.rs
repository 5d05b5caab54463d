//! Requests on keys that move from one layout to another while clients use them (`heatsink_layout::Moving`).
//!
//! Items that keep their slot are read and written as ever. Of the others:
//!
//! | phase | a write | a read |
//! |---|---|---|
//! | `Reserve` | goes to the old slot | of the old slot |
//! | `Prepare` | goes to the old slot | of both |
//! | `Hold` | waits: it is planned again when the phase has changed | of both |
//! | `Check` | waits, but for blind puts (`blind`), which go to the new slot | of both |
//! | `Move` | goes to the new slot; all but blind puts bring the item there first (`pull`) | of both |
//!
//! A blind put replaces an item whatever it was, shows nothing of it, and leaves nothing that could expire. A read of both slots reads the new one, then the old one, then the new one
//! again, consistently: an item that moves meanwhile is found, and a copy in the new slot is the item. Single items are read so by their placement
//! (`items::read`), in a transaction at once (`items::added`), collections by `query`, rows of indexes by a look at both slots (`index`). A Scan reads keys
//! that move by themselves (`scan::apart`). Statements are sent as the requests that they are, SELECTs of one item for both slots (`partiql::both`).
//!
//! A key of which only buckets without items get another number of shards does not move (`heatsink_layout::Stepping`): what would be put into these
//! buckets waits as in `Hold` ([`PlanContext::learn_bucket`](crate::context::PlanContext::learn_bucket)), and all else goes on.
//!
//! Not here: who moves items that no client touches, and when a phase ends (`heatsink_reshard`).

mod blind;
pub(crate) mod index;
pub(crate) mod item;
mod pull;
pub(crate) mod query;

use heatsink_dynamo::{Error, Operation};
use heatsink_layout::{LayoutSource, Phase, Placement};

use self::item::MovingItem;
use self::pull::{Pull, PullFirst};
use crate::items::fragments;
use crate::plan::Plan;
use crate::request::{Request, malformed};

/// The plan of a request that writes to these items, whose bodies go to the new slots: it waits, or first brings the items there.
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
        let blind = blind::is_put(operation, request, &item.identity, item.moving.expires.as_deref())?;
        match item.moving.phase {
            Phase::Check if !blind => return Err(held(&item.table)),
            Phase::Hold => return Err(held(&item.table)),
            _ => {}
        }
        let known =
            |(other, _): &(MovingItem, Pull)| other.table == item.table && other.identity == item.identity;
        if !blind && !pulls.iter().any(known) {
            let table = layouts.table(&item.table).ok_or_else(malformed)?;
            let keys = fragments::keys(&table, &item.moving.to, &Placement::Moving(item.slots), &item.key)?;
            let [to, from] = <[_; 2]>::try_from(keys).map_err(|_| malformed())?;
            pulls.push((item, Pull::new(&table, to, from)));
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
