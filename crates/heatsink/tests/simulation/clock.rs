//! Virtual time: what is to happen, in order. Time stands still while anything can run and jumps to the next event when nothing can.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fastrand::Rng;
use futures::FutureExt;
use futures::channel::oneshot;
use futures::future::BoxFuture;
use heatsink_env::{Env, Moment};

/// What happens at a moment.
pub type Event = Box<dyn FnOnce() + Send>;

/// The clock of a simulation. Clones share it.
#[derive(Clone, Default)]
pub struct Clock(Arc<Mutex<Timeline>>);

#[derive(Default)]
struct Timeline {
    now: Moment,
    /// Events at one moment happen in the order in which they were asked for.
    asked: u64,
    events: BTreeMap<(Moment, u64), Event>,
}

impl Clock {
    pub fn now(&self) -> Moment {
        self.0.lock().unwrap().now
    }

    /// Has something happen after that time.
    pub fn after(&self, pause: Duration, event: impl FnOnce() + Send + 'static) {
        let mut timeline = self.0.lock().unwrap();
        timeline.asked += 1;
        let at = (timeline.now + pause, timeline.asked);
        timeline.events.insert(at, Box::new(event));
    }

    pub fn sleep(&self, pause: Duration) -> BoxFuture<'static, ()> {
        let (wake, woken) = oneshot::channel();
        self.after(pause, move || {
            // A sleeper that was dropped no longer listens.
            let _ = wake.send(());
        });
        woken.map(|_| ()).boxed()
    }

    /// Moves on to the next event and hands it out.
    pub fn next(&self) -> Option<Event> {
        let mut timeline = self.0.lock().unwrap();
        let ((now, _), event) = timeline.events.pop_first()?;
        timeline.now = now;
        Some(event)
    }
}

/// What one process sees of time, and its own randomness.
pub struct ProcessEnv {
    clock: Clock,
    rng: Mutex<Rng>,
}

impl ProcessEnv {
    pub fn new(clock: &Clock, seed: u64) -> ProcessEnv {
        ProcessEnv { clock: clock.clone(), rng: Mutex::new(Rng::with_seed(seed)) }
    }
}

/// 2026-01-01T00:00:00Z, when every simulation begins.
const BEGIN: u64 = 1_767_225_600_000;

impl Env for ProcessEnv {
    fn now(&self) -> Moment {
        self.clock.now()
    }

    fn unix_millis(&self) -> u64 {
        BEGIN + self.clock.now().0 / 1_000_000
    }

    fn random(&self) -> u64 {
        self.rng.lock().unwrap().u64(..)
    }

    fn sleep(&self, pause: Duration) -> BoxFuture<'static, ()> {
        self.clock.sleep(pause)
    }
}
