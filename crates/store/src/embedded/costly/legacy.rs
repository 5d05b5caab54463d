//! Legacy parameters: writes an update as `AttributeUpdates`, and checks conditions on binaries.

use heatsink_dynamo::expression::{Assigned, Path, Update};
use heatsink_dynamo::{Error, Operation, Value, comparison, json};

use super::refused;

/// The longest binary that a legacy condition may search for, in bytes. It is searched at every
/// place of the item's.
const BINARY: usize = 2048;

/// An update of top-level attributes as `AttributeUpdates`.
pub(super) fn written(update: &Update) -> Vec<u8> {
    let mut all = json::Object::new();
    let mut write = |path: &Path, action: &str, value: Option<&Value>| {
        let mut one = json::Object::new();
        one.string("Action", action);
        if let Some(value) = value {
            one.raw("Value", &value.to_json());
        }
        all.raw(&path.root, &one.finish());
    };
    for (path, value) in &update.set {
        if let Assigned::Value(value) = value {
            write(path, "PUT", Some(value));
        }
    }
    update.add.iter().for_each(|(path, value)| write(path, "ADD", Some(value)));
    update.delete.iter().for_each(|(path, value)| write(path, "DELETE", Some(value)));
    update.remove.iter().for_each(|path| write(path, "DELETE", None));
    all.finish()
}

/// Refuses conditions and filters in the old form that search a binary for a long one, and
/// conditions whose operator does not take its operands, of which the engine finds only some.
///
/// # Errors
/// `ValidationException`.
pub(crate) fn check(operation: Operation, body: &[u8]) -> Result<(), Error> {
    let member = match operation {
        Operation::PutItem | Operation::UpdateItem | Operation::DeleteItem => "Expected",
        Operation::Query => "QueryFilter",
        Operation::Scan => "ScanFilter",
        _ => return Ok(()),
    };
    let Ok(Some(conditions)) = json::member(body, member) else { return Ok(()) };
    for (_, condition) in json::members(conditions).unwrap_or_default() {
        let Ok([operator, values, value]) =
            json::attributes_of(condition, ["ComparisonOperator", "AttributeValueList", "Value"])
        else {
            continue;
        };
        let operator = operator.and_then(|operator| json::string(operator).ok());
        if let (Some(operator), "Expected") = (&operator, member)
            && let Some(operands) = operands(value, values)
        {
            comparison::check(operator, &operands)?;
        }
        // Base64 of it is a third longer.
        let long = values.is_some_and(|values| values.len() > BINARY / 3 * 4 && binary(values));
        if operator.is_some_and(|operator| operator.ends_with("CONTAINS")) && long {
            return Err(refused(&format!("{member} with CONTAINS of more than {BINARY} bytes")));
        }
    }
    Ok(())
}

/// What a condition compares with, as far as it can be read. `Value` and `AttributeValueList` do
/// not go together, which is another mistake.
fn operands(value: Option<&[u8]>, values: Option<&[u8]>) -> Option<Vec<Value>> {
    let present = |raw: &&[u8]| *raw != b"null";
    let raw = match (value.filter(present), values.filter(present)) {
        (Some(_), Some(_)) => return None,
        (Some(value), None) => vec![value],
        (None, values) => values.map_or(Ok(Vec::new()), json::elements).ok()?,
    };
    raw.into_iter().map(|raw| Value::read(raw).ok()).collect()
}

fn binary(values: &[u8]) -> bool {
    let first = json::elements(values).ok().and_then(|all| all.into_iter().next());
    first.is_some_and(|value| matches!(json::member(value, "B"), Ok(Some(_))))
}
