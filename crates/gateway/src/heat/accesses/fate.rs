//! What became of a request, and of each of its items: carried out, refused by a condition,
//! throttled, and by what.

use heatsink_dynamo::{Code, Error, Origin};
use heatsink_heat::detect::Outcome;
use heatsink_route::table_name;
use serde_json::Value as Json;

/// What became of a request.
#[derive(Clone, Copy)]
pub(super) enum Fate<'a> {
    /// It was carried out, and answered so.
    Done(&'a [u8]),
    /// Its own condition refused it. It cost what the item costs.
    Failed(&'a Error),
    /// All of it was throttled.
    Throttled(&'a Error),
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
            | Code::RequestLimitExceeded => Some(Fate::Throttled(error)),
            Code::ConditionalCheckFailedException | Code::DuplicateItemException => Some(Fate::Failed(error)),
            Code::TransactionCanceledException => Some(Fate::Cancelled(error)),
            _ => None,
        }
    }

    /// The answer; empty where there is none.
    pub(super) fn answer(self) -> &'a [u8] {
        if let Fate::Done(answer) = self { answer } else { b"" }
    }

    /// Whether it was carried out, and changed or read what it names.
    pub(super) fn is_done(self) -> bool {
        matches!(self, Fate::Done(_))
    }

    /// Of the item at that place of the request, in the table or one of its indexes.
    pub(super) fn outcome(self, at: usize, (table, index): (&str, Option<&str>)) -> Outcome {
        match self {
            Fate::Done(_) | Fate::Failed(_) => Outcome::Done,
            Fate::Throttled(error) => throttled_by(error, table, index),
            Fate::Cancelled(error) => {
                let reason = error.members.get("CancellationReasons").and_then(|all| all.get(at));
                let code = reason.and_then(|reason| reason.get("Code")?.as_str()).unwrap_or_default();
                if is_throttle(code) { Outcome::Throttled } else { Outcome::Done }
            }
        }
    }
}

/// Whether a part of a request with this code was throttled, as transactions and batches of
/// statements say it.
pub(super) fn is_throttle(code: &str) -> bool {
    matches!(
        code,
        "ThrottlingError" | "ProvisionedThroughputExceeded" | "ThrottlingException" | "RequestLimitExceeded"
    )
}

/// Why a request for a table, or a write to one of its indexes, was throttled, where DynamoDB's
/// `ThrottlingReasons` say so (`TableWriteKeyRangeThroughputExceeded`). The reason that can be
/// acted on comes first.
fn throttled_by(error: &Error, table: &str, index: Option<&str>) -> Outcome {
    // Of ThrottlingException, which tables on demand give, the member begins in lower case (service
    // model 2012-08-10).
    let lists = ["ThrottlingReasons", "throttlingReasons"].iter().filter_map(|name| error.members.get(*name));
    let mut worst = Outcome::Throttled;
    for reason in lists.filter_map(Json::as_array).flatten() {
        let text = |name: &str| reason.get(name).and_then(Json::as_str).unwrap_or_default();
        let outcome = of_reason(text("reason"), text("resource"), table, index);
        if urgency(outcome) > urgency(worst) {
            worst = outcome;
        }
    }
    worst
}

fn of_reason(reason: &str, resource: &str, table: &str, index: Option<&str>) -> Outcome {
    // `arn:aws:dynamodb:REGION:ACCOUNT:table/NAME/index/INDEX`. Some stores give no resource.
    if resource.contains(":table/") && table_name(resource) != table {
        return Outcome::Throttled;
    }
    let of_index = resource.split_once("/index/").map(|(_, index)| index);
    let is_own = of_index == index && reason.starts_with("Index") == index.is_some();
    match reason {
        _ if reason.contains("KeyRange") && is_own => Outcome::ThrottledByPartition,
        _ if reason.contains("KeyRange") => Outcome::ThrottledByIndex,
        _ if reason.contains("AccountLimit") => Outcome::ThrottledByAccount,
        _ if reason.contains("Provisioned") || reason.contains("MaxOnDemand") => Outcome::ThrottledByMaximum,
        _ => Outcome::Throttled,
    }
}

fn urgency(outcome: Outcome) -> u8 {
    match outcome {
        Outcome::ThrottledByPartition => 4,
        Outcome::ThrottledByIndex => 3,
        Outcome::ThrottledByMaximum => 2,
        Outcome::ThrottledByAccount => 1,
        Outcome::Throttled | Outcome::Done => 0,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const TABLE: &str = "arn:aws:dynamodb:eu-west-1:1:table/games";
    const INDEX: &str = "arn:aws:dynamodb:eu-west-1:1:table/games/index/by-owner";

    #[test]
    fn reasons_are_those_of_the_table_or_of_the_index() {
        use Outcome as O;
        for (code, member) in [
            (Code::ProvisionedThroughputExceededException, "ThrottlingReasons"),
            (Code::ThrottlingException, "throttlingReasons"),
        ] {
            let by = |reasons: &[(&str, &str)], index: Option<&str>| {
                let reasons = reasons.iter();
                let list: Json =
                    reasons.map(|(reason, arn)| json!({ "reason": reason, "resource": arn })).collect();
                let error = Error::new(code.clone(), "").with(member, list);
                Fate::of(Err(&error)).unwrap().outcome(0, ("games", index))
            };
            let table = ("TableWriteKeyRangeThroughputExceeded", TABLE);
            let index = ("IndexWriteKeyRangeThroughputExceeded", INDEX);
            let maximum = ("TableWriteMaxOnDemandThroughputExceeded", TABLE);
            let provisioned = ("IndexWriteProvisionedThroughputExceeded", INDEX);
            let account = ("TableReadAccountLimitExceeded", TABLE);
            for (reasons, of_table, of_index) in [
                (&[table][..], O::ThrottledByPartition, O::ThrottledByIndex),
                (&[index], O::ThrottledByIndex, O::ThrottledByPartition),
                (&[index, table], O::ThrottledByPartition, O::ThrottledByPartition),
                (&[maximum, account], O::ThrottledByMaximum, O::ThrottledByMaximum),
                (&[provisioned], O::ThrottledByMaximum, O::ThrottledByMaximum),
                (&[account], O::ThrottledByAccount, O::ThrottledByAccount),
                (
                    &[("TableWriteKeyRangeThroughputExceeded", "arn")],
                    O::ThrottledByPartition,
                    O::ThrottledByIndex,
                ),
                (
                    &[("TableWriteKeyRangeThroughputExceeded", &TABLE.replace("games", "other"))],
                    O::Throttled,
                    O::Throttled,
                ),
                (&[], O::Throttled, O::Throttled),
            ] {
                assert_eq!(
                    (by(reasons, None), by(reasons, Some("by-owner"))),
                    (of_table, of_index),
                    "{reasons:?}"
                );
            }
            assert_eq!(by(&[index], Some("by-level")), O::ThrottledByIndex);
        }
    }

    #[test]
    fn parts_of_cancelled_transactions_have_no_reason() {
        let reasons =
            json!([{ "Code": "None" }, { "Code": "ThrottlingError" }, { "Code": "ConditionalCheckFailed" }]);
        let error = Error::new(Code::TransactionCanceledException, "").with("CancellationReasons", reasons);
        let of = |at| Fate::of(Err(&error)).unwrap().outcome(at, ("games", None));
        assert_eq!([of(0), of(1), of(2)], [Outcome::Done, Outcome::Throttled, Outcome::Done]);
    }
}
