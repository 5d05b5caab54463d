//! Requests and answers as bytes, independent of connections and time.

use bytes::Bytes;
use heatsink_dynamo::Operation;
use http::StatusCode;

/// One request: the operation and its JSON body. Cloning shares the body.
#[derive(Clone, Debug)]
pub struct Request {
    /// The operation, sent as `X-Amz-Target`.
    pub operation: Operation,
    /// The JSON body, sent as it is.
    pub body: Bytes,
}

impl Request {
    /// A request from anything that turns into bytes.
    pub fn new(operation: Operation, body: impl Into<Bytes>) -> Self {
        Request { operation, body: body.into() }
    }
}

/// One answer, whatever its status.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The HTTP status.
    pub status: StatusCode,
    /// The whole body.
    pub body: Bytes,
}

/// How an answer is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Status 200.
    Accepted,
    /// DynamoDB refused for lack of throughput; a client would retry later.
    Throttled,
    /// Anything else. It makes a benchmark invalid.
    Failed,
}

/// Error types that mean "too fast", by the name after `#` (AWS: "Error handling with DynamoDB").
const THROTTLES: [&str; 3] =
    ["ProvisionedThroughputExceededException", "ThrottlingException", "RequestLimitExceeded"];

impl Outcome {
    /// Counts an answer by its status and, for status 400, by its `__type`.
    ///
    /// A 200 that left items unprocessed counts as accepted: a load of batches must look for
    /// itself, in [`crate::Work::outcome`].
    pub fn of(answer: &Answer) -> Outcome {
        if answer.status == StatusCode::OK {
            return Outcome::Accepted;
        }
        let kind = serde_json::from_slice::<serde_json::Value>(&answer.body).ok();
        let kind = kind.as_ref().and_then(|error| error.get("__type")).and_then(|kind| kind.as_str());
        let name = kind.and_then(|kind| kind.rsplit('#').next()).unwrap_or_default();
        if THROTTLES.contains(&name) { Outcome::Throttled } else { Outcome::Failed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(status: StatusCode, body: &'static str) -> Outcome {
        Outcome::of(&Answer { status, body: Bytes::from_static(body.as_bytes()) })
    }

    #[test]
    fn only_throughput_errors_count_as_throttled() {
        let throttle =
            r#"{"__type":"com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException"}"#;
        assert_eq!(outcome(StatusCode::OK, "{}"), Outcome::Accepted);
        assert_eq!(outcome(StatusCode::BAD_REQUEST, throttle), Outcome::Throttled);
        assert_eq!(
            outcome(StatusCode::BAD_REQUEST, r#"{"__type":"com.amazon.coral.validate#ValidationException"}"#),
            Outcome::Failed
        );
        assert_eq!(outcome(StatusCode::BAD_REQUEST, "not json"), Outcome::Failed);
        assert_eq!(outcome(StatusCode::INTERNAL_SERVER_ERROR, "{}"), Outcome::Failed);
    }
}
