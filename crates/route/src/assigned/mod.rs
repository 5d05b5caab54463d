//! Externally assigned shards: other writers choose the shard at random, so where an item lies does
//! not follow from its key. The placement is `AnyOf`.
//!
//! | request | how |
//! |---|---|
//! | GetItem, BatchGetItem, TransactGetItems | all physical keys of the item are read, and the one that exists is the answer (`items`) |
//! | Query on the table, on an index with its partition key | all shards are gathered anyway; equal sort keys all come (`query`) |
//! | every write; a cursor that does not say where its item lies | the item is located first (`seek`), then the request is planned again with its location known |
//!
//! An item that lies nowhere is put into its hashed slot: two writers that meet, and a write that
//! is sent twice, concern one item. A write to a misplaced item, one in another slot, requires that
//! it still exists there (`items::require_exists`); where it does not, it is located again. An item
//! in several shards is refused to whatever names it by key. Why so:
//! docs/develop/decisions/0009-externally-assigned-shards.md.

mod seek;

use std::sync::Arc;

use heatsink_dynamo::{Error, Operation};
use heatsink_layout::{LayoutSource, Table};

use self::seek::Seek;
use crate::plan::Plan;
use crate::request::Request;
use crate::shared::Shared;

/// The plan of a request that names a table with externally assigned shards.
pub(crate) fn plan(
    shared: &Shared,
    operation: Operation,
    request: &Request<'_>,
    table: &Arc<Table>,
    layouts: &dyn LayoutSource,
) -> Result<Plan, Error> {
    use Operation::{BatchGetItem, GetItem, TransactGetItems};
    let (plan, assumed) = shared.plan_at(operation, request, table, layouts, None)?;
    // These read all slots in which an item can lie.
    if matches!(operation, GetItem | BatchGetItem | TransactGetItems) || assumed.is_empty() {
        return Ok(plan);
    }
    Ok(Plan::Scatter(Box::new(Seek::new(shared, operation, request, layouts, assumed, plan)?)))
}
