//! Answers requests for items of a table that does not exist, and table requests that depend on its
//! layouts.
//!
//! Such a request is never sent to the store unchanged: by the time it arrives, the table may exist
//! and be sharded. DynamoDB reports other errors of the request first, so the store is sent
//! variants that can have no effect ([`harmless`]), and its first other error is the answer.

mod harmless;

use bytes::Bytes;
use heatsink_control::NOBODY;
use heatsink_dynamo::{Code, Error, Operation, Outcome, wire};
use heatsink_route::tables_of;
use heatsink_store::Store;

pub(crate) use harmless::statement;

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
    let mut refused = None;
    for asked in harmless::variants(operation, body, missing) {
        match store.call(operation, asked).await {
            Err(error) if error.code == Code::ResourceNotFoundException => {
                refused = refused.or(Some(of_its_table(error, operation, body)));
            }
            // Conditions may have been tested on physical keys.
            Err(error) if error.code == Code::TransactionCanceledException => return not_found(),
            Err(error) if error.outcome == Outcome::NotDone => {
                return of_its_table(error, operation, body);
            }
            // A read succeeded because the table has just appeared, or the store is failing. Writes
            // name a table that cannot exist, so nothing was written.
            _ => {
                return Error::unavailable(
                    "The table did not exist when the request arrived",
                    Outcome::NotDone,
                );
            }
        }
    }
    refused.unwrap_or_else(not_found)
}

/// The error for the stream of a sharded table that was deleted. Its layouts are gone too, so its
/// records cannot be shown under logical keys.
pub(crate) fn stream(name: &str) -> Error {
    let message = format!(
        "Table {name} was sharded and is deleted: its stream cannot be read through Heatsink any more"
    );
    Error::new(Code::ResourceNotFoundException, message)
}

/// An error that names the request's table, where it names one.
fn of_its_table(error: Error, operation: Operation, body: &[u8]) -> Error {
    let Some(message) = error.message.as_ref().filter(|message| message.contains(NOBODY)) else {
        return error;
    };
    match tables_of(operation, body).as_deref() {
        Ok([name]) => {
            let message = message.replace(NOBODY, name.rsplit('/').next().unwrap_or(name));
            error.with_message(message)
        }
        _ => error,
    }
}

fn not_found() -> Error {
    Error::new(Code::ResourceNotFoundException, "Requested resource not found")
}
