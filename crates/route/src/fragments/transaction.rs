//! One write as a transaction over the fragments of a counter, and its answer as the one write's.

use bytes::Bytes;
use heatsink_dynamo::expression::{Bindings, Fresh};
use heatsink_dynamo::json::{self, Object};
use heatsink_dynamo::{Code, Error, Operation};
use heatsink_layout::Table;
use serde_json::Value as Json;

use crate::answer::{logical_item, unreadable};
use crate::capacity::Capacity;
use crate::refusal::Unsent;
use crate::request::Request;

use super::effect::{self, Effect};

/// The members of a write that an action of a transaction has too.
const MEMBERS: [&str; 7] = [
    "TableName",
    "Item",
    "Key",
    "UpdateExpression",
    "ConditionExpression",
    "ExpressionAttributeNames",
    "ExpressionAttributeValues",
];

/// The action of the base fragment: the write itself, physical already. `name` is `Put`, `Update`
/// or `Delete`.
pub(crate) fn whole(name: &str, request: &Request<'_>) -> Vec<u8> {
    let mut action = Object::new();
    for member in MEMBERS {
        if let Some(value) = request.get(member) {
            action.raw(member, value);
        }
    }
    named(name, &action.finish())
}

/// The action of another fragment, with a physical key: it goes, or these of its attributes.
pub(crate) fn cleared(table_name: &[u8], key: &[u8], gone: Option<&[String]>) -> Vec<u8> {
    let Some(gone) = gone else {
        let mut action = Object::new();
        action.raw("TableName", table_name).raw("Key", key);
        return named("Delete", &action.finish());
    };
    let bindings = Bindings::default();
    let mut fresh = Fresh::avoiding(&bindings);
    let names: Vec<String> = gone.iter().map(|name| fresh.name(name)).collect();
    let expression = format!("REMOVE {}", names.join(", "));
    update(table_name, key, &expression, bindings.rewritten(&[], &fresh))
}

/// An update of a fragment; last what the placeholders for names and for values stand for.
pub(crate) fn update(
    table_name: &[u8],
    key: &[u8],
    expression: &str,
    (names, values): (Option<Vec<u8>>, Option<Vec<u8>>),
) -> Vec<u8> {
    let mut action = Object::new();
    action.raw("TableName", table_name).raw("Key", key).string("UpdateExpression", expression);
    for (member, bound) in [("ExpressionAttributeNames", names), ("ExpressionAttributeValues", values)] {
        if let Some(bound) = bound {
            action.raw(member, &bound);
        }
    }
    named("Update", &action.finish())
}

fn named(name: &str, action: &[u8]) -> Vec<u8> {
    let mut element = Object::new();
    element.raw(name, action);
    element.finish()
}

/// The transaction of those actions, which reports what the write was asked to report.
pub(crate) fn body(request: &Request<'_>, actions: &[Vec<u8>]) -> Bytes {
    let mut body = Object::new();
    let list = body.name("TransactItems");
    list.push(b'[');
    list.extend_from_slice(&actions.join(&b','));
    list.push(b']');
    for member in ["ReturnConsumedCapacity", "ReturnItemCollectionMetrics"] {
        if let Some(value) = request.get(member) {
            body.raw(member, value);
        }
    }
    Bytes::from(body.finish())
}

/// The answer of one write, from the transaction's.
pub(crate) fn answer(table: &Table, body: &Bytes) -> Result<Bytes, Error> {
    let broken = |_| unreadable(Operation::TransactWriteItems);
    let [capacity, metrics] =
        json::attributes_of(body, ["ConsumedCapacity", "ItemCollectionMetrics"]).map_err(broken)?;
    let mut answer = Object::new();
    let tables: Option<Vec<Capacity>> = capacity.and_then(|raw| serde_json::from_slice(raw).ok());
    if let Some(one) = tables.iter().flatten().next() {
        answer.raw("ConsumedCapacity", &one.single().all());
    }
    if let Some(Json::Object(tables)) = metrics.and_then(|raw| serde_json::from_slice(raw).ok())
        && let Some(Json::Array(collections)) = tables.into_iter().next().map(|(_, collections)| collections)
        && let Some(Json::Object(mut collection)) = collections.into_iter().next()
    {
        // The fragments of one item: all their keys are logically one.
        if let Some(key) = collection.get("ItemCollectionKey").and_then(|key| logical_item(table, key)) {
            collection.insert("ItemCollectionKey".to_owned(), key);
        }
        answer.raw("ItemCollectionMetrics", Json::Object(collection).to_string().as_bytes());
    }
    Ok(Bytes::from(answer.finish()))
}

