//! Projections that are carried out here.

use heatsink_dynamo::expression::{Bindings, Checks, Projection};
use heatsink_dynamo::json::{self, Malformed, Object};
use heatsink_dynamo::value::{read_item, write_item};
use heatsink_dynamo::{Error, TableSchema};

/// Writes what a projection leaves of an item. Top-level attributes keep their bytes.
pub(crate) fn project(projection: &Projection, item: &[u8], out: &mut Vec<u8>) -> Result<(), Malformed> {
    if projection.paths.iter().all(|path| path.rest.is_empty()) {
        let mut left = Object::new();
        for (name, value) in json::members(item)? {
            if projection.covers(&name) {
                left.raw(&name, value);
            }
        }
        out.extend_from_slice(&left.finish());
    } else {
        write_item(&projection.apply(&read_item(item).map_err(|_| Malformed)?), out);
    }
    Ok(())
}

/// A projection that is carried out here, so that the store is asked for whole attributes. With
/// [`Checks::All`] one into a key is refused, as by DynamoDB: the store does not see that part of
/// it.
///
/// # Errors
/// `ValidationException` in DynamoDB's words.
pub(crate) fn read(
    text: &str,
    bindings: &Bindings<'_>,
    checks: Checks,
    table: &TableSchema,
) -> Result<Projection, Error> {
    let projection = Projection::read(text, bindings, checks)?;
    let is_key = |name: &str| {
        let mut indexes = table.indexes.iter();
        table.key.names().any(|key| key == name)
            || indexes.any(|index| index.key.names().any(|key| key == name))
    };
    let within = projection.paths.iter().find(|path| !path.rest.is_empty() && is_key(&path.root));
    match within.filter(|_| checks == Checks::All) {
        Some(path) => Err(Error::validation(format!(
            "Key attributes must be scalars; list random access '[]' and map lookup '.' are not allowed: {}",
            path.root
        ))),
        None => Ok(projection),
    }
}
