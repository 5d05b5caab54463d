//! Answers requests for items of a table that does not exist, and table requests that depend on its layouts.
//!
//! Such a request is never sent to the store unchanged: by the time it arrives, the table may exist and be sharded. DynamoDB reports other errors of
//! the request first, so the store is sent a variant that can have no effect: of a read the request itself, of a write one that names a table which cannot
//! exist. A transaction keeps its other tables, since it has all of its effects or none.

use std::borrow::Cow;

use bytes::Bytes;
use heatsink_control::NOBODY;
use heatsink_dynamo::json::{self, Object};
use heatsink_dynamo::{Code, Error, Operation, Outcome, wire};
use heatsink_route::table_name;
use heatsink_store::Store;

/// The error for the request, whose tables `missing` do not exist.
pub(crate) async fn refusal(
    store: &dyn Store,
    operation: Operation,
    body: &Bytes,
    missing: &[String],
) -> Error {
    if let Err(error) = wire::check(operation, body) {
        return error;
    }
    let harmless = operation.only_reads() || names_nothing(body);
    let asked = match operation {
        _ if harmless => Some(body.clone()),
        Operation::TransactWriteItems => transaction(body, missing),
        _ => renamed(body),
    };
    let Some(asked) = asked else { return not_found() };
    match store.call(operation, asked).await {
        // Conditions may have been tested on physical keys.
        Err(error) if error.code == Code::TransactionCanceledException => not_found(),
        Err(error) if error.outcome == Outcome::NotDone => of_its_table(error, body),
        // A read succeeded because the table has just appeared, or the store is failing. Writes name a table that cannot exist, so nothing was written.
        _ => Error::unavailable("The table did not exist when the request arrived", Outcome::NotDone),
    }
}

/// The error for the stream of a sharded table that was deleted. Its layouts are gone too, so its records cannot be shown under logical keys.
pub(crate) fn stream(name: &str) -> Error {
    let message = format!(
        "Table {name} was sharded and is deleted: its stream cannot be read through Heatsink any more"
    );
    Error::new(Code::ResourceNotFoundException, message)
}

/// An error that names the request's table.
fn of_its_table(error: Error, body: &[u8]) -> Error {
    match (&error.message, named(body)) {
        (Some(message), Some(name)) if message.contains(NOBODY) => {
            let message = message.replace(NOBODY, name.rsplit('/').next().unwrap_or(&name));
            error.with_message(message)
        }
        _ => error,
    }
}

fn named(body: &[u8]) -> Option<Cow<'_, str>> {
    json::member(body, "TableName").ok().flatten().and_then(|name| json::string(name).ok())
}

/// Whether the request names one table, by a name that no table can have.
fn names_nothing(body: &[u8]) -> bool {
    named(body).is_some_and(|name| name.len() < 3)
}

/// The request with another table name, if it names one table.
fn renamed(body: &Bytes) -> Option<Bytes> {
    let name = json::member(body, "TableName").ok().flatten()?;
    let begin = name.as_ptr() as usize - body.as_ptr() as usize;
    let mut renamed = Vec::with_capacity(body.len() + NOBODY.len());
    renamed.extend_from_slice(body.get(..begin)?);
    renamed.push(b'"');
    renamed.extend_from_slice(NOBODY.as_bytes());
    renamed.push(b'"');
    renamed.extend_from_slice(body.get(begin + name.len()..)?);
    Some(Bytes::from(renamed))
}

/// The transaction with another name for its missing tables, if it has one. Without its token: the store would remember the token with another request than
/// the client's.
fn transaction(body: &Bytes, missing: &[String]) -> Option<Bytes> {
    let name = format!("\"{NOBODY}\"");
    let is_missing = |action: &[u8]| {
        named(action).is_some_and(|table| missing.iter().any(|missing| missing == table_name(&table)))
    };
    let mut elements = Vec::new();
    let mut any = false;
    for element in json::elements(json::member(body, "TransactItems").ok().flatten()?).ok()? {
        let actions = json::members(element).ok()?;
        if !actions.iter().any(|(_, action)| is_missing(action)) {
            elements.push(element.to_vec());
            continue;
        }
        any = true;
        let mut renamed = Object::new();
        // Of several actions in one element, which DynamoDB refuses, none may be carried out.
        for (action, members) in actions {
            let members = json::splice_members(members, &[("TableName", Some(name.as_bytes()))]).ok()?;
            renamed.raw(&action, &members);
        }
        elements.push(renamed.finish());
    }
    let elements = [b"[", elements.join(&b","[..]).as_slice(), b"]"].concat();
    let changes = [("TransactItems", Some(&*elements)), ("ClientRequestToken", None)];
    any.then(|| json::splice_members(body, &changes).ok().map(Bytes::from)).flatten()
}

fn not_found() -> Error {
    Error::new(Code::ResourceNotFoundException, "Requested resource not found")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_name_is_replaced_and_nothing_else() {
        let body = Bytes::from_static(br#"{"Item":{"TableName":{"S":"T"}}, "TableName" : "T" ,"x":1}"#);
        let expected = br#"{"Item":{"TableName":{"S":"T"}}, "TableName" : "heatsink.nobody" ,"x":1}"#;
        assert_eq!(renamed(&body).unwrap(), &expected[..]);
        assert!(renamed(&Bytes::from_static(br#"{"RequestItems":{}}"#)).is_none());
    }

    #[test]
    fn a_transaction_keeps_the_tables_that_exist_and_loses_its_token() {
        let body = Bytes::from_static(br#"{"TransactItems":[{"Delete":{"TableName":"T"}},{"Delete":{"TableName":"U"}}],"ClientRequestToken":"t"}"#);
        let asked = transaction(&body, &["U".to_owned()]).unwrap();
        let asked: serde_json::Value = serde_json::from_slice(&asked).unwrap();
        let delete = |table: &str| serde_json::json!({ "Delete": { "TableName": table } });
        assert_eq!(asked, serde_json::json!({ "TransactItems": [delete("T"), delete(NOBODY)] }));
        assert!(transaction(&body, &["V".to_owned()]).is_none());
    }
}
