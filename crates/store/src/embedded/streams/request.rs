//! What requests about streams share: their members, and refusals.

use heatsink_dynamo::{Code, Error};
use serde_json::Value as Json;

/// A member of a request that is a text; empty where it is absent.
pub(super) fn text<'r>(request: &'r Json, name: &str) -> &'r str {
    request[name].as_str().unwrap_or_default()
}

/// `Limit`, at most `most`, which is also what holds without one.
pub(super) fn limit(request: &Json, most: u64, words: &str) -> Result<usize, Error> {
    match request["Limit"].as_u64() {
        Some(limit) if limit > most => {
            Err(Error::validation(format!("One or more parameter values were invalid: {words}: {most}")))
        }
        limit => Ok(usize::try_from(limit.unwrap_or(most)).unwrap_or(usize::MAX)),
    }
}

pub(super) fn not_found(what: &str) -> Error {
    Error::new(Code::ResourceNotFoundException, format!("Requested resource not found: {what} not found"))
}

pub(super) fn unreadable(why: impl std::fmt::Display) -> Error {
    Error::internal(format!("the streams could not be read: {why}"))
}
