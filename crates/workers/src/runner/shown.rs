//! What is known of a run while it runs: what its gateway writes of it, and what it looks at.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use heatsink_control::reshard_intent::{ReshardIntent, Steering};
use heatsink_layout::Phase;
use heatsink_reshard::State;
use metrics::counter;

use super::choice::Place;
use crate::progress::Progress;

/// What is known of a run while it runs.
pub(super) struct Shown {
    pub place: Place,
    pub steering: Steering,
    paused: AtomicBool,
    over: AtomicBool,
    phase: Mutex<Option<Phase>>,
    /// The key may be on its way.
    moving: AtomicBool,
    moved: AtomicU64,
    to_move: Mutex<Option<u64>>,
    hindered: Mutex<Hindered>,
    /// Who sees it, too.
    also: Option<Arc<dyn Progress>>,
}

/// What the run says hinders it, and what it said before: that is taken back, and nothing that
/// others have said.
#[derive(Default)]
struct Hindered {
    now: Option<String>,
    before: Option<String>,
}

impl Shown {
    pub fn new(place: Place) -> Self {
        let (phase, moved, to_move, hindered) = Default::default();
        let [paused, over, moving] = Default::default();
        let (steering, also) = (Steering::default(), None);
        Shown { place, steering, paused, over, phase, moving, moved, to_move, hindered, also }
    }

    /// The same, of which somebody else sees the progress, too.
    pub fn with(self, also: Arc<dyn Progress>) -> Self {
        Shown { also: Some(also), ..self }
    }

    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Whether it waits for somebody: it is paused, or something hinders it.
    pub fn waits(&self) -> bool {
        let hindered = self.hindered.lock().unwrap_or_else(PoisonError::into_inner);
        self.paused.load(Ordering::Relaxed) || hindered.now.is_some()
    }

    pub fn ends(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    pub fn is_moving(&self) -> bool {
        self.moving.load(Ordering::Relaxed)
    }

    pub fn set_moving(&self, moving: bool) {
        self.moving.store(moving, Ordering::Relaxed);
    }

    pub fn set_phase(&self, phase: Option<Phase>) {
        *self.phase.lock().unwrap_or_else(PoisonError::into_inner) = phase;
    }

    pub fn set_to_move(&self, items: u64) {
        *self.to_move.lock().unwrap_or_else(PoisonError::into_inner) = Some(items);
    }

    pub fn moved(&self) -> u64 {
        self.moved.load(Ordering::Relaxed)
    }

    pub fn steer(&self, intent: &ReshardIntent) {
        self.paused.store(intent.paused, Ordering::Relaxed);
        self.steering.pause(intent.paused);
        if intent.cancelled {
            self.steering.cancel();
        }
    }
}

impl Progress for Shown {
    fn state(&self, state: State) {
        let phase = match state {
            State::Moving { phase, .. } => Some(phase),
            State::Stable { .. } => None,
        };
        // Until it is settled, the key cannot move again.
        self.set_moving(!matches!(state, State::Stable { settled: true, .. }));
        self.set_phase(phase);
        self.also.iter().for_each(|also| also.state(state));
    }

    fn moved(&self, items: u64) {
        let before = self.moved.swap(items, Ordering::Relaxed);
        counter!("heatsink_reshard_items_moved_total").increment(items.saturating_sub(before));
        self.also.iter().for_each(|also| also.moved(items));
    }

    fn hindered(&self, why: Option<String>) {
        self.also.iter().for_each(|also| also.hindered(why.clone()));
        let mut hindered = self.hindered.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut hindered.now, why);
        hindered.before = before.or(hindered.before.take());
    }
}

/// What this gateway knows of how far it is.
pub(super) fn report(next: &mut ReshardIntent, shown: &Shown, before: u64) {
    let progress = &mut next.progress;
    progress.phase = *shown.phase.lock().unwrap_or_else(PoisonError::into_inner);
    progress.moved = before + shown.moved();
    let counted = *shown.to_move.lock().unwrap_or_else(PoisonError::into_inner);
    // Clients write new items meanwhile, which move too.
    let to_move = progress.to_move.or(counted.map(|counted| before + counted));
    progress.to_move = to_move.map(|all| all.max(progress.moved));
    let hindered = shown.hindered.lock().unwrap_or_else(PoisonError::into_inner);
    if hindered.now.is_some() || progress.hindered == hindered.before {
        progress.hindered.clone_from(&hindered.now);
    }
    if next.cancelled && shown.steering.is_too_late() {
        next.cancelled = false;
        let goes_on =
            "It was cancelled after the point of no return, and goes on. The way back is a second reshard";
        progress.hindered = Some(goes_on.to_owned());
    }
}
