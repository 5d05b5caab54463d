//! The physical keys under which an item may lie, whole or as fragments; and below, what is written
//! to the fragments of a counter (`effect`, `transaction`) and read of them (`fold`).
//!
//! Not here: which slots these are (`heatsink_layout::Placement`), and which item something stored
//! belongs to (`identity`).

pub(crate) mod effect;
pub(crate) mod fold;
pub(crate) mod transaction;

use bytes::Bytes;
use heatsink_dynamo::Error;
use heatsink_dynamo::json::{self, Malformed};
use heatsink_layout::{Layout, Placement, Table};

use crate::identity;
use crate::key::KeyText;
use crate::refusal::unplaced;
use crate::splice::Splice;

/// The physical keys of the slots in which the item may lie whose key is in `object` (a raw, valid
/// `Key` or `Item` with logical key). The placement's first slot comes first.
///
/// # Errors
/// `ValidationException` for a key that the suffix of one of them makes too long.
pub(crate) fn keys(
    table: &Table,
    layout: &Layout,
    placement: &Placement,
    object: &[u8],
) -> Result<Vec<Bytes>, Error> {
    let partition = &table.key.partition;
    let own = identity::key(table, object).map_err(|Malformed| unreadable())?;
    let value = json::member(&own, &partition.name).ok().flatten().ok_or_else(unreadable)?;
    let text = KeyText::read(value, partition.key_type).ok_or_else(unreadable)?;
    let physical = |slot| {
        let affixes = table.affixes(&text.bytes, layout, slot).map_err(unplaced)?;
        let mut splice = Splice::new(&own);
        text.wrap(&affixes, &mut splice);
        Ok(splice.finish(&own))
    };
    placement.slots().map(physical).collect()
}

fn unreadable() -> Error {
    Error::validation("One of the required keys was not given a value")
}
