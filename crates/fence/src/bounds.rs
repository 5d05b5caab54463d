//! The time bounds of the fence.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Time bounds. Gateways of one store may differ: a registration tells its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Bounds {
    /// How long after a read of the head a gateway may send requests. An outage of the registry
    /// that is shorter than this stops no gateway. A gateway that died delays a change by this and
    /// [`straggler`](Self::straggler).
    pub lease: Duration,
    /// How often a gateway writes its registration. Reads of the head prolong a lease no further
    /// than this past the last registration that the store answered.
    pub heartbeat: Duration,
    /// How often a gateway reads the head. With several gateways a step takes about this long.
    pub poll: Duration,
    /// How late a request may take effect that was sent and never answered. An assumption about the
    /// network: a client cannot enforce it.
    pub straggler: Duration,
}

impl Bounds {
    /// The default bounds.
    pub const DEFAULT: Bounds = Bounds {
        lease: Duration::from_secs(60),
        heartbeat: Duration::from_secs(12),
        poll: Duration::from_millis(2_500),
        straggler: Duration::from_secs(30),
    };

    /// No bound is longer: none needs to be, and sums of bounds are times.
    pub const LONGEST: Duration = Duration::from_secs(86_400);

    /// The lease of a gateway that sees no registry. It is not registered, so nobody can read its
    /// bounds: this value is the same for all.
    pub const UNREGISTERED: Duration = Duration::from_secs(10);

    /// How long after a read of the head a gateway may send requests that depend on a key about to
    /// move. A gateway that died holds such a key up by this, not by [`lease`](Self::lease). While
    /// there are such requests the head is read [more often](Self::short_poll).
    pub fn short_lease(&self) -> Duration {
        (self.lease / 30).max(self.poll)
    }

    /// How often a gateway reads the head while requests depend on its short lease.
    pub fn short_poll(&self) -> Duration {
        self.poll / 25
    }

    /// The lease of a gateway that sees no registry: never longer than
    /// [`UNREGISTERED`](Self::UNREGISTERED).
    pub fn unregistered_lease(&self) -> Duration {
        self.lease.min(Bounds::UNREGISTERED)
    }

    /// How long a gateway without a heartbeat can still have an effect, counted from its last
    /// heartbeat.
    pub fn silence(&self) -> Duration {
        self.longest_lease().saturating_add(self.straggler)
    }

    /// How long a gateway without a heartbeat can still have a lease, counted from its last
    /// heartbeat.
    pub(crate) fn longest_lease(&self) -> Duration {
        self.heartbeat_patience().saturating_add(self.lease)
    }

    /// How long after an answered registration reads of the head still prolong the lease. One
    /// registration may be lost.
    pub(crate) fn heartbeat_patience(&self) -> Duration {
        self.heartbeat * 2
    }

    /// Checks that these bounds are consistent.
    ///
    /// # Errors
    /// The reason why they are not, for the operator.
    pub fn check(&self) -> Result<(), String> {
        let all = [self.lease, self.heartbeat, self.poll, self.straggler];
        if let Some(long) = all.into_iter().find(|bound| *bound > Bounds::LONGEST) {
            return Err(format!("{long:?} is longer than any bound: at most {:?}", Bounds::LONGEST));
        }
        if self.poll.is_zero() || self.heartbeat.is_zero() {
            return Err("`poll` and `heartbeat` must be longer than nothing".to_owned());
        }
        if self.lease < self.poll * 2 || self.lease < self.heartbeat * 2 {
            return Err(format!(
                "a lease of {:?} runs out between two reads of the registry: it must be at least twice `poll` ({:?}) and twice `heartbeat` ({:?})",
                self.lease, self.poll, self.heartbeat
            ));
        }
        Ok(())
    }
}

impl Default for Bounds {
    fn default() -> Self {
        Bounds::DEFAULT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_that_are_no_times_of_a_fence_are_refused() {
        let of = |change: fn(&mut Bounds)| {
            let mut bounds = Bounds::DEFAULT;
            change(&mut bounds);
            bounds
        };
        assert_eq!(Bounds::DEFAULT.check(), Ok(()));
        for unsound in [
            of(|bounds| bounds.lease = Duration::MAX),
            of(|bounds| bounds.straggler = Duration::MAX),
            of(|bounds| (bounds.heartbeat, bounds.lease) = (Duration::MAX, Duration::MAX)),
            of(|bounds| bounds.poll = Duration::MAX),
            of(|bounds| bounds.lease = Duration::ZERO),
            of(|bounds| bounds.poll = Duration::ZERO),
        ] {
            assert!(unsound.check().is_err(), "{unsound:?}");
        }
    }
}
