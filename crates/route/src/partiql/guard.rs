//! Statements that must not reach an item, asked for nevertheless: under a table name that no table
//! can have.
//!
//! What is wrong with a statement is the store's to say, in its words; but a write that is not
//! understood here could hit a physical key that no reader looks at.

use bytes::Bytes;
use heatsink_dynamo::{Code, Error, Operation, json, partiql};

use super::refused::not_understood;
use crate::plan::{Plan, Single};
use crate::preflight;
use crate::request::{Request, malformed};
use crate::splice::Splice;

/// No name of a table may have this in it.
const MARK: &str = "!";

/// A statement that is not understood.
pub(super) fn one(request: &Request<'_>, why: String) -> Result<Plan, Error> {
    plan(request, not_understood(&why))
}

/// A statement that is refused with `error` unless the store refuses it for another reason.
pub(super) fn plan(request: &Request<'_>, error: Error) -> Result<Plan, Error> {
    let finish = move |answer: Result<Bytes, Error>| match answer {
        Err(refused) if !of_the_name(&refused.code, refused.message.as_deref()) => Err(refused),
        _ => Err(error),
    };
    let why =
        "the statement cannot be carried out: the store is asked for its words, under the name of no table";
    Ok(Single::new(Operation::ExecuteStatement, body(request)?, Some(Box::new(finish)), why).plan())
}

/// A plan that is carried out unless the store refuses the statement for another reason than the
/// name.
pub(super) fn first(request: &Request<'_>, then: Plan) -> Result<Plan, Error> {
    let why =
        "whether the statement is one that DynamoDB takes, the store says, asked under the name of no table";
    let refuses = |error: &Error| !of_the_name(&error.code, error.message.as_deref());
    Ok(preflight::unless(Operation::ExecuteStatement, body(request)?, then, why, refuses))
}

/// The request under the name of no table.
fn body(request: &Request<'_>) -> Result<Bytes, Error> {
    let raw = request.get("Statement").ok_or_else(malformed)?;
    let mut splice = Splice::new(request.body);
    splice.replace(raw, json_text(&json::string(raw).map_err(|_| malformed())?));
    Ok(splice.finish(request.body))
}

/// The statement with every table's name spoilt, as a JSON string.
pub(super) fn json_text(text: &str) -> Vec<u8> {
    let mut spoilt = text.to_owned();
    for (name, span) in partiql::tables_at(text).into_iter().rev() {
        spoilt.replace_range(span, &format!("\"{MARK}{}\"", name.replace('"', "")));
    }
    let mut raw = Vec::new();
    json::write_string(&mut raw, &spoilt);
    raw
}

/// Whether it was the name that a store refused.
pub(super) fn of_the_name(code: &Code, message: Option<&str>) -> bool {
    let name = |message: &str| message.contains(&format!("'{MARK}")) || message.contains("ableName");
    *code == Code::ResourceNotFoundException || message.is_some_and(name)
}
