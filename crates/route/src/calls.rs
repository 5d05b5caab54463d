//! The seam between a plan and whoever carries out its physical calls.

use bytes::Bytes;
use futures::future::BoxFuture;
use heatsink_dynamo::{Error, Operation};

/// One request to the store, with physical keys.
#[derive(Clone, Debug)]
pub struct PhysicalCall {
    /// Names the call within its round; its answer comes back under the same number.
    pub id: usize,
    /// The operation.
    pub operation: Operation,
    /// The body.
    pub body: Bytes,
    /// Whether it may be sent again, with jittered backoff and within the request's deadline, when
    /// the store throttles it: true where one refusal would throw away other answers or the work
    /// before it (shards of a scatter, slots of an item, a look before a write, the row of a
    /// bucket). Where the request is this one call the refusal goes to the client, whose SDK
    /// retries.
    pub retry_throttled: bool,
    /// Where it goes and what it is expected to read, for explanations. Nothing else depends on it.
    pub target: Option<Target>,
}

/// Where a physical call goes, and what it is expected to read there.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// The shard.
    pub shard: u16,
    /// The physical partition key; binary ones in base64.
    pub key: String,
    /// The most items that it reads.
    pub items: usize,
    /// What one of them weighs in bytes, as far as is known.
    pub item_bytes: f64,
    /// Whether it reads consistently.
    pub consistent: bool,
}

impl PhysicalCall {
    /// The only call of a round. A throttled one is not sent again.
    pub(crate) fn only(operation: Operation, body: Bytes) -> Self {
        PhysicalCall { id: 0, operation, body, retry_throttled: false, target: None }
    }
}

/// Calls that are to be carried out at once.
#[derive(Debug)]
pub struct Round {
    /// The calls; never none.
    pub calls: Vec<PhysicalCall>,
    /// How many bytes their answers are expected to hold.
    pub answers: usize,
    /// How many bytes of bodies will be sent at least, in these calls and in those of later rounds.
    pub bodies: usize,
}

impl From<Vec<PhysicalCall>> for Round {
    /// A round of which little is asked, so that nothing is said of its size.
    fn from(calls: Vec<PhysicalCall>) -> Self {
        Round { calls, answers: 0, bodies: 0 }
    }
}

/// Takes the answer of the call with that number.
pub type Take<'t> = dyn FnMut(usize, Result<Bytes, Error>) -> Result<(), Error> + Send + 't;

/// Carries out the physical calls of one plan.
pub trait Calls: Send {
    /// Carries out a round. `take` is given every answer, while the store still works on other
    /// calls. It should be given them in the order of the calls, so that the client's answer does
    /// not depend on which shard was fastest.
    ///
    /// # Errors
    /// The first error of `take`, once every call is answered. What ends the request whatever its
    /// calls answer: it has become too costly, or there is no room for it.
    fn round<'a>(&'a mut self, round: Round, take: &'a mut Take<'_>) -> BoxFuture<'a, Result<(), Error>>;
}

impl dyn Calls + '_ {
    /// Carries out one call.
    ///
    /// # Errors
    /// The store's, and those of [`round`](Calls::round).
    pub(crate) async fn one(&mut self, call: PhysicalCall) -> Result<Bytes, Error> {
        let mut answer = None;
        let mut take = |_, answered| {
            answer = Some(answered);
            Ok(())
        };
        self.round(vec![call].into(), &mut take).await?;
        answer.unwrap_or_else(|| Err(Error::internal("The store's answer is missing")))
    }
}

/// What a client is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The body.
    pub body: Bytes,
    /// The shards that it goes without (`on_shard_error = "partial"`): their numbers, after the
    /// bucket and `#` where there are buckets.
    pub missing: Vec<String>,
}

impl From<Bytes> for Answer {
    /// An answer that goes without no shard.
    fn from(body: Bytes) -> Self {
        Answer { body, missing: Vec::new() }
    }
}
