//! How a gateway is listed in the registry.

use std::time::Duration;

use crate::{Bounds, Epoch};

/// A gateway as the registry lists it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Registration {
    /// Its id: random, and new in each process.
    pub gateway: String,
    /// Grows with each heartbeat.
    pub beat: u64,
    /// The epoch that it has acknowledged.
    pub epoch: Epoch,
    /// How long after that acknowledgement calls that it covers may still take effect.
    pub unclean: Duration,
    /// The bounds that the gateway keeps.
    pub bounds: Bounds,
    /// Somebody who could tell has seen that its process has ended: it sends nothing any more, and
    /// what it has sent takes effect within its straggler bound, or not at all.
    pub ended: bool,
}
