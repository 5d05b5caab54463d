//! The contract between a plan and whoever drives it.

use bytes::Bytes;
use heatsink_dynamo::{Error, Operation};

/// One request to the store, with physical keys.
#[derive(Clone, Debug)]
pub struct PhysicalCall {
    /// Names the call within its execution; its answer comes back under the same number.
    pub id: usize,
    /// The operation.
    pub operation: Operation,
    /// The body.
    pub body: Bytes,
    /// Whether the driver may send it again, with jittered backoff and within the request's deadline, when the store
    /// throttles it: true for the shards of a scatter, where one refusal would throw away all other answers. Elsewhere the
    /// refusal goes to the client, whose SDK retries.
    pub retry_throttled: bool,
}

/// What an execution wants next.
#[derive(Debug)]
pub enum Step {
    /// Run these, all at once if possible, and give every answer back before the next step.
    Call(Vec<PhysicalCall>),
    /// The client's answer.
    Done(Result<Bytes, Error>),
}

/// What is known of the calls that a step asked for, before they are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outlook {
    /// How many bytes their answers are expected to hold.
    pub answers: usize,
    /// How many bytes of bodies will be sent at least, in these calls and in those of later steps.
    pub bodies: usize,
}

/// A plan under way. The driver calls [`step`](Execution::step), runs what it asks for, gives each answer to
/// [`answer`](Execution::answer), and steps again until it is done.
pub trait Execution: Send {
    /// What to do next. Not called again after [`Step::Done`].
    fn step(&mut self) -> Step;

    /// Takes the answer of the call with that id.
    fn answer(&mut self, id: usize, answer: Result<Bytes, Error>);

    /// What is known of the calls that the last step asked for. Where little is asked nothing is said.
    fn outlook(&self) -> Outlook {
        Outlook::default()
    }

    /// The shards that the answer goes without (`on_shard_error = "partial"`): their numbers, after the bucket and `#` where there
    /// are buckets. Asked for once it is done.
    fn missing(&mut self) -> Vec<String> {
        Vec::new()
    }
}
