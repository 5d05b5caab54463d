//! The writes that wait, by item.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use foldhash::quality::RandomState;
use heatsink_dynamo::{Code, Error};
use heatsink_route::combine::{Combined, ItemWrite};
use metrics::{Counter, counter};
use tokio::sync::oneshot;

use crate::budget::{Budget, Held};
use crate::sent::Decision;

/// The most writes of one item that wait.
const MOST: usize = 1_000;

/// The most bytes that they have together.
const MOST_BYTES: usize = 1024 * 1024;

/// What a waiting write takes beside its body, in bytes.
const OVERHEAD: usize = 512;

/// What a write that waits is told.
pub(super) enum Told {
    /// It leads now.
    Lead(ItemWrite),
    /// It was carried out, or not.
    Answer(Result<Bytes, Error>),
}

/// A write that waits.
pub(super) struct Waiting {
    pub(super) write: ItemWrite,
    pub(super) tell: oneshot::Sender<Told>,
    turn: Arc<Decision>,
    bytes: usize,
    _held: Held,
}

/// The writes of one item that wait for the one that is under way.
#[derive(Default)]
struct Queue {
    waiting: VecDeque<Waiting>,
    bytes: usize,
}

impl Queue {
    fn pop(&mut self) -> Option<Waiting> {
        let first = self.waiting.pop_front()?;
        self.bytes -= first.bytes;
        Some(first)
    }
}

/// What becomes of a write.
pub(super) enum Entered {
    /// It leads: none of its item is under way.
    Leads(ItemWrite),
    /// It waits until it is told something.
    Waits(oneshot::Receiver<Told>),
}

/// The writes of all items.
pub(crate) struct Combiner {
    /// Of the items of which a write is under way.
    items: Mutex<HashMap<Vec<u8>, Queue, RandomState>>,
    budget: Arc<Budget>,
    full: Counter,
    calls: Counter,
    writes: Counter,
}

impl Combiner {
    /// None waits. Its metrics go to the recorder that is installed by now.
    pub(crate) fn new(budget: &Arc<Budget>) -> Self {
        Combiner {
            items: Mutex::default(),
            budget: Arc::clone(budget),
            full: counter!("heatsink_refused_total", "limit" => "combine"),
            calls: counter!("heatsink_combined_calls_total"),
            writes: counter!("heatsink_combined_writes_total"),
        }
    }

    /// A write comes, which `turn` may give up as long as it waits.
    ///
    /// # Errors
    /// `ThrottlingException`: too many wait.
    pub(super) fn enter(&self, write: ItemWrite, turn: &Arc<Decision>) -> Result<Entered, Error> {
        let mut items = self.lock();
        let Some(queue) = items.get_mut(write.item()) else {
            items.insert(write.item().to_vec(), Queue::default());
            return Ok(Entered::Leads(write));
        };
        let bytes = write.request().1.len();
        if queue.waiting.len() >= MOST || queue.bytes + bytes > MOST_BYTES {
            self.full.increment(1);
            return Err(too_many());
        }
        let Some(held) = self.budget.try_hold(bytes + OVERHEAD) else {
            self.full.increment(1);
            return Err(self.budget.no_room("a write that waits for another of its item"));
        };
        let (tell, told) = oneshot::channel();
        queue.bytes += bytes;
        queue.waiting.push_back(Waiting { write, tell, turn: Arc::clone(turn), bytes, _held: held });
        Ok(Entered::Waits(told))
    }

    /// The first writes of an item that wait and that can be combined with `group`, which they
    /// join. From now on none of them can be given up.
    pub(super) fn join(&self, item: &[u8], group: &mut Combined) -> Vec<Waiting> {
        let mut joined = Vec::new();
        let mut items = self.lock();
        let Some(queue) = items.get_mut(item) else { return joined };
        while let Some(first) = queue.waiting.front() {
            let is_gone = first.turn.is_given_up() || first.tell.is_closed();
            let step = if is_gone { None } else { group.step(&first.write) };
            if !is_gone && step.is_none() {
                break;
            }
            let Some(first) = queue.pop() else { break };
            if let Some(step) = step
                && first.turn.begin()
            {
                group.add(&first.write, step);
                joined.push(first);
            }
        }
        joined
    }

    /// The write of an item that was under way is not any more: the first that waits leads.
    pub(super) fn pass_on(&self, item: &[u8]) {
        let mut items = self.lock();
        let Some(queue) = items.get_mut(item) else { return };
        while let Some(Waiting { write, tell, turn, .. }) = queue.pop() {
            if !turn.is_given_up() && tell.send(Told::Lead(write)).is_ok() {
                return;
            }
        }
        items.remove(item);
    }

    /// So many writes went as one.
    pub(super) fn sent(&self, writes: usize) {
        if writes > 1 {
            self.calls.increment(1);
            self.writes.increment(u64::try_from(writes).unwrap_or(u64::MAX));
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Vec<u8>, Queue, RandomState>> {
        self.items.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn too_many() -> Error {
    let message = format!(
        "More than {MOST} writes of the item, or {} MB of them, wait for one that is under way; nothing was written",
        MOST_BYTES / (1024 * 1024)
    );
    Error::new(Code::ThrottlingException, message)
}
