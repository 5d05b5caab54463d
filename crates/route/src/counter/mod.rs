//! Counters: numbers that are added to in any of N rows and summed when they are read.
//!
//! The item (pk, sk) of a counter has rows at the physical keys of its N shards. Row 0 holds all its attributes; the others hold the
//! key and parts of the declared numbers. **Row 0 is there whenever another row is**, so that conditions on existence are right on it
//! alone: an ADD to another row is conditional on that row, and where it is not there yet, one transaction makes it beside row 0.
//!
//! | request | becomes |
//! |---|---|
//! | an UpdateItem that only adds to declared numbers | the same on one row, drawn in turn (`add`) |
//! | a write that neither sets nor reads them | the same on row 0 |
//! | a write that sets, removes or replaces them | one transaction over all rows (`transaction`) |
//! | a read that shows them | all rows, folded into one item (`fold`; of pages `fragments`, of single items the module `rows`) |
//!
//! What no row can know is refused (`write`): a write that reads or returns a declared number. Why so:
//! docs/decisions/0008-counters.md.

mod add;
pub(crate) mod fold;
pub(crate) mod fragments;
mod index;
mod point;
pub(crate) mod transaction;
pub(crate) mod write;

use heatsink_dynamo::{Error, json};
use heatsink_layout::Table;

use crate::context::PlanContext;
use crate::key::layout_of;

pub(crate) use index::{of_index, of_table};
pub(crate) use point::{MEANINGLESS, plan as point, row0};

/// Refuses to turn on time to live: it deletes row 0 alone, and the parts in the other rows would come back with the next write.
///
/// # Errors
/// `ValidationException`.
pub(crate) fn refuse_expiry(body: &[u8]) -> Result<(), Error> {
    let specification = json::member(body, "TimeToLiveSpecification").ok().flatten();
    let enabled = specification.and_then(|one| json::member(one, "Enabled").ok()?);
    if enabled != Some(b"true") {
        return Ok(());
    }
    Err(Error::gateway_rejection(
        "Not supported on a table with counters: time to live would delete the first row of a counter and leave the parts in its other \
         rows. Delete counters with DeleteItem, or keep them in a table of their own",
    ))
}

/// Refuses a BatchWriteItem that names a counter.
///
/// # Errors
/// `ValidationException`.
pub(crate) fn refuse_batch_write(
    table: &Table,
    context: &PlanContext<'_>,
    object: &[u8],
) -> Result<(), Error> {
    match layout_of(table, context, object) {
        Some(layout) if layout.counted().is_some() => Err(write::refusal(
            "BatchWriteItem would replace or delete its rows one by one, with readers in between. Use PutItem, DeleteItem or \
             TransactWriteItems",
        )),
        _ => Ok(()),
    }
}
