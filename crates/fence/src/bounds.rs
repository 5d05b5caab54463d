//! The time bounds of the fence.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How long things may take. Gateways of one store may differ: a registration tells its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Bounds {
    /// How long after a read of the head a gateway may send requests on the strength of it. A registry that cannot be reached for less
    /// than this stops nobody. A gateway that died delays a change by this and [`straggler`](Self::straggler).
    pub lease: Duration,
    /// How often a gateway writes its registration. Reads of the head alone prolong a lease no further than this past the last
    /// registration that the store answered.
    pub heartbeat: Duration,
    /// How often a gateway reads the head. With several gateways a step takes about this long.
    pub poll: Duration,
    /// How late a request may take effect that was already sent and never answered. An assumption about the network: a client cannot
    /// enforce it.
    pub straggler: Duration,
}

impl Bounds {
    /// What is configured where nothing is said.
    pub const DEFAULT: Bounds = Bounds {
        lease: Duration::from_secs(60),
        heartbeat: Duration::from_secs(12),
        poll: Duration::from_millis(2_500),
        straggler: Duration::from_secs(30),
    };

    /// The lease of a gateway that sees no registry. It is on no list, so nobody can read its bounds: this one is the same for all.
    pub const UNREGISTERED: Duration = Duration::from_secs(10);

    /// The lease of a gateway that sees no registry: never longer than [`UNREGISTERED`](Self::UNREGISTERED).
    pub fn unregistered_lease(&self) -> Duration {
        self.lease.min(Bounds::UNREGISTERED)
    }

    /// How long a gateway that shows no sign of life can still have an effect, counted from the last sign of life.
    pub fn silence(&self) -> Duration {
        self.heartbeat_patience().saturating_add(self.lease).saturating_add(self.straggler)
    }

    /// How long after an answered registration reads of the head still prolong the lease. One registration may be lost.
    pub(crate) fn heartbeat_patience(&self) -> Duration {
        self.heartbeat * 2
    }

    /// Why these bounds cannot hold, if they cannot.
    ///
    /// # Errors
    /// The reason, for whoever configured them.
    pub fn check(&self) -> Result<(), String> {
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
