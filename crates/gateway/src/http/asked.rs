//! Which operation a request asks for, with DynamoDB's order of checks: body, target, whether its
//! sender may ask, then whether the body is JSON.
//!
//! Not here: what makes a sender one that may ask (`front`, `in_process`).

use bytes::Bytes;
use heatsink_dynamo::{Code, Error, Operation};
use http::HeaderMap;

/// The operation of a request whose sender may ask, as `may` says. A body that is not JSON is
/// reported before all other errors; a valid request is parsed only once, by its reader.
pub(super) fn asked(
    headers: &HeaderMap,
    body: &Bytes,
    may: impl FnOnce() -> Result<(), Error>,
) -> Result<Operation, Error> {
    let target = headers.get("x-amz-target").and_then(|target| target.to_str().ok());
    let checked = target
        .and_then(Operation::from_target)
        .ok_or_else(|| Error::bare(Code::UnknownOperationException))
        .and_then(|operation| may().map(|()| operation));
    match checked {
        _ if body.is_empty() => Err(Error::bare(Code::SerializationException)),
        Err(_) if serde_json::from_slice::<serde::de::IgnoredAny>(body).is_err() => {
            Err(Error::bare(Code::SerializationException))
        }
        checked => checked,
    }
}
