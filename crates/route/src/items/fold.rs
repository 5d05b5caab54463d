//! From what was found of an item to the one item that clients see.

use bytes::Bytes;
use heatsink_dynamo::Error;
use heatsink_dynamo::json::Malformed;
use heatsink_layout::{Placement, Slot, Table};

use super::fetch::Parts;
use super::only::only;
use super::shown::Shown;
use crate::answer::unreadable;
use crate::fragments;

/// The item that was found, folded by its placement and projected, its key made logical; `None` if
/// there is none.
///
/// # Errors
/// `ValidationException` for a sum that is no number, or an item that several slots hold;
/// `InternalServerError` for what cannot be read.
pub(crate) fn shown(
    table: &Table,
    placement: &Placement,
    parts: &Parts,
    shown: &Shown,
) -> Result<Option<Vec<u8>>, Error> {
    let broken = |Malformed| unreadable(heatsink_dynamo::Operation::BatchGetItem);
    let item = fold(table, placement, parts)?;
    item.map(|item| shown.of(table, &item).map_err(broken)).transpose()
}

fn fold(table: &Table, placement: &Placement, parts: &Parts) -> Result<Option<Bytes>, Error> {
    match placement {
        Placement::One(_) => Ok(parts.found.first().map(|(_, item)| item.clone())),
        Placement::AnyOf { .. } => only(table, &parts.found),
        Placement::Moving(slots) => {
            let at = |slot: Slot| parts.found.iter().find(|(found, _)| *found == slot);
            Ok(at(slots.to).or_else(|| at(slots.from)).map(|(_, item)| item.clone()))
        }
        Placement::SumOf { attributes, .. } => {
            let sum = |base| fragments::fold::fold(attributes, base, parts.others());
            parts.base().map(sum).transpose()
        }
    }
}
