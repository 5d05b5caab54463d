//! Items whose shard others drew at random: where one lies does not follow from its key, so it is looked for.
//!
//! | request | how |
//! |---|---|
//! | GetItem, BatchGetItem, TransactGetItems | all physical keys of the item are read, and the one that is there is the answer (`rows`) |
//! | Query on the table, on an index with its partition key | all shards are gathered anyway; equal sort keys all come (`query`) |
//! | every write; a cursor that does not say where its item lies | first all physical keys are looked for (`seek`), then the request is planned again by whoever plans it elsewhere, with the places known |
//!
//! An item that is nowhere is put at its home, the hash of its sort key: two writers that meet, and a write that is sent twice, concern one
//! item. A write to an item that was found elsewhere is conditional on its still being there (`guard`); where it is gone it is looked
//! for again. An item in several shards is refused to whatever names it by key. Why so: docs/decisions/0009-drawn-shards.md.

mod guard;
mod seek;
mod tokens;

use std::sync::Arc;

use heatsink_dynamo::{Error, Operation};
use heatsink_layout::{LayoutSource, Slot, Table};

use self::seek::Seek;
use crate::Router;
use crate::plan::Plan;
use crate::request::Request;

pub(crate) use guard::there;
pub(crate) use tokens::Tokens;

/// The plan of a request that names a table with drawn shards.
pub(crate) fn plan(
    router: &Router,
    operation: Operation,
    request: &Request<'_>,
    schema: &Arc<Table>,
    layouts: &dyn LayoutSource,
) -> Result<Plan, Error> {
    use Operation::{BatchGetItem, GetItem, TransactGetItems};
    let (plan, assumed) = router.plan_at(operation, request, schema, layouts, None)?;
    // These read all places where an item can lie.
    if matches!(operation, GetItem | BatchGetItem | TransactGetItems) || assumed.is_empty() {
        return Ok(plan);
    }
    Ok(Plan::Scatter(Box::new(Seek::new(router, operation, request, layouts, assumed, plan)?)))
}

/// The refusal of a key that several items have.
pub(crate) fn several(table: &Table, slots: impl Iterator<Item = Slot>) -> Error {
    let mut slots: Vec<Slot> = slots.collect();
    slots.sort_unstable();
    let slots: Vec<String> = slots.iter().map(Slot::to_string).collect();
    Error::gateway_rejection(format!(
        "Several items of table {} have this primary key, in {}: the rule's shards are drawn at random (hash = \"random\"), and which of \
         them is meant cannot be told. Read them with Query, and remove all but one at the store, bypassing Heatsink. Nothing was read or written",
        table.name,
        slots.join(" and in ")
    ))
}
