//! One transaction of a worker, sent until it is done or refused.
//!
//! Not here: what is in it (`claim`).

use std::time::Duration;

use heatsink_dynamo::{Code, Error, Operation};
use serde_json::{Value as Json, json};

use crate::registry::Registry;

/// The result of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Written {
    /// All actions were carried out.
    Done,
    /// No action was carried out: the conditions of the actions at these positions did not hold.
    Refused(Vec<usize>),
}

/// The longest pause between two writes: clients of a partition that may burn retry soon, and who
/// pauses for longer than they do comes to nothing there. How many are sent is the worker's affair.
pub(crate) const LONGEST_OF_WRITES: Duration = Duration::from_millis(50);

/// For so long a transaction that conflicts or is throttled is retried.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// One transaction, retried with jittered backoff, with pauses up to `longest`, while it conflicts or
/// is throttled.
pub(crate) async fn transact(
    registry: &Registry,
    actions: Vec<Json>,
    token: Option<&str>,
    (longest, patience): (Duration, Duration),
) -> Result<Written, Error> {
    let mut body = json!({ "TransactItems": actions });
    if let Some(token) = token {
        body["ClientRequestToken"] = json!(token);
    }
    let mut pause = Duration::from_millis(10);
    let begun = registry.env().now();
    loop {
        let error = match registry.call_patiently(Operation::TransactWriteItems, body.clone()).await {
            Ok(_) => return Ok(Written::Done),
            Err(error) => error,
        };
        match error.code {
            Code::TransactionConflictException | Code::TransactionInProgressException => {}
            Code::TransactionCanceledException => match meaning(&error) {
                Meaning::Refused(failed) => return Ok(Written::Refused(failed)),
                Meaning::Conflict => {}
                Meaning::Throttled(at) => {
                    let of_clients =
                        |at: &usize| body["TransactItems"].get(*at).is_some_and(|one| !is_of(registry, one));
                    if at.iter().any(of_clients) {
                        registry.was_throttled();
                    }
                }
                Meaning::Invalid(why) => return Err(Error::validation(why)),
                Meaning::Other => return Err(error),
            },
            _ => return Err(error),
        }
        if registry.env().now().since(begun) >= patience {
            return Err(error);
        }
        let jitter = u32::try_from(registry.env().random() % 1_000).unwrap_or(0);
        registry.env().sleep(pause / 2 + pause * jitter / 2_000).await;
        pause = (pause * 2).min(longest);
    }
}

/// Whether an action is on the registry's own table.
fn is_of(registry: &Registry, action: &Json) -> bool {
    let mut actions = action.as_object().into_iter().flat_map(|action| action.values());
    actions.any(|action| action["TableName"] == registry.name())
}

/// Why a transaction was cancelled.
enum Meaning {
    /// The conditions of these actions did not hold.
    Refused(Vec<usize>),
    Conflict,
    /// The partitions of these actions take no more for now.
    Throttled(Vec<usize>),
    /// The store does not accept an action.
    Invalid(String),
    Other,
}

fn meaning(error: &Error) -> Meaning {
    let Some(reasons) = error.members.get("CancellationReasons").and_then(Json::as_array) else {
        return Meaning::Other;
    };
    let code = |reason: &Json| reason["Code"].as_str().unwrap_or("None").to_owned();
    let failed: Vec<usize> = (0..)
        .zip(reasons)
        .filter(|(_, why)| code(why) == "ConditionalCheckFailed")
        .map(|(at, _)| at)
        .collect();
    if !failed.is_empty() {
        return Meaning::Refused(failed);
    }
    if let Some(invalid) = reasons.iter().find(|reason| code(reason) == "ValidationError") {
        return Meaning::Invalid(invalid["Message"].as_str().unwrap_or("an action is not valid").to_owned());
    }
    let throttled = ["ThrottlingError", "ProvisionedThroughputExceeded", "RequestLimitExceeded"];
    let is_throttled = |reason: &Json| throttled.contains(&code(reason).as_str());
    let passes = |reason: &Json| ["None", "TransactionConflict"].contains(&code(reason).as_str());
    let full: Vec<usize> =
        (0..).zip(reasons).filter(|(_, why)| is_throttled(why)).map(|(at, _)| at).collect();
    match reasons.iter().all(|reason| passes(reason) || is_throttled(reason)) {
        true if full.is_empty() => Meaning::Conflict,
        true => Meaning::Throttled(full),
        false => Meaning::Other,
    }
}
