//! A clock that runs slower than the machine's: so two cores offer what they could not in real time.
//!
//! Gateways, partitions, workers and the load all have this clock. With factor 4 a load of 40,000
//! requests a second asks 10,000 of the machine, and a lease of 5 s lasts 20. What is measured is
//! what a machine four times as fast would show.
//!
//! Not here: the machine's own clock (`heatsink_env::RealEnv`).

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use heatsink_env::{Env, MonotonicInstant};

/// An environment whose seconds take `factor` seconds.
pub struct Slow {
    inner: Arc<dyn Env>,
    factor: u32,
    began: u64,
}

impl Slow {
    /// Slows a clock down; `factor` is at least 1.
    pub fn new(inner: Arc<dyn Env>, factor: u32) -> Self {
        Slow { began: inner.unix_millis(), factor: factor.max(1), inner }
    }
}

impl Env for Slow {
    fn now(&self) -> MonotonicInstant {
        MonotonicInstant(self.inner.now().0 / u64::from(self.factor))
    }

    fn unix_millis(&self) -> u64 {
        self.began + self.inner.unix_millis().saturating_sub(self.began) / u64::from(self.factor)
    }

    fn random(&self) -> u64 {
        self.inner.random()
    }

    fn sleep(&self, pause: Duration) -> BoxFuture<'static, ()> {
        self.inner.sleep(pause.saturating_mul(self.factor))
    }
}

#[cfg(test)]
mod tests {
    use heatsink_env::ManualEnv;

    use super::*;

    #[test]
    fn an_hour_takes_four() {
        let real = Arc::new(ManualEnv::seeded(1));
        let slow = Slow::new(real.clone(), 4);
        let (from, wall) = (slow.now(), slow.unix_millis());
        real.advance(Duration::from_secs(4 * 3_600));
        assert_eq!(slow.now().since(from), Duration::from_secs(3_600));
        assert_eq!(slow.unix_millis() - wall, 3_600_000);
    }
}
