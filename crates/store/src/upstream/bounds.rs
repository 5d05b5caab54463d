//! The limits on an upstream: times, and the number of connections.

use std::time::Duration;

/// How long an upstream may take, and how much of it is used at once.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// How long the upstream may take to accept a connection, TLS included. A request waits as long
    /// for one of the connections.
    pub connect: Duration,
    /// How long the upstream may take from the sending of a request to the last byte of its answer.
    pub answer: Duration,
    /// The most connections that are open at once to the tables' host. The streams' host has as
    /// many of its own.
    pub connections: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Bounds { connect: Duration::from_secs(5), answer: Duration::from_secs(20), connections: 512 }
    }
}
