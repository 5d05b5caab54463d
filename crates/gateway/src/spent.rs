//! What one request has cost so far, held against its limit: calls, and bytes of bodies and
//! answers. And the room that its rounds hold of the budget of all requests.
//!
//! Not here: how the budget is shared (`budget`), carrying out a round (`execute`).

use bytes::Bytes;
use heatsink_dynamo::{Error, Outcome, memory_estimate};
use heatsink_route::PhysicalCall;

use crate::budget::{Held, Share, Stage, UNCOUNTED};
use crate::limits::Cost;

/// The cost of a request so far.
pub(crate) struct Spent {
    most: Cost,
    calls: usize,
    /// Bytes of calls.
    bodies: usize,
    /// Bytes of calls and answers.
    bytes: usize,
    /// Whether a round has been executed.
    begun: bool,
    /// Whether a round had a call that may write.
    written: bool,
    share: Share,
}

impl Spent {
    /// Nothing yet, of at most that much.
    pub(crate) fn new(most: Cost, share: Share) -> Self {
        Spent { most, calls: 0, bodies: 0, bytes: 0, begun: false, written: false, share }
    }

    /// How many calls were sent.
    pub(crate) fn calls(&self) -> usize {
        self.calls
    }

    /// How many bytes calls and answers had.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Counts a round's calls. At least `bodies` bytes of bodies are sent in this round and later
    /// ones.
    ///
    /// # Errors
    /// The request costs more than it may.
    pub(crate) fn count(&mut self, calls: &[PhysicalCall], bodies: usize) -> Result<(), Error> {
        self.calls += calls.len();
        if self.calls > self.most.calls {
            return Err(too_many_calls(self.most.calls));
        }
        let now: usize = calls.iter().map(|call| call.body.len()).sum();
        if self.bodies.saturating_add(now.max(bodies)) > self.most.bytes {
            return Err(too_large_bodies(self.most.bytes));
        }
        self.bodies += now;
        self.bytes += now;
        Ok(())
    }

    /// Room for a round's calls and their expected answers. Calls of a request that may have
    /// written already do not wait.
    ///
    /// # Errors
    /// `ThrottlingException`, if there is no room in time.
    pub(crate) async fn room(&mut self, calls: &[PhysicalCall], expected: usize) -> Result<Room, Error> {
        let stage = if self.begun { Stage::GoesOn } else { Stage::Begins };
        let written = self.written;
        self.begun = true;
        self.written |= calls.iter().any(|call| !call.operation.only_reads());
        if self.bytes.saturating_add(expected) <= UNCOUNTED {
            return Ok(Room::default());
        }
        let bodies: usize = calls.iter().map(|call| memory_estimate(call.operation, &call.body)).sum();
        let bytes = bodies.saturating_add(expected);
        let mut held = if written { self.share.force(bytes) } else { self.share.enter(stage, bytes).await? };
        Ok(Room { _bodies: Some(held.give(bodies)), answers: Some(held) })
    }

    /// Checks what was taken in.
    ///
    /// # Errors
    /// The request costs more than it may.
    pub(crate) fn within_limit(&self) -> Result<(), Error> {
        if self.bytes > self.most.bytes { Err(too_large(self.most.bytes)) } else { Ok(()) }
    }
}

/// The bytes held for a round; none if the round is small.
#[derive(Default)]
pub(crate) struct Room {
    /// For the calls, until the round is over.
    _bodies: Option<Held>,
    /// For answers that have not arrived yet.
    answers: Option<Held>,
}

impl Room {
    /// Counts an answer. A large answer is counted until the plan drops it.
    pub(crate) fn take_in(
        &mut self,
        answer: Result<Bytes, Error>,
        spent: &mut Spent,
    ) -> Result<Bytes, Error> {
        let answer = answer?;
        spent.bytes += answer.len();
        if spent.bytes <= UNCOUNTED {
            return Ok(answer);
        }
        let held = match &mut self.answers {
            Some(expected) => expected.give(answer.len()),
            None => spent.share.force(answer.len()),
        };
        Ok(held.carried_by(answer))
    }
}

/// Only reads get here: a write is one call, or a few that locate its items.
fn too_many_calls(most: usize) -> Error {
    Error::validation(format!(
        "The request needs more than {most} reads of the store, for the shards that the rules of its table spread its keys over. Ask for \
         fewer keys at once, or use fewer shards"
    ))
}

/// Not retryable: a retry would fail in the same way.
fn too_large_bodies(most: usize) -> Error {
    Error::validation(format!(
        "The request's expressions and their values go to every shard of its key, which would take more than {} MB. Use smaller values, or \
         fewer shards",
        most / (1024 * 1024)
    ))
}

/// Retryable: by then the item sizes are learned, and rounds are smaller.
fn too_large(most: usize) -> Error {
    Error::unavailable(
        format!(
            "The request takes more than {} MB of requests to its shards and their answers. Repeat it, with a smaller Limit if that fails",
            most / (1024 * 1024)
        ),
        Outcome::NotDone,
    )
}
