//! The one item among the slots in which it can lie. Not here: reading the slots (`items::fetch`).

use heatsink_dynamo::Error;
use heatsink_layout::{Slot, Table};

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
