//! Delivers an answer: what waits for its client counts in the memory budget.

use bytes::Bytes;
use heatsink_dynamo::Error;
use http::{HeaderMap, HeaderValue, Response, StatusCode};

use super::answer::Body;
use super::door::Shared;
use super::{gzip, reply};
use crate::budget::{Of, UNCOUNTED};

/// An answer of the service.
pub(super) struct Answered {
    pub(super) body: Bytes,
    /// The shards that the answer leaves out.
    pub(super) missing: Vec<String>,
    pub(super) read_only: bool,
}

/// The HTTP answer, packed if the client takes that, and counted until it has taken it. That of a
/// write is sent even if there is no room.
///
/// # Errors
/// There is no room.
pub(super) async fn deliver(
    shared: &Shared,
    asked: &HeaderMap,
    content_type: HeaderValue,
    answered: Answered,
) -> Result<Response<Body>, Error> {
    let Shared { env, counts, budget, .. } = shared;
    // It is packed before it is weighed: what waits for the client is what counts.
    let packed = if gzip::wanted(asked) { gzip::write(&answered.body).await } else { None };
    let is_packed = packed.is_some();
    let body = packed.unwrap_or(answered.body);
    let held = if body.len() <= UNCOUNTED {
        None
    } else if answered.read_only {
        let Some(held) = budget.enter_answer(body.len()).await else {
            counts.over_answers.increment(1);
            return Err(budget.no_room("this answer"));
        };
        Some(held)
    } else {
        let mut held = budget.hold(Of::Answers);
        held.force(body.len());
        Some(held)
    };
    let reply = reply::reply(&**env, StatusCode::OK, Some(content_type), body, held);
    let reply = if is_packed { reply::packed(reply) } else { reply };
    Ok(reply::partial(reply, &answered.missing))
}
