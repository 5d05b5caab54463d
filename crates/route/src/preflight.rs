//! Requests of which the store has to say whether they are valid, and in which words not. The store
//! is asked here and nowhere else.
//!
//! - Every DynamoDB refuses the request: it is sent as it came, and the refusal is the client's
//!   answer ([`pass_refusal`]). A read that the store accepts nevertheless has DynamoDB's words for
//!   an answer, where the checks here know them.
//! - Only the checks here find something wrong: the store is asked first, with the request as it
//!   came (and `Limit` 1 where it has none). If it refuses, that is the client's answer. If not,
//!   the request is planned like any other: a sharded table must not refuse more than an unsharded
//!   one.
//!
//! Not here: refusals that can be decided and worded without the store (`refusal`, and the checks
//! of `heatsink_dynamo`).

use bytes::Bytes;
use futures::future::BoxFuture;
use heatsink_dynamo::{Error, Operation, json};

use crate::answer::done;
use crate::plan::{CallExplanation, Explanation, Plan, Planned, Single};
use crate::refusal::Unplanned;
use crate::{Answer, Calls, PhysicalCall};

/// A plan that is carried out if the store does not refuse the request as it came. For reads only.
pub(crate) fn as_it_came(operation: Operation, body: Bytes, then: Plan) -> Plan {
    let has = |name| !matches!(json::member(&body, name), Ok(None));
    let mut changes: Vec<(&str, Option<&[u8]>)> = Vec::new();
    if !has("Limit") {
        // One item is enough, whatever the answer would hold.
        changes.push(("Limit", Some(b"1")));
    }
    if has("Segment") {
        // The logical key lies in another segment than the physical one, which `then` sends; the
        // store would refuse it.
        changes.push(("ExclusiveStartKey", None));
    }
    let body = json::splice_members(&body, &changes).map_or_else(|_| body.clone(), Bytes::from);
    first(
        operation,
        body,
        then,
        "DynamoDB is known to refuse this: the request goes to the store as it came, and only if it is accepted",
    )
}

/// A plan that is carried out if the store does not refuse `body`; `why` says why it is asked.
pub(crate) fn first(operation: Operation, body: Bytes, then: Plan, why: &'static str) -> Plan {
    unless(operation, body, then, why, |_| true)
}

/// A plan that is carried out unless `refuses` says that the error of `body` is the client's
/// answer.
pub(crate) fn unless(
    operation: Operation,
    body: Bytes,
    then: Plan,
    why: &'static str,
    refuses: fn(&Error) -> bool,
) -> Plan {
    then.wrapped(|then| Preflight { operation, body, then, why, refuses })
}

struct Preflight {
    operation: Operation,
    body: Bytes,
    then: Box<dyn Planned>,
    why: &'static str,
    refuses: fn(&Error) -> bool,
}

impl Planned for Preflight {
    fn run<'a>(self: Box<Self>, calls: &'a mut dyn Calls) -> BoxFuture<'a, Result<Answer, Error>> {
        let Preflight { operation, body, then, refuses, .. } = *self;
        Box::pin(async move {
            let call = PhysicalCall { retry_throttled: true, ..PhysicalCall::only(operation, body) };
            match calls.one(call).await {
                Err(error) if refuses(&error) => Err(error),
                _ => then.run(calls).await,
            }
        })
    }

    fn explain(&self) -> Explanation {
        let mut explanation = self.then.explain();
        explanation.why = format!("{}: {}", self.why, explanation.why);
        explanation.calls.insert(0, CallExplanation::new(self.operation, &self.body));
        explanation
    }
}

/// The plan for a request that has none of its own.
///
/// # Errors
/// The refusal of what is refused here.
pub(crate) fn unplanned(operation: Operation, body: &Bytes, why: Unplanned) -> Result<Plan, Error> {
    match why {
        Unplanned::Invalid => Ok(pass_refusal(operation, body)),
        Unplanned::Worded(error) => Ok(refused_in_words(operation, body, error)),
        Unplanned::Refused(error) => Err(error),
    }
}

/// The plan for a request that every DynamoDB refuses: it is sent as it came, so that the refusal
/// is the store's own.
pub(crate) fn pass_refusal(operation: Operation, body: &Bytes) -> Plan {
    let error = Error::validation(format!(
        "The table is sharded, and Heatsink cannot tell what this {} asks for: DynamoDB is known to refuse it",
        operation.name()
    ));
    refused_in_words(operation, body, error)
}

/// [`pass_refusal`], with the error for a read that the store accepts.
fn refused_in_words(operation: Operation, body: &Bytes, error: Error) -> Plan {
    let finish = move |answer: Result<Bytes, Error>| match answer {
        Ok(_) if operation.only_reads() => Err(error),
        Ok(_) => Err(accepted()),
        Err(error) => Err(error),
    };
    Single::new(
        operation,
        body.clone(),
        Some(Box::new(finish)),
        "the request is not valid: it is sent as it came, so that the store refuses it",
    )
    .plan()
}

/// The error of a write that the store accepted though every DynamoDB refuses it.
pub(crate) fn accepted() -> Error {
    done(Error::internal(
        "The store accepted a key that DynamoDB refuses; it may lie where Heatsink does not find it",
    ))
}
