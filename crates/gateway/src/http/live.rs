//! What of a listener may change while it serves: all of it is one value, which is replaced as one.
//!
//! Not here: where a new one comes from, and what is checked before (the command line).

use std::sync::Arc;

use arc_swap::{ArcSwap, Guard};

use super::cors::Origins;
use super::hosts::Hosts;
use super::tls::ServerTls;
use crate::Limits;

/// What is in force at a listener.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The names under which it is asked.
    pub hosts: Hosts,
    /// The web pages that may ask.
    pub origins: Origins,
    /// TLS, where clients speak it.
    pub tls: Option<ServerTls>,
    /// The most connections ([`Limits::connections`]).
    pub connections: usize,
    /// The most requests in progress ([`Limits::requests`]).
    pub requests: usize,
}

impl Settings {
    /// Without TLS, with the numbers of these limits.
    pub fn plain(hosts: Hosts, limits: &Limits) -> Self {
        let (connections, requests) = (limits.connections, limits.requests);
        Settings { hosts, origins: Origins::default(), tls: None, connections, requests }
    }
}

/// The settings in force; copies share them. A connection begins with those of its time; a request
/// of an older connection sees the newest hosts and limits.
#[derive(Clone, Debug)]
pub struct Live(Arc<ArcSwap<Settings>>);

impl Live {
    /// With these in force.
    pub fn new(settings: Settings) -> Self {
        Live(Arc::new(ArcSwap::from_pointee(settings)))
    }

    /// Puts others in force.
    pub fn replace(&self, settings: Settings) {
        self.0.store(Arc::new(settings));
    }

    /// The TLS in force now.
    pub fn tls(&self) -> Option<ServerTls> {
        self.get().tls.clone()
    }

    /// Those in force now.
    pub(super) fn get(&self) -> Guard<Arc<Settings>> {
        self.0.load()
    }
}
