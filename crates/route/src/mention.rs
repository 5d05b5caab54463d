//! Whether an expression can mention the partition key: a look at the bytes that spares parsing the many that do not.

use heatsink_dynamo::{Error, json};

use crate::request::{Request, malformed};

/// The expression parameters among `parameters` that may mention the attribute `name`: their text contains it, or contains a
/// placeholder that stands for it. False alarms are possible, misses are not.
///
/// # Errors
/// `SerializationException` for a parameter of the wrong type.
pub(crate) fn mentioning(
    request: &Request<'_>,
    parameters: &[&'static str],
    name: &str,
) -> Result<Vec<&'static str>, Error> {
    let mut found = Vec::new();
    let mut placeholders: Option<Vec<String>> = None;
    for &parameter in parameters {
        let Some(text) = request.string(parameter)? else { continue };
        if placeholders.is_none() {
            placeholders = Some(standing_for(request, name)?);
        }
        let by_placeholder =
            placeholders.iter().flatten().any(|placeholder| text.contains(placeholder.as_str()));
        if by_placeholder || text.contains(name) {
            found.push(parameter);
        }
    }
    Ok(found)
}

/// The placeholders in `ExpressionAttributeNames` that stand for the attribute.
fn standing_for(request: &Request<'_>, name: &str) -> Result<Vec<String>, Error> {
    let Some(names) = request.get("ExpressionAttributeNames") else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    for (placeholder, value) in json::members(names).map_err(|_| malformed())? {
        if json::string(value).is_ok_and(|value| value == name) {
            found.push(placeholder.into_owned());
        }
    }
    Ok(found)
}
