//! What a write needs of an item that changes its slot: blind puts replace it whatever it was, and
//! show nothing of it; all others are taken for writes that depend on the item.
//!
//! In a table with time to live an item that has the attribute is never put blindly. Its old copy
//! would stay behind, and once the new one has expired the old one would be the item again. An item
//! without the attribute cannot expire before another write gives it one, which brings the old copy
//! first.

use heatsink_dynamo::json::{self, Malformed};
use heatsink_dynamo::{Error, Operation};
use heatsink_reshard::Access;

use crate::identity::Identity;
use crate::request::{Request, malformed};

/// What the request needs of this item. `expires`: the attribute by which items of its table do.
///
/// An action of a transaction does not count as blind: it fails, or conflicts, with the others.
/// Updates and deletes are [`Access::Dependent`], whatever they say: they bring the item first.
pub(super) fn access(
    operation: Operation,
    request: &Request<'_>,
    item: &Identity,
    expires: Option<&str>,
) -> Result<Access, Error> {
    match operation {
        Operation::PutItem => {
            let put = request.get("Item").ok_or_else(malformed)?;
            let blindly = request.get("ConditionExpression").is_none()
                && request.get("Expected").is_none()
                && request.get("ReturnValues").is_none_or(|values| values == b"\"NONE\"");
            Ok(match may_expire(put, expires).map_err(|Malformed| malformed())? {
                leaves_ttl if blindly => Access::BlindPut { leaves_ttl },
                _ => Access::Dependent,
            })
        }
        Operation::BatchWriteItem => {
            let pulls = deletes_or_expires(request, item, expires).map_err(|Malformed| malformed())?;
            // Whichever of the batch it is that pulls.
            Ok(if pulls { Access::Dependent } else { Access::BlindPut { leaves_ttl: false } })
        }
        _ => Ok(Access::Dependent),
    }
}

/// Whether an item that is put has the attribute by which items expire. What it holds is not looked
/// at: which values DynamoDB takes for a time is its affair.
fn may_expire(put: &[u8], expires: Option<&str>) -> Result<bool, Malformed> {
    expires.map_or(Ok(false), |attribute| Ok(json::member(put, attribute)?.is_some()))
}

/// Whether a batch deletes an item with these key values, or puts any item that may expire, in
/// whatever table: a batch mostly holds one kind of write, and a pull too many does no harm.
fn deletes_or_expires(
    request: &Request<'_>,
    item: &Identity,
    expires: Option<&str>,
) -> Result<bool, Malformed> {
    let Some(tables) = request.get("RequestItems") else { return Ok(false) };
    for (_, writes) in json::members(tables)? {
        for write in json::elements(writes)? {
            let [put, delete] = json::attributes_of(write, ["PutRequest", "DeleteRequest"])?;
            let put = put.map(|put| json::member(put, "Item")).transpose()?.flatten();
            if put.map_or(Ok(false), |put| may_expire(put, expires))? {
                return Ok(true);
            }
            let key = delete.map(|delete| json::member(delete, "Key")).transpose()?.flatten();
            let Some(key) = key else { continue };
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
