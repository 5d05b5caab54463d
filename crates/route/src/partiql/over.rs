//! An ExecuteStatement that concerns all fragments of a counter, as an ExecuteTransaction of the
//! statement, for the base fragment, and of a DELETE of each other fragment. And its answer as the
//! one statement's.
//!
//! Not here: which statements these are (`counter::statement`); those that come in a transaction
//! (`many`).

use std::sync::Arc;

use bytes::Bytes;
use heatsink_dynamo::json::{self, Malformed, Object};
use heatsink_dynamo::{Error, Operation};
use heatsink_layout::Table;

use super::guard;
use super::keys::Place;
use super::statement::Written;
use crate::answer::unreadable;
use crate::counter::statement;
use crate::fragments::transaction;
use crate::items::fetch::list;
use crate::plan::{Plan, Single};
use crate::request::{Request, malformed};

/// What DynamoDB puts before its words on the first statement of a transaction.
const FIRST: &str = "Validation failed in TransactStatements[0]: ";

/// The plan of such a statement; `body` is the request for the base fragment.
///
/// # Errors
/// `SerializationException` for a body that cannot be read.
pub(super) fn plan(
    request: &Request<'_>,
    body: &Bytes,
    written: &Written<'_>,
    table: &Arc<Table>,
    place: &Place,
) -> Result<Plan, Error> {
    let sent = Request::read(body)?;
    let mut base = Object::new();
    for name in ["Statement", "Parameters"] {
        if let Some(value) = sent.get(name) {
            base.raw(name, value);
        }
    }
    let mut statements = vec![base.finish()];
    statements.extend(deletions(written, place)?);
    let statements: Vec<&[u8]> = statements.iter().map(Vec::as_slice).collect();
    let mut transaction = Object::new();
    transaction.raw("TransactStatements", &list(&statements));
    if let Some(report) = sent.get("ReturnConsumedCapacity") {
        transaction.raw("ReturnConsumedCapacity", report);
    }
    let of_table = Arc::clone(table);
    let finish = move |answer: Result<Bytes, Error>| match answer {
        Ok(body) => {
            let answer = transaction::answer(&of_table, &body)?;
            let shown = json::splice_members(&answer, &[("Items", Some(b"[]"))]);
            shown.map(Bytes::from).map_err(|Malformed| unreadable(Operation::ExecuteTransaction))
        }
        Err(error) => Err(alone(transaction::error(error))),
    };
    let why = format!(
        "the statement deletes the counter or sets its numbers: one transaction over its {} fragments, which costs at least {} write units",
        statements.len(),
        2 * statements.len()
    );
    let body = Bytes::from(transaction.finish());
    let plan = Single::new(Operation::ExecuteTransaction, body, Some(Box::new(finish)), why).plan();
    let is_alone = ["Limit", "NextToken", "ConsistentRead"].iter().all(|name| request.get(name).is_none());
    // A transaction has no such members: whether a statement that writes may have them, the store
    // says.
    if is_alone { Ok(plan) } else { guard::first(request, plan) }
}

/// The statements that delete the other fragments.
///
/// # Errors
/// `SerializationException` for a key that cannot be read.
pub(super) fn deletions(written: &Written<'_>, place: &Place) -> Result<Vec<Vec<u8>>, Error> {
    let table = written.text.get(written.statement.table.span.clone()).unwrap_or_default();
    let each = place.deleted.iter().map(|key| statement::deletion(table, key));
    each.collect::<Result<_, _>>().map_err(|Malformed| malformed())
}

/// The error without the place of the statement in the transaction.
fn alone(mut error: Error) -> Error {
    if let Some(words) = error.message.as_deref().and_then(|message| message.strip_prefix(FIRST)) {
        error.message = Some(words.to_owned());
    }
    error
}
