//! What is known of a run while it runs: how far it is, and whether it may go on.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use heatsink_control::reshard_intent::ReshardIntent;
use heatsink_reshard::{Phase, State};

use super::choice::Place;
use crate::progress::Progress;
use crate::steering::Steering;

/// What is known of a run while it runs.
pub(super) struct Shown {
    pub place: Place,
    pub steering: Steering,
    paused: AtomicBool,
    pub over: AtomicBool,
    pub phase: Mutex<Option<Phase>>,
    /// The key may be on its way.
    pub moving: AtomicBool,
    pub moved: AtomicU64,
    pub to_move: Mutex<Option<u64>>,
}

impl Shown {
    pub fn new(place: Place) -> Self {
        let (phase, moved, to_move) = Default::default();
        let [paused, over, moving] = Default::default();
        Shown { place, steering: Steering::default(), paused, over, phase, moving, moved, to_move }
    }

    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    pub fn is_paused(&self) -> bool {
        self.paused.load(Ordering::Relaxed)
    }

    pub fn is_moving(&self) -> bool {
        self.moving.load(Ordering::Relaxed)
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
    fn phase(&self, state: State) {
        let phase = match state {
            State::Moving { phase, .. } => Some(phase),
            State::Stable { .. } => None,
        };
        // Until it is settled, no other key of the table can move.
        self.moving.store(!matches!(state, State::Stable { settled: true, .. }), Ordering::Relaxed);
        *self.phase.lock().unwrap_or_else(PoisonError::into_inner) = phase;
    }

    fn moved(&self, items: u64) {
        self.moved.store(items, Ordering::Relaxed);
    }
}
