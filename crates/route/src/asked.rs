//! Reads of which only the checks here find something wrong: the store is asked first, with the request as it came
//! (and `Limit` 1 where it has none).
//!
//! If it refuses, that is the client's answer, in the store's words. If not, the request is planned like any other: a
//! sharded table must not refuse more than an unsharded one.

use bytes::Bytes;
use futures::future::BoxFuture;
use heatsink_dynamo::{Error, Operation, json};

use crate::plan::{CallExplanation, Explanation, Plan, Planned};
use crate::{Answer, Calls, PhysicalCall};

/// A plan that is carried out if the store does not refuse the request as it came. For reads only.
pub(crate) fn asked_first(operation: Operation, body: Bytes, then: Plan) -> Plan {
    let has = |name| !matches!(json::member(&body, name), Ok(None));
    let mut changes: Vec<(&str, Option<&[u8]>)> = Vec::new();
    if !has("Limit") {
        // One item is enough, whatever the answer would hold.
        changes.push(("Limit", Some(b"1")));
    }
    if has("Segment") {
        // The logical key lies in another segment than the physical one, which `then` sends; the store would refuse it.
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

/// A plan that is carried out unless `refuses` says that the error of `body` is the client's answer.
pub(crate) fn unless(
    operation: Operation,
    body: Bytes,
    then: Plan,
    why: &'static str,
    refuses: fn(&Error) -> bool,
) -> Plan {
    then.wrapped(|then| Asked { operation, body, then, why, refuses })
}

struct Asked {
    operation: Operation,
    body: Bytes,
    then: Box<dyn Planned>,
    why: &'static str,
    refuses: fn(&Error) -> bool,
}

impl Planned for Asked {
    fn run<'a>(self: Box<Self>, calls: &'a mut dyn Calls) -> BoxFuture<'a, Result<Answer, Error>> {
        let Asked { operation, body, then, refuses, .. } = *self;
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
