//! Items that are rows under several physical keys, and items that may lie under any of several: all of those keys are read, and what
//! is found becomes the one item.
//!
//! | layout | rows | the item |
//! |---|---|---|
//! | `counter` | one in every shard | row 0 with the numbers summed (`counter::fold`) |
//! | a template whose shards others draw | at most one, anywhere | the one that is found; several are refused |
//!
//! Beneath: `keys` (the physical keys of an item, whose row a stored item is), `fetch` (reading rows until every one was read), `get`
//! (GetItem), `batch` (BatchGetItem), `transact` (what actions on such items add to a transaction).

mod batch;
pub(crate) mod fetch;
mod get;
pub(crate) mod keys;
mod transact;

use bytes::Bytes;
use heatsink_dynamo::Error;
use heatsink_layout::{Layout, Table};

use self::fetch::Parts;
use crate::counter::fold::fold;
use crate::drawn;

pub(crate) use batch::get as batch_get;
pub(crate) use get::of_key as get;
pub(crate) use transact::Expansion;

/// The one item of what was found of it; `None` if there is none.
///
/// # Errors
/// Those of [`fold`], or `ValidationException` for an item that several shards hold.
pub(crate) fn whole(table: &Table, layout: Option<&Layout>, parts: &Parts) -> Result<Option<Bytes>, Error> {
    if let Some(counted) = layout.and_then(Layout::counted) {
        let others = parts.others();
        return parts.row0().map(|row0| fold(counted, row0, others)).transpose();
    }
    match parts.rows.as_slice() {
        [] => Ok(None),
        [(_, item)] => Ok(Some(item.clone())),
        several => Err(drawn::several(table, several.iter().map(|(slot, _)| *slot))),
    }
}
