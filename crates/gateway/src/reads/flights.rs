//! Reads under way, and who waits for their answers.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use foldhash::quality::RandomState;
use heatsink_dynamo::Error;
use heatsink_env::MonotonicInstant;
use heatsink_route::Answer;
use metrics::{Counter, counter};
use tokio::sync::oneshot;

use super::answers::Answers;
use super::generations::{Generation, Generations, Place};
use super::id::ReadId;
use crate::budget::Budget;

/// The part of the budget of memory that answers may take, as its divisor.
const PART: usize = 8;

type Told = Result<Answer, Error>;

/// Who waits for the answer of a read.
#[derive(Default)]
struct Flight(Mutex<Vec<oneshot::Sender<Told>>>);

/// The reads of a gateway that need not be sent.
pub(crate) struct Reads {
    under_way: Mutex<HashMap<ReadId, (Generation, Arc<Flight>), RandomState>>,
    answers: Mutex<Answers>,
    generations: Generations,
    /// Whether a read ever came that need not be sent.
    begun: AtomicBool,
    joined: Counter,
    hits: Counter,
}

/// What becomes of a read.
pub(crate) enum Entered<'r> {
    /// It is sent.
    Leads(Lead<'r>),
    /// It waits for the answer of one that was sent. Without one it enters again.
    Waits(oneshot::Receiver<Told>),
    /// It is answered.
    Has(Answer),
}

/// How a read may be answered without being sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ways {
    /// By one that is under way.
    pub(crate) coalesce: bool,
    /// By an answer that is at most so old.
    pub(crate) max_age: Option<Duration>,
}

impl Reads {
    /// None is under way. Its metrics go to the recorder that is installed by now.
    pub(crate) fn new(memory: usize, budget: &Arc<Budget>) -> Self {
        let of = |how: &'static str| counter!("heatsink_reads_saved_total", "how" => how);
        Reads {
            under_way: Mutex::default(),
            answers: Mutex::new(Answers::new(memory / PART, budget)),
            generations: Generations::default(),
            begun: AtomicBool::new(false),
            joined: of("coalesced"),
            hits: of("cached"),
        }
    }

    /// Whether a write has to be told: from the first read on that need not be sent, whatever rules
    /// say by now. An answer that was kept may be given again when they say so again.
    ///
    /// A read sets it before it is sent, and a write asks it after it took effect: a write that is
    /// not told shows in every read.
    pub(crate) fn has_begun(&self) -> bool {
        self.begun.load(Ordering::SeqCst)
    }

    /// The place of a logical key.
    pub(crate) fn place(&self, table: &str, key: &[u8]) -> Place {
        self.generations.place(table, key)
    }

    /// A key was written to, maybe; whoever wrote is not told yet.
    pub(crate) fn wrote(&self, place: Place) {
        self.generations.wrote(place);
    }

    /// The same of any keys of a table.
    pub(crate) fn wrote_any(&self, table: &str) {
        self.generations.wrote_any(table);
    }

    /// A read comes.
    pub(crate) fn enter(&self, id: ReadId, place: Place, ways: Ways, now: MonotonicInstant) -> Entered<'_> {
        self.begun.store(true, Ordering::SeqCst);
        // Before anything is looked up: what is written from now on the answer need not show.
        let generation = self.generations.now(place);
        if let Some(age) = ways.max_age
            && let Some(answer) = lock(&self.answers).get(&id, generation, age, now)
        {
            self.hits.increment(1);
            return Entered::Has(answer);
        }
        let flight = Arc::default();
        if ways.coalesce {
            let mut under_way = lock(&self.under_way);
            if let Some((began, flight)) = under_way.get(&id)
                && *began == generation
            {
                let (tell, told) = oneshot::channel();
                lock(&flight.0).push(tell);
                self.joined.increment(1);
                return Entered::Waits(told);
            }
            // One of an earlier generation goes on for those who wait for it.
            under_way.insert(id.clone(), (generation, Arc::clone(&flight)));
        }
        Entered::Leads(Lead { reads: self, id, flight, generation, begun: now, ways })
    }
}

/// A read that is sent. Dropped without an answer, those who wait for it enter again.
pub(crate) struct Lead<'r> {
    reads: &'r Reads,
    id: ReadId,
    flight: Arc<Flight>,
    generation: Generation,
    begun: MonotonicInstant,
    ways: Ways,
}

impl Lead<'_> {
    /// Tells its answer to those who wait, and keeps it.
    pub(crate) fn answered(mut self, answer: &Told) {
        self.leave();
        if let (Some(_), Ok(answer)) = (self.ways.max_age, answer)
            && answer.missing.is_empty()
        {
            lock(&self.reads.answers).keep(self.id.clone(), answer, self.generation, self.begun);
        }
        for waiting in std::mem::take(&mut *lock(&self.flight.0)) {
            // Whoever has gone is not told.
            let _ = waiting.send(answer.clone());
        }
    }

    /// From now on nobody joins it.
    fn leave(&mut self) {
        if !self.ways.coalesce {
            return;
        }
        let mut under_way = lock(&self.reads.under_way);
        if under_way.get(&self.id).is_some_and(|(_, flight)| Arc::ptr_eq(flight, &self.flight)) {
            under_way.remove(&self.id);
        }
    }
}

impl Drop for Lead<'_> {
    fn drop(&mut self) {
        self.leave();
        lock(&self.flight.0).clear();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
