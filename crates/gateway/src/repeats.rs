//! Pages that one request asks for again and again: the store's position does not advance, or goes
//! in a circle, and a plan that follows it would not end before its deadline.
//!
//! A plan may ask for a page several times, of a key that moves above all. So what decides is the
//! answer: whether it goes on where it began.
//!
//! Not here: reads of keys that the store leaves unread (`heatsink_route` asks for them with
//! pauses), the limit of all calls (`spent`).

use std::hash::BuildHasher;

use bytes::Bytes;
use foldhash::HashMap;
use foldhash::fast::FixedState;
use heatsink_dynamo::{Error, Operation, pages};
use heatsink_route::PhysicalCall;
use serde_json::Value as Json;

/// Calls that are not looked at: most requests need fewer.
const FREE: usize = 16;

/// How often one page may be asked for beyond those, whatever is answered: so often only what goes
/// in a circle does.
const MOST: u16 = 500;

/// The pages that were asked for.
#[derive(Default)]
pub(crate) struct Repeats {
    calls: usize,
    /// How often, by the hash of operation and body; none for most requests.
    asked: Option<Box<HashMap<u64, u16>>>,
}

/// A page that was asked for before, whose answer is looked at.
pub(crate) struct Repeated {
    operation: Operation,
    body: Bytes,
    times: u16,
}

impl Repeats {
    /// Counts a round's call. Gives it back if it was asked before.
    pub(crate) fn count(&mut self, call: &PhysicalCall) -> Option<Repeated> {
        self.calls += 1;
        if self.calls <= FREE || !call.operation.gives_pages() || !pages::may_go_on(&call.body) {
            return None;
        }
        let page = FixedState::default().hash_one((call.operation, &call.body));
        let times = self.asked.get_or_insert_default().entry(page).or_default();
        *times = times.saturating_add(1);
        (*times > 1).then(|| Repeated { operation: call.operation, body: call.body.clone(), times: *times })
    }
}

impl Repeated {
    /// The answer, if it advances.
    ///
    /// # Errors
    /// Its own; `InternalServerError`, the store's fault: the page goes on where it began, or was
    /// asked for too often.
    pub(crate) fn advancing(&self, answer: Result<Bytes, Error>) -> Result<Bytes, Error> {
        let answer = answer?;
        if self.times > MOST {
            return Err(pages::stuck(self.operation));
        }
        let read = |body: &Bytes| serde_json::from_slice::<Json>(body).unwrap_or_default();
        pages::advances(self.operation, &read(&self.body), &read(&answer))?;
        Ok(answer)
    }
}
