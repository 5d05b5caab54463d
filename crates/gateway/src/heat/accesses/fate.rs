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

/// Why a request was throttled, where DynamoDB's `ThrottlingReasons` say so
/// (`TableWriteKeyRangeThroughputExceeded`).
fn throttle(error: &Error) -> Outcome {
    // Of ThrottlingException, which tables on demand give, the member begins in lower case (service
    // model 2012-08-10).
    let reasons =
        ["ThrottlingReasons", "throttlingReasons"].iter().filter_map(|name| error.members.get(*name));
    let by_partition = reasons.filter_map(serde_json::Value::as_array).flatten().any(|reason| {
        let reason = reason.get("reason").and_then(serde_json::Value::as_str).unwrap_or_default();
        reason.contains("KeyRange")
    });
    if by_partition { Outcome::ThrottledByPartition } else { Outcome::Throttled }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_partition_is_named_by_provisioned_tables_and_by_those_on_demand() {
        let reasons = |reason: &str| json!([{ "reason": reason, "resource": "arn" }]);
        for (code, member) in [
            (Code::ProvisionedThroughputExceededException, "ThrottlingReasons"),
            (Code::ThrottlingException, "throttlingReasons"),
        ] {
            let by = |reason| throttle(&Error::new(code.clone(), "").with(member, reasons(reason)));
            assert_eq!(by("TableWriteKeyRangeThroughputExceeded"), Outcome::ThrottledByPartition);
            assert_eq!(by("TableWriteMaxOnDemandThroughputExceeded"), Outcome::Throttled);
        }
        assert_eq!(throttle(&Error::new(Code::ThrottlingException, "")), Outcome::Throttled);
    }
}
