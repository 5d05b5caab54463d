//! The machine's own clock and randomness. The only file in Heatsink that may use them.

use std::cell::RefCell;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use rustix::time::{ClockId, clock_gettime};

use crate::{Env, MonotonicInstant};

/// The real environment: `CLOCK_BOOTTIME`, `CLOCK_REALTIME`, a per-thread generator, tokio's timer.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealEnv;

thread_local! {
    #[allow(clippy::disallowed_methods, reason = "this is the seam")]
    static RANDOM: RefCell<fastrand::Rng> = RefCell::new(fastrand::Rng::new());
}

fn nanos(clock: ClockId) -> u64 {
    let at = clock_gettime(clock);
    let seconds = u64::try_from(at.tv_sec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(u64::try_from(at.tv_nsec).unwrap_or(0))
}

impl Env for RealEnv {
    fn now(&self) -> MonotonicInstant {
        MonotonicInstant(nanos(ClockId::Boottime))
    }

    fn unix_millis(&self) -> u64 {
        nanos(ClockId::Realtime) / 1_000_000
    }

    fn random(&self) -> u64 {
        RANDOM.with_borrow_mut(|random| random.u64(..))
    }

    #[allow(clippy::disallowed_methods, reason = "this is the seam")]
    fn sleep(&self, pause: Duration) -> BoxFuture<'static, ()> {
        tokio::time::sleep(pause).boxed()
    }
}
