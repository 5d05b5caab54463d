//! The legacy condition parameters (`Expected`, `ScanFilter`): on a sharded table they pass on unless they compare the
//! partition key, whose stored value is the physical key.

use heatsink_dynamo::{Error, TableSchema, json};

use crate::request::{Request, malformed};

/// Refuses a legacy condition that compares the partition key. Conditions that only ask whether it is there
/// (`Exists: false`, `NULL`, `NOT_NULL`) hold for physical keys as for logical ones.
///
/// # Errors
/// `ValidationException` that says what to use instead.
pub(crate) fn refuse_comparison(
    request: &Request<'_>,
    parameter: &str,
    schema: &TableSchema,
) -> Result<(), Error> {
    let Some(conditions) = request.get(parameter) else { return Ok(()) };
    let name = &schema.key.partition.name;
    for (attribute, condition) in json::members(conditions).map_err(|_| malformed())? {
        if attribute == *name && compares(condition)? {
            return Err(Error::validation(format!(
                "The legacy parameter {parameter} compares {name}, the partition key of the sharded table {}, which is not \
                 supported: use an expression instead",
                schema.name
            )));
        }
    }
    Ok(())
}

fn compares(condition: &[u8]) -> Result<bool, Error> {
    let [value, list] =
        json::attributes_of(condition, ["Value", "AttributeValueList"]).map_err(|_| malformed())?;
    let list = list
        .filter(|list| *list != b"null")
        .map_or(Ok(Vec::new()), json::elements)
        .map_err(|_| malformed())?;
    Ok(value.is_some_and(|value| value != b"null") || !list.is_empty())
}
