//! A door: what answers at a listener, and what its connections share.
//!
//! Not here: the doors themselves (`front` for clients, `admin_door` for operators), connections
//! (`connection`).

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use heatsink_env::Env;
use http::{Request, Response};
use hyper::body::Incoming;

use super::answer::Body;
use super::exchange::Exchange;
use super::handshakes::Handshakes;
use super::live::Live;
use super::shown::Shown;
use super::slots::Slots;
use crate::Limits;
use crate::budget::Budget;
use crate::metrics::Wire;

/// Pause after a failed `accept`: the machine is out of file descriptors, and an immediate retry
/// would only use the processor.
pub(super) const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Answers the requests of a listener.
pub(super) trait Door: Send + Sync + 'static {
    /// What its connections share.
    fn shared(&self) -> &Shared;

    /// The answer to one request.
    fn answer(&self, request: Request<Incoming>, peer: &Peer) -> impl Future<Output = Response<Body>> + Send;

    /// Whether its listener is about to close, so that each answer ends its connection.
    fn is_stopping(&self) -> bool {
        false
    }

    /// Its listener accepts no connection any more.
    fn closes(&self) {}
}

/// What the connections of a listener share.
pub(super) struct Shared {
    pub(super) limits: Limits,
    /// What may change while it serves.
    pub(super) live: Live,
    /// Handshakes of TLS under way.
    pub(super) handshakes: Handshakes,
    /// How long a new connection may be silent, from its begin to the end of its first head;
    /// `None`: as long as between two requests ([`Limits::head_read`]).
    pub(super) first_head: Option<Duration>,
    pub(super) env: Arc<dyn Env>,
    pub(super) counts: Wire,
    /// Slots of requests in progress.
    pub(super) in_flight: Slots,
    pub(super) budget: Arc<Budget>,
}

impl Shared {
    pub(super) fn new(
        limits: Limits,
        live: Live,
        env: Arc<dyn Env>,
        budget: Arc<Budget>,
        counts: Wire,
    ) -> Self {
        let (in_flight, handshakes) = (Slots::new(counts.in_flight.clone()), Handshakes::default());
        Shared { limits, live, handshakes, first_head: None, env, counts, in_flight, budget }
    }
}

/// The connection of a request.
pub(super) struct Peer {
    /// Whether it exceeds the limit of connections.
    pub(super) surplus: bool,
    pub(super) exchange: Arc<Exchange>,
    /// The certificate that the client had to show.
    pub(super) shown: Option<Shown>,
}

impl Peer {
    /// Whether its connection has to end before its certificate does.
    pub(super) fn ends_soon(&self, shared: &Shared) -> bool {
        let now = || shared.env.unix_millis();
        self.shown.as_ref().is_some_and(|shown| shown.ends_soon(shared.limits.head_read, now()))
    }
}
