//! Externally assigned shards: other writers choose the shard at random, so where an item lies does not follow from its key. The placement is
//! `AnyOf`.
//!
//! | request | how |
//! |---|---|
//! | GetItem, BatchGetItem, TransactGetItems | all physical keys of the item are read, and the one that exists is the answer (`items`) |
//! | Query on the table, on an index with its partition key | all shards are gathered anyway; equal sort keys all come (`query`) |
//! | every write; a cursor that does not say where its item lies | the item is located first (`seek`), then the request is planned again with its location known |
//!
//! An item that lies nowhere is put into its hashed slot: two writers that meet, and a write that is sent twice, concern one item. A write to a
//! misplaced item, one in another slot, requires that it still exists there (`require_exists`); where it does not, it is located again. An
//! item in several shards is refused to whatever names it by key. Why so: docs/decisions/0009-externally-assigned-shards.md.

mod require_exists;
mod seek;
mod tokens;

use std::sync::Arc;

use heatsink_dynamo::{Error, Operation};
use heatsink_layout::{LayoutSource, Slot, Table};

use self::seek::Seek;
use crate::Router;
use crate::plan::Plan;
use crate::request::Request;

pub(crate) use require_exists::require_exists;
pub(crate) use tokens::Tokens;

/// The plan of a request that names a table with externally assigned shards.
pub(crate) fn plan(
    router: &Router,
    operation: Operation,
    request: &Request<'_>,
    table: &Arc<Table>,
    layouts: &dyn LayoutSource,
) -> Result<Plan, Error> {
    use Operation::{BatchGetItem, GetItem, TransactGetItems};
    let (plan, assumed) = router.plan_at(operation, request, table, layouts, None)?;
    // These read all slots in which an item can lie.
    if matches!(operation, GetItem | BatchGetItem | TransactGetItems) || assumed.is_empty() {
        return Ok(plan);
    }
    Ok(Plan::Scatter(Box::new(Seek::new(router, operation, request, layouts, assumed, plan)?)))
}

/// The one item that was found in the slots of a placement; `None` if there is none.
///
/// # Errors
/// `ValidationException` for a key that several items have.
pub(crate) fn only<T: Clone>(table: &Table, found: &[(Slot, T)]) -> Result<Option<T>, Error> {
    match found {
        [] => Ok(None),
        [(_, item)] => Ok(Some(item.clone())),
        several => Err(self::several(table, several.iter().map(|(slot, _)| *slot))),
    }
}

/// The refusal of a key that several items have.
fn several(table: &Table, slots: impl Iterator<Item = Slot>) -> Error {
    let mut slots: Vec<Slot> = slots.collect();
    slots.sort_unstable();
    let slots: Vec<String> = slots.iter().map(Slot::to_string).collect();
    Error::gateway_rejection(format!(
        "Several items of table {} have this primary key, in {}: other writers assign the rule's shards (hash = \"random\"), and which of \
         them is meant cannot be told. Read them with Query, and remove all but one at the store, bypassing Heatsink. Nothing was read or written",
        table.name,
        slots.join(" and in ")
    ))
}
