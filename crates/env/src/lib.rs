//! The only access to time, randomness and sleep; and to what the system says of other processes.
//!
//! All code that needs a clock, a random number or a pause takes an [`Env`]; clippy bans the
//! standard ones. A test passes a [`ManualEnv`] and controls all three, so one seed replays one
//! run.
//!
//! Not here: calendars, time zones, timeouts of sockets (they are hyper's and tokio's own).

mod manual;
mod processes;
mod real;

use std::ops::{Add, Sub};
use std::time::Duration;

use futures::future::BoxFuture;

pub use manual::{HastyEnv, ManualEnv};
pub use processes::{Processes, RealProcesses};
pub use real::RealEnv;

/// A point on the monotonic clock, in nanoseconds. The clock goes on while the machine is suspended
/// (`CLOCK_BOOTTIME`), because a lease must also expire while its holder is suspended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MonotonicInstant(pub u64);

impl MonotonicInstant {
    /// Time since `earlier`; zero if `earlier` is later.
    pub fn since(self, earlier: MonotonicInstant) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for MonotonicInstant {
    type Output = MonotonicInstant;
    fn add(self, by: Duration) -> MonotonicInstant {
        MonotonicInstant(self.0.saturating_add(u64::try_from(by.as_nanos()).unwrap_or(u64::MAX)))
    }
}

impl Sub<MonotonicInstant> for MonotonicInstant {
    type Output = Duration;
    fn sub(self, earlier: MonotonicInstant) -> Duration {
        self.since(earlier)
    }
}

/// Clock, randomness and sleep.
pub trait Env: Send + Sync + 'static {
    /// The monotonic clock.
    fn now(&self) -> MonotonicInstant;
    /// The wall clock: milliseconds since 1970-01-01T00:00:00Z. For signatures and records; never
    /// for intervals.
    fn unix_millis(&self) -> u64;
    /// A random number, uniform over all of `u64`. Not for secrets.
    fn random(&self) -> u64;
    /// Resolves after `pause`.
    fn sleep(&self, pause: Duration) -> BoxFuture<'static, ()>;
}
