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
//! | a read that shows them | all rows, folded into one item (`fetch`, `fold`, `query`, `scan`, `batch`) |
//!
//! What no row can know is refused (`write`): a write that reads or returns a declared number. Why so:
//! docs/decisions/0008-counters.md.

mod add;
mod batch;
mod complete;
mod index;
mod scan;
mod transact;

mod fetch;
pub(crate) mod fold;
mod get;
mod point;

pub(crate) mod rows;

mod transaction;
mod write;

use std::sync::Arc;

use heatsink_dynamo::{Error, json};
use heatsink_layout::{Layout, LayoutSource, Placement, Table};

use crate::key::KeyText;
use crate::refusal::own;

pub(crate) use batch::{get as batch_get, refuse_batch_write};
pub(crate) use index::plan as index;
pub(crate) use point::plan as point;
pub(crate) use scan::plan as scan;
pub(crate) use transact::{Expansion, Unsent};

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
    Err(own(
        "Not supported on a table with counters: time to live would delete the first row of a counter and leave the parts in its other \
         rows. Delete counters with DeleteItem, or keep them in a table of their own",
    ))
}

/// The layout of the key in a raw `Key` or `Item`, if it is a counter's.
pub(crate) fn layout_of(table: &Table, layouts: &dyn LayoutSource, object: &[u8]) -> Option<Arc<Layout>> {
    if !table.has_counters() {
        return None;
    }
    let partition = &table.key.partition;
    let value = json::member(object, &partition.name).ok()??;
    layout(table, layouts, &KeyText::read(value, partition.key_type)?.bytes)
}

/// The layout of a logical partition key, if it is a counter's.
pub(crate) fn layout(table: &Table, layouts: &dyn LayoutSource, logical: &[u8]) -> Option<Arc<Layout>> {
    if !table.has_counters() {
        return None;
    }
    let Placement::Stable(layout) = layouts.placement(table, logical);
    layout.counted().is_some().then_some(layout)
}
