//! How fast all workers write together: an open loop as long as there are workers that wait. What a
//! write costs is learned from answers.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use heatsink_env::{Env, MonotonicInstant, RealEnv};

/// What was not sent while nobody could send is not made up for beyond this.
const BURST: Duration = Duration::from_millis(500);
/// How much of what is known of the cost one answer replaces.
const NEWS: f64 = 0.02;

/// Gives each write its moment.
pub struct Pace {
    env: Arc<RealEnv>,
    /// Write units a second; 0: no bound.
    rate: f64,
    state: Mutex<State>,
}

struct State {
    next: MonotonicInstant,
    /// Units of one item's write.
    cost: f64,
}

impl Pace {
    /// Nobody has written yet.
    pub fn new(env: Arc<RealEnv>, rate: f64) -> Self {
        let state = Mutex::new(State { next: env.now(), cost: 1.0 });
        Pace { env, rate, state }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until so many items may be written.
    pub async fn turn(&self, items: usize) {
        if self.rate <= 0.0 {
            return;
        }
        let now = self.env.now();
        let wait = {
            let mut state = self.state();
            let at = if now.since(state.next) > BURST { now } else { state.next };
            let items = f64::from(u32::try_from(items).unwrap_or(u32::MAX));
            state.next = at + Duration::from_secs_f64(items * state.cost / self.rate);
            at.since(now)
        };
        self.env.sleep(wait).await;
    }

    /// So many items were written for so many units.
    pub fn learn(&self, items: usize, units: f64) {
        if items > 0 && units > 0.0 {
            let of_one = units / f64::from(u32::try_from(items).unwrap_or(u32::MAX));
            let mut state = self.state();
            state.cost = (1.0 - NEWS) * state.cost + NEWS * of_one;
        }
    }
}
