//! An environment that a test controls: time moves only when the test advances it, and randomness
//! follows a seed.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use futures::channel::oneshot;
use futures::future::BoxFuture;

use crate::{Env, MonotonicInstant};

/// 2026-01-01T00:00:00Z, in milliseconds since 1970.
const BEGUN: u64 = 1_767_225_600_000;

/// A clock that stops until [`ManualEnv::advance`], and seeded randomness. Clones share one state.
#[derive(Clone)]
pub struct ManualEnv {
    state: Arc<Mutex<State>>,
}

struct State {
    now: MonotonicInstant,
    random: fastrand::Rng,
    sleepers: Vec<(MonotonicInstant, oneshot::Sender<()>)>,
}

impl ManualEnv {
    /// Starts at moment zero and at 2026-01-01T00:00:00Z, with randomness from `seed`.
    pub fn seeded(seed: u64) -> Self {
        ManualEnv {
            state: Arc::new(Mutex::new(State {
                now: MonotonicInstant(0),
                random: fastrand::Rng::with_seed(seed),
                sleepers: Vec::new(),
            })),
        }
    }

    /// Moves both clocks on and wakes whoever slept until then.
    pub fn advance(&self, by: Duration) {
        let mut state = self.state();
        state.now = state.now + by;
        let now = state.now;
        let (due, asleep) = std::mem::take(&mut state.sleepers).into_iter().partition(|(at, _)| *at <= now);
        state.sleepers = asleep;
        drop(state);
        let due: Vec<(MonotonicInstant, oneshot::Sender<()>)> = due;
        for (_, wake) in due {
            // A sleeper that was dropped no longer listens; that is fine.
            let _ = wake.send(());
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Env for ManualEnv {
    fn now(&self) -> MonotonicInstant {
        self.state().now
    }

    fn unix_millis(&self) -> u64 {
        // From the moment: steps of less than a millisecond add up.
        BEGUN + self.state().now.0 / 1_000_000
    }

    fn random(&self) -> u64 {
        self.state().random.u64(..)
    }

    fn sleep(&self, pause: Duration) -> BoxFuture<'static, ()> {
        let (wake, woken) = oneshot::channel();
        let mut state = self.state();
        let at = state.now + pause;
        state.sleepers.push((at, wake));
        woken.map(|_| ()).boxed()
    }
}

/// A [`ManualEnv`] on which sleeping takes no time but moves the clock on.
#[derive(Clone)]
pub struct HastyEnv(pub ManualEnv);

impl Env for HastyEnv {
    fn now(&self) -> MonotonicInstant {
        self.0.now()
    }

    fn unix_millis(&self) -> u64 {
        self.0.unix_millis()
    }

    fn random(&self) -> u64 {
        self.0.random()
    }

    fn sleep(&self, pause: Duration) -> BoxFuture<'static, ()> {
        self.0.advance(pause);
        std::future::ready(()).boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleepers_wake_when_their_time_comes_and_not_before() {
        let env = ManualEnv::seeded(1);
        let mut sleep = env.sleep(Duration::from_secs(2));
        env.advance(Duration::from_secs(1));
        assert!((&mut sleep).now_or_never().is_none());
        env.advance(Duration::from_secs(1));
        assert!(sleep.now_or_never().is_some());
    }

    #[test]
    fn the_time_of_day_goes_on_in_small_steps_too() {
        let env = ManualEnv::seeded(1);
        for _ in 0..10_000 {
            env.advance(Duration::from_micros(200));
        }
        assert_eq!(env.unix_millis(), BEGUN + 2_000);
    }

    #[test]
    fn one_seed_one_sequence() {
        let draw = |seed| {
            let env = ManualEnv::seeded(seed);
            (0..8).map(|_| env.random()).collect::<Vec<_>>()
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
    }
}