/// The error of one write, from the transaction's.
pub(crate) fn error(error: Error) -> Error {
    if error.code != Code::TransactionCanceledException {
        return error;
    }
    let reasons = error.members.get("CancellationReasons").and_then(Json::as_array);
    let mut reasons = reasons.into_iter().flatten().filter(|reason| code(reason) != "None");
    let Some(first) = reasons.next() else { return error };
    let message = first["Message"].as_str().unwrap_or_default().to_owned();
    match code(first) {
        "ConditionalCheckFailed" => {
            Error::new(Code::ConditionalCheckFailedException, "The conditional request failed")
        }
        "TransactionConflict" => {
            Error::new(Code::TransactionConflictException, "Transaction is ongoing for the item")
        }
        "ProvisionedThroughputExceeded" => Error::new(Code::ProvisionedThroughputExceededException, message),
        "ThrottlingError" => Error::new(Code::ThrottlingException, message),
        "ValidationError" => Error::validation(message),
        "ItemCollectionSizeLimitExceeded" => {
            Error::new(Code::ItemCollectionSizeLimitExceededException, message)
        }
        _ => error,
    }
}

fn code(reason: &Json) -> &str {
    reason["Code"].as_str().unwrap_or("None")
}

/// What an action of a transaction adds to it for the other fragments of a counter, whose physical
/// keys are `others`.
///
/// # Errors
/// [`Unsent`] for an action that no fragment can carry out.
pub(crate) fn actions(
    action: &str,
    request: &Request<'_>,
    attributes: &[String],
    others: impl Iterator<Item = Bytes>,
) -> Result<Vec<Vec<u8>>, Unsent> {
    let operation = match action {
        "Put" => Some(Operation::PutItem),
        "Update" => Some(Operation::UpdateItem),
        "Delete" => Some(Operation::DeleteItem),
        _ => None,
    };
    let Effect::All(gone) = effect::read(operation, request, attributes)? else { return Ok(Vec::new()) };
    let name = request.get("TableName").unwrap_or(b"null");
    Ok(others.map(|key| cleared(name, &key, gone.as_deref())).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_first_reason_of_a_cancelled_transaction_is_the_error_of_the_write() {
        let of = |reason: &str| {
            let reasons = json!([{ "Code": "None" }, { "Code": reason, "Message": "so it is" }]);
            let cancelled = Error::new(Code::TransactionCanceledException, "cancelled");
            let error = error(cancelled.with("CancellationReasons", reasons));
            (error.code, error.message.unwrap())
        };
        for (reason, code, message) in [
            (
                "ConditionalCheckFailed",
                Code::ConditionalCheckFailedException,
                "The conditional request failed",
            ),
            (
                "TransactionConflict",
                Code::TransactionConflictException,
                "Transaction is ongoing for the item",
            ),
            ("ProvisionedThroughputExceeded", Code::ProvisionedThroughputExceededException, "so it is"),
            ("ThrottlingError", Code::ThrottlingException, "so it is"),
            ("ValidationError", Code::ValidationException, "so it is"),
            ("ItemCollectionSizeLimitExceeded", Code::ItemCollectionSizeLimitExceededException, "so it is"),
            ("Other", Code::TransactionCanceledException, "cancelled"),
        ] {
            assert_eq!(of(reason), (code, message.to_owned()), "{reason}");
        }
        assert_eq!(error(Error::validation("as it came")).message.unwrap(), "as it came");
    }
}
