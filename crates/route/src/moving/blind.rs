//! Blind puts: writes that replace an item whatever it was, and show nothing of it.

use heatsink_dynamo::json::{self, Malformed};
use heatsink_dynamo::{Error, Operation};

use crate::items::identity::Identity;
use crate::request::{Request, malformed};

/// Whether the request puts this item blindly. An action of a transaction does not count as blind: it fails, or conflicts, with the others.
pub(super) fn is_put(operation: Operation, request: &Request<'_>, item: &Identity) -> Result<bool, Error> {
    match operation {
        Operation::PutItem => Ok(request.get("ConditionExpression").is_none()
            && request.get("Expected").is_none()
            && request.get("ReturnValues").is_none_or(|values| values == b"\"NONE\"")),
        Operation::BatchWriteItem => {
            let deleted = is_deleted(request, item).map_err(|Malformed| malformed())?;
            Ok(!deleted)
        }
        _ => Ok(false),
    }
}

/// Whether a batch deletes an item with these key values, in whatever table: a batch that holds a delete is rare, and a pull too many does no harm.
fn is_deleted(request: &Request<'_>, item: &Identity) -> Result<bool, Malformed> {
    let Some(tables) = request.get("RequestItems") else { return Ok(false) };
    for (_, writes) in json::members(tables)? {
        for write in json::elements(writes)? {
            let Some(delete) = json::member(write, "DeleteRequest")? else { continue };
            let Some(key) = json::member(delete, "Key")? else { continue };
            // Key attributes are few: the item's values are looked for in each.
            if json::members(key)?.iter().any(|(_, value)| holds(value, item.partition())) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// Whether a raw attribute value is a string or binary of these bytes.
fn holds(value: &[u8], bytes: &[u8]) -> bool {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    let text = |name| json::member(value, name).ok().flatten().and_then(|raw| json::string(raw).ok());
    text("S").is_some_and(|text| text.as_bytes() == bytes)
        || text("B").is_some_and(|text| STANDARD.decode(text.as_bytes()).is_ok_and(|found| found == bytes))
}
