//! Counts the requests of one gateway by key.
//!
//! Up to [`EXACT`] items a second all are counted; beyond that one request in [`DRAWN`] is drawn at random and counted so many times, and of batches
//! one in [`DRAWN_BATCHES`] of these.
//!
//! Not here: counting itself (`heatsink_heat::detect`).

use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use heatsink_dynamo::{Error, Operation};
use heatsink_env::{Env, MonotonicInstant};
use heatsink_heat::detect::{Access, Detector, Key, PartHeat};
use heatsink_heat::history::{History, Saved};
use heatsink_route::Answer;

use super::accesses::{self, Found};
use super::draws::Draws;
use super::recording::Recording;
use super::tables::Tables;

/// So many items of a window are counted one by one. Below that the time that it takes is no matter; beyond it, one key of a percent still makes
/// hundreds of drawn requests.
const EXACT: u32 = 1_000;
/// Of the others one request in so many is drawn.
const DRAWN: u32 = 32;
/// Of batches and transactions that are drawn one in so many is counted: each has many items, and is long to read.
const DRAWN_BATCHES: u32 = 8;

/// The most keys of a part that are told.
const KEYS: usize = 100;

/// Counts the requests of one gateway.
pub(crate) struct Heat {
    pub(super) tables: Tables,
    counted: Mutex<Counted>,
    history: Mutex<History>,
    /// How many requests each counted one stands for: 1 or [`DRAWN`].
    weight: AtomicU32,
    /// How many requests are passed over before the next one is drawn.
    skip: AtomicI32,
    /// What is counted is recorded there.
    recording: Option<Arc<Recording>>,
}

pub(super) struct Counted {
    pub(super) detector: Detector,
    /// The window in which `items` were counted.
    window: u64,
    items: u32,
    draws: Draws,
}

impl Heat {
    pub(crate) fn new(env: &dyn Env) -> Self {
        let detector = Detector::new(env.random(), millis(env.now()));
        let window = detector.number();
        Heat {
            tables: Tables::default(),
            counted: Mutex::new(Counted { detector, window, items: 0, draws: Draws::new(env.random()) }),
            history: Mutex::default(),
            weight: AtomicU32::new(1),
            skip: AtomicI32::new(0),
            recording: None,
        }
    }

    /// Records what is counted there, too.
    pub(crate) fn record(&mut self, recording: Arc<Recording>) {
        self.recording = Some(recording);
    }

    /// Whether this request is counted, and for how many. Few instructions: most requests of a busy gateway do no more here.
    #[inline]
    pub(crate) fn draw(&self, operation: Operation) -> Option<u32> {
        if self.weight.load(Ordering::Relaxed) == 1 {
            return Some(1);
        }
        // Below zero another thread has drawn, and is about to set the next draw.
        if self.skip.fetch_sub(1, Ordering::Relaxed) == 0 { self.drawn(operation) } else { None }
    }

    /// The rest of [`draw`](Self::draw), apart so that the future of a request stays small.
    #[inline(never)]
    #[cold]
    fn drawn(&self, operation: Operation) -> Option<u32> {
        let mut counted = self.lock();
        self.skip.store(skipped(&mut counted.draws), Ordering::Relaxed);
        if !is_batch(operation) {
            return Some(DRAWN);
        }
        (counted.draws.below(DRAWN_BATCHES) == 0).then_some(DRAWN * DRAWN_BATCHES)
    }

    /// Counts a request that was drawn, once it is answered.
    #[inline(never)]
    #[cold]
    pub(crate) fn count(
        &self,
        weight: u32,
        operation: Operation,
        body: &[u8],
        answer: &Result<Answer, Error>,
        env: &dyn Env,
    ) {
        let now = env.now();
        let answer = answer.as_ref().map(|answer| &*answer.body);
        let recording = self.recording.as_deref().filter(|recording| recording.draws());
        let found = accesses::find(operation, body, answer, &self.tables, now, recording.is_some());
        let mut counted = self.lock();
        let Counted { detector, window, items, draws: _ } = &mut *counted;
        for one in &found {
            let page = one.page.map(|page| detector.hash(page));
            let Found { part, units, outcome, .. } = *one;
            let key = one.key.as_ref().map(|(kind, text)| Key { kind: *kind, text: text.as_bytes() });
            if let Some(signs) = detector.count(millis(now), part, &Access { key, units, weight, outcome }) {
                signs.item(one.item);
                page.into_iter().for_each(|page| signs.reads(page));
                if let Some(sort) = one.sort.and_then(accesses::ordered) {
                    signs.writes(&sort);
                }
            }
        }
        detector.advance(millis(now));
        if *window != detector.number() {
            *window = detector.number();
            *items = 0;
        }
        // A request of which nothing is counted was read as well.
        *items = items.saturating_add(u32::try_from(found.len()).unwrap_or(u32::MAX).max(1));
        let next = if *items > EXACT { DRAWN } else { 1 };
        if next != self.weight.load(Ordering::Relaxed) {
            self.skip.store(skipped(&mut counted.draws), Ordering::Relaxed);
            self.weight.store(next, Ordering::Relaxed);
        }
        if let Some(recording) = recording {
            let parts: Vec<_> = found.iter().map(|one| counted.detector.name(one.part).cloned()).collect();
            drop(counted);
            recording.add(now, weight, &found, &parts, &self.tables);
        }
    }

    /// A table was created, changed or deleted: its keys are asked for again.
    pub(crate) fn forget<S: AsRef<str>>(&self, tables: &[S]) {
        self.tables.forget(tables);
    }

    /// The last window, and how many milliseconds it took.
    pub(super) fn parts(&self, now: MonotonicInstant) -> (u64, Vec<PartHeat>) {
        let mut counted = self.lock();
        counted.detector.advance(millis(now));
        (counted.detector.window(), counted.detector.heat(KEYS))
    }

    /// The history, for a file.
    pub(crate) fn saved(&self) -> Saved {
        self.history().save()
    }

    /// Goes on from a history that was saved.
    pub(crate) fn resume(&self, saved: Saved) {
        *self.history() = History::read(saved);
    }

    pub(super) fn history(&self) -> MutexGuard<'_, History> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Counted> {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How many requests are passed over before the next one, so that one in [`DRAWN`] is drawn.
fn skipped(draws: &mut Draws) -> i32 {
    i32::try_from(draws.below(2 * DRAWN - 1)).unwrap_or_default()
}

/// Whether a request is of many items.
fn is_batch(operation: Operation) -> bool {
    matches!(
        operation,
        Operation::BatchExecuteStatement
            | Operation::BatchGetItem
            | Operation::BatchWriteItem
            | Operation::ExecuteTransaction
            | Operation::TransactGetItems
            | Operation::TransactWriteItems
    )
}

/// The clock of windows.
pub(super) fn millis(now: MonotonicInstant) -> u64 {
    now.0 / 1_000_000
}
