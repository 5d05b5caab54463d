//! Answers requests for items of a table that does not exist, and table requests that depend on its layouts.
//!
//! Such a request is never sent to the store unchanged: by the time it arrives, the table may exist and be sharded. DynamoDB reports other errors of
//! the request first, so the store is sent a variant that can have no effect.

use std::borrow::Cow;

use bytes::Bytes;
use heatsink_control::NOBODY;
use heatsink_dynamo::{Code, Error, Operation, Outcome, json, wire};
use heatsink_store::Store;

/// The error for the request.
pub(crate) async fn refusal(store: &dyn Store, operation: Operation, body: &Bytes) -> Error {
    if let Err(error) = wire::check(operation, body) {
        return error;
    }
    let harmless = operation.only_reads() || names_nothing(body);
    let asked = if harmless { Some(body.clone()) } else { renamed(body) };
    let Some(asked) = asked else { return not_found() };
    match store.call(operation, asked).await {
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
    match (&error.message, table_name(body)) {
        (Some(message), Some(name)) if message.contains(NOBODY) => {
            let message = message.replace(NOBODY, name.rsplit('/').next().unwrap_or(&name));
            error.with_message(message)
        }
        _ => error,
    }
}

fn table_name(body: &[u8]) -> Option<Cow<'_, str>> {
    json::member(body, "TableName").ok().flatten().and_then(|name| json::string(name).ok())
}

/// Whether the request names one table, by a name that no table can have.
fn names_nothing(body: &[u8]) -> bool {
    table_name(body).is_some_and(|name| name.len() < 3)
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
}
