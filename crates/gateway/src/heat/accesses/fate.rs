//! What became of a request, and of each of its items: carried out, throttled, and by what.

use heatsink_dynamo::{Code, Error, Origin};
use heatsink_heat::detect::Outcome;

/// What became of a request.
#[derive(Clone, Copy)]
pub(super) enum Fate<'a> {
    /// It was carried out. With the answer, empty if its own condition refused it.
    Done(&'a [u8]),
    /// All of it was throttled.
    Throttled(Outcome),
    /// A transaction was cancelled: some of its items may have been throttled.
    Cancelled(&'a Error),
}

impl<'a> Fate<'a> {
    /// `None` for a request that took no capacity: it was wrong, or its answer was lost.
    pub(super) fn of(answer: Result<&'a [u8], &'a Error>) -> Option<Self> {
        let error = match answer {
            Ok(answer) => return Some(Fate::Done(answer)),
            Err(error) => error,
        };
        match error.code {
            // Refused here, and never sent.
            _ if error.origin != Origin::DynamoDb => None,
            Code::ProvisionedThroughputExceededException
            | Code::ThrottlingException
            | Code::RequestLimitExceeded => Some(Fate::Throttled(throttle(error))),
            Code::ConditionalCheckFailedException => Some(Fate::Done(b"")),
            Code::TransactionCanceledException => Some(Fate::Cancelled(error)),
            _ => None,
        }
    }

    /// The answer; empty where there is none.
    pub(super) fn answer(self) -> &'a [u8] {
        if let Fate::Done(answer) = self { answer } else { b"" }
    }

    /// Of the item at that place of the request.
    pub(super) fn outcome(self, at: usize) -> Outcome {
        match self {
            Fate::Done(_) => Outcome::Done,
            Fate::Throttled(outcome) => outcome,
            Fate::Cancelled(error) => {
                let reason = error.members.get("CancellationReasons").and_then(|all| all.get(at));
                let code = reason.and_then(|reason| reason.get("Code")?.as_str()).unwrap_or_default();
                match code {
                    "ThrottlingError" | "ProvisionedThroughputExceeded" => Outcome::Throttled,
                    _ => Outcome::Done,
                }
            }
        }
    }
}

/// Why a request was throttled, where DynamoDB's `ThrottlingReasons` say so (`TableWriteKeyRangeThroughputExceeded`).
fn throttle(error: &Error) -> Outcome {
    let reasons = error.members.get("ThrottlingReasons").and_then(serde_json::Value::as_array);
    let by_partition = reasons.into_iter().flatten().any(|reason| {
        let reason = reason.get("reason").and_then(serde_json::Value::as_str).unwrap_or_default();
        reason.contains("KeyRange")
    });
    if by_partition { Outcome::ThrottledByPartition } else { Outcome::Throttled }
}
