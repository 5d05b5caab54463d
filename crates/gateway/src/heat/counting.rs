//! Counts the requests of one gateway by key.
//!
//! Not here: which of them are counted (`heatsink_heat::draw`), counting itself
//! (`heatsink_heat::detect`).

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use bytes::Bytes;
use heatsink_dynamo::{Error, Operation};
use heatsink_env::{Env, MonotonicInstant};
use heatsink_heat::costs::{Cost, Costs};
use heatsink_heat::detect::{Access, Detector, Key, PartHeat};
use heatsink_heat::draw::{Chosen, Draw, Drawing, Pace};
use heatsink_heat::history::{History, Saved};
use heatsink_heat::{Recent, shardable_loads};
use heatsink_route::Answer;

use super::accesses::{self, Answered, Finding, Found, most_items};
use super::counted::DrawnRequest;
use super::recording::Recording;
use super::tables::Tables;
use crate::client_metrics::AskedUnits;

/// The most keys of a part that are shown.
const KEYS: usize = 100;

/// Counts the requests of one gateway.
pub(crate) struct Heat {
    pub(super) tables: Tables,
    costs: Mutex<Costs>,
    counted: Mutex<Counted>,
    history: Mutex<History>,
    recent: Mutex<Recent>,
    drawing: Drawing,
    /// What is counted is recorded there.
    recording: OnceLock<Arc<Recording>>,
}

/// What was counted in a window that has ended.
pub(super) struct Window {
    /// The number of the one after it.
    pub(super) number: u64,
    /// How long it took.
    pub(super) millis: u64,
    pub(super) parts: Vec<PartHeat>,
}

pub(super) struct Counted {
    pub(super) detector: Detector,
    pace: Pace,
}

impl Heat {
    /// Counts what is drawn.
    pub(crate) fn new(env: &dyn Env) -> Self {
        Heat::drawing(Drawing::new(env.random()), env)
    }

    /// Counts nothing.
    pub(crate) fn idle(env: &dyn Env) -> Self {
        Heat::drawing(Drawing::none(), env)
    }

    fn drawing(drawing: Drawing, env: &dyn Env) -> Self {
        let detector = Detector::new(env.random(), millis(env.now()));
        Heat {
            tables: Tables::default(),
            costs: Mutex::new(Costs::new(env.random())),
            counted: Mutex::new(Counted { detector, pace: Pace::default() }),
            history: Mutex::default(),
            recent: Mutex::default(),
            drawing,
            recording: OnceLock::new(),
        }
    }

    /// Records what is counted there, too. The first recording stays.
    pub(crate) fn record(&self, recording: Arc<Recording>) {
        let _ = self.recording.set(recording);
    }

    /// Whether this request is counted, and how. Of one for many items it is also told where none
    /// of them is drawn. `now`: about.
    #[inline]
    pub(crate) fn draw(&self, operation: Operation, now: MonotonicInstant) -> Option<DrawnRequest> {
        let is_for_many = most_items(operation) > 1;
        let (draw, chosen) = if is_for_many {
            let draw = self.drawing.batch(millis(now));
            (draw, self.choose(draw, operation))
        } else {
            (self.drawing.request(millis(now))?, Chosen::ALL)
        };
        let asks = !chosen.is_empty() && (accesses::has_to_ask(operation) || self.drawing.asks(draw));
        Some(DrawnRequest { draw, chosen, asks })
    }

    /// The items of a request that are counted.
    pub(super) fn choose(&self, draw: Draw, operation: Operation) -> Chosen {
        self.drawing.choose(draw, most_items(operation))
    }

    /// The accesses of a request that are counted.
    pub(super) fn find<'a>(
        &self,
        request: Answered<'a>,
        chosen: Chosen,
        now: MonotonicInstant,
        recorded: bool,
    ) -> Vec<Found<'a>> {
        if chosen.is_empty() {
            return Vec::new();
        }
        let by = Finding { tables: &self.tables, costs: &self.costs, now, recorded };
        accesses::find(request, chosen, by)
    }

    /// Counts a request that was drawn, once it is answered. `figures`: what the store says that
    /// its calls cost. `client`: whose it is, where clients are known; only then it tells what
    /// the request stands for.
    #[inline(never)]
    #[cold]
    pub(crate) fn count(
        &self,
        DrawnRequest { draw, chosen, asks }: DrawnRequest,
        (operation, body): (Operation, &[u8]),
        answer: &Result<Answer, Error>,
        figures: &[Bytes],
        client: Option<&Arc<str>>,
        env: &dyn Env,
    ) -> AskedUnits {
        let mut asked = AskedUnits::default();
        if chosen.is_empty() {
            return asked;
        }
        let now = env.now();
        let answer = answer.as_ref().map(|answer| &*answer.body);
        let recording = self.recording.get().filter(|recording| recording.draws());
        let request = Answered { operation, body, answer, asked: asks, figures };
        let found = self.find(request, chosen, now, recording.is_some());
        if found.is_empty() && draw.weight() > 1 {
            return asked;
        }
        let weight = draw.weight();
        let mut counted = self.lock();
        let Counted { detector, pace } = &mut *counted;
        for one in &found {
            let page = one.page.map(|page| detector.hash(page));
            let Found { part, cost, outcome, is_page, .. } = *one;
            let key = one.key.as_ref().map(|(kind, text)| Key { kind: *kind, text: text.as_bytes() });
            let Cost { units, deviation } = cost;
            let access = Access { key, units, deviation, is_page, weight, outcome, client };
            if let Some(part) = client.and_then(|_| detector.name(part)) {
                asked.add(part.kind, &access);
            }
            if let Some(signs) = detector.count(millis(now), part, &access) {
                signs.item(one.item);
                one.adds.into_iter().for_each(|adds| signs.adds(adds));
                page.into_iter().for_each(|page| signs.reads(page));
                if let Some((raw, sort)) = one.sort.and_then(|raw| Some((raw, accesses::ordered(raw)?))) {
                    signs.writes(&sort);
                    signs.sorted_at(raw);
                }
            }
        }
        detector.advance(millis(now));
        let window = (detector.number(), detector.ends());
        detector.draws(self.drawing.counted(pace, window, draw, found.len()));
        if let Some(recording) = recording {
            let parts: Vec<_> = found.iter().map(|one| counted.detector.name(one.part).cloned()).collect();
            drop(counted);
            recording.add(now, weight, &found, &parts, &self.tables);
        }
        asked
    }

    /// A table was created, changed or deleted: its keys are asked for again.
    pub(crate) fn forget<S: AsRef<str>>(&self, tables: &[S]) {
        self.tables.forget(tables);
    }

    /// The parts of the last window, with so many keys each.
    pub(super) fn parts(&self, now: MonotonicInstant, keys: usize) -> Vec<PartHeat> {
        let detector = &mut self.lock().detector;
        detector.advance(millis(now));
        detector.heat(keys)
    }

    /// The last window.
    pub(super) fn last(&self, now: MonotonicInstant) -> Window {
        let mut counted = self.lock();
        counted.detector.advance(millis(now));
        let (number, millis) = (counted.detector.number(), counted.detector.window());
        let parts = counted.detector.heat(KEYS);
        drop(counted);
        self.recent().ended(number, || shardable_loads(&parts));
        Window { number, millis, parts }
    }

    /// The loads of the last two windows.
    pub(super) fn recent(&self) -> MutexGuard<'_, Recent> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
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

/// The clock of windows.
pub(super) fn millis(now: MonotonicInstant) -> u64 {
    now.0 / 1_000_000
}
