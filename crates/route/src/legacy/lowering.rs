//! A Query or Scan with expressions in the place of the parameters that they replaced:
//! `KeyConditions`, `QueryFilter`, `ScanFilter`, `ConditionalOperator`, `AttributesToGet`.

use bytes::Bytes;
use heatsink_dynamo::json;

use super::{Placeholders, Tests, Unreadable, filter, projection, tests};
use crate::refusal::Unplanned;
use crate::request::{Request, quoted};

const LEGACY: [&str; 5] =
    ["KeyConditions", "QueryFilter", "ScanFilter", "ConditionalOperator", "AttributesToGet"];
const MODERN: [&str; 5] = [
    "KeyConditionExpression",
    "FilterExpression",
    "ProjectionExpression",
    "ExpressionAttributeNames",
    "ExpressionAttributeValues",
];

impl From<Unreadable> for Unplanned {
    fn from(_: Unreadable) -> Self {
        Unplanned::Invalid
    }
}

/// The request with expressions; `None` if it has no legacy parameters. `filtered_by` is the
/// operation's own filter.
pub(crate) fn modernized(request: &Request<'_>, filtered_by: &str) -> Result<Option<Bytes>, Unplanned> {
    if LEGACY.iter().all(|name| request.get(name).is_none()) {
        return Ok(None);
    }
    if MODERN.iter().any(|name| request.get(name).is_some()) {
        return Err(Unplanned::Invalid);
    }
    let mut placeholders = Placeholders::new();
    let mut changes: Vec<(&str, Option<Vec<u8>>)> = LEGACY.iter().map(|name| (*name, None)).collect();
    if let Some(conditions) = request.get("KeyConditions") {
        let tests = tests(conditions, &mut placeholders, Tests::Key)?;
        changes.push(("KeyConditionExpression", Some(quoted(&tests.join(" AND ")))));
    }
    let operator = request.string("ConditionalOperator").map_err(|_| Unplanned::Invalid)?;
    match (request.get(filtered_by), operator.as_deref()) {
        (None, None) => {}
        (None, Some(_)) => return Err(Unplanned::Invalid),
        (Some(conditions), operator) => {
            if let Some(text) = filter(conditions, operator, &mut placeholders)? {
                changes.push(("FilterExpression", Some(quoted(&text))));
            }
        }
    }
    if let Some(names) = request.get("AttributesToGet") {
        changes.push(("ProjectionExpression", Some(quoted(&projection(names, &mut placeholders)?))));
    }
    let [names, values] = placeholders.finish();
    changes.push(("ExpressionAttributeNames", names));
    changes.push(("ExpressionAttributeValues", values));
    let changes: Vec<(&str, Option<&[u8]>)> =
        changes.iter().map(|(name, value)| (*name, value.as_deref())).collect();
    Ok(Some(Bytes::from(json::splice_members(request.body, &changes)?)))
}
