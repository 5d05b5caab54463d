//! The settings of a gateway's part in the fence.

use std::sync::Arc;

use heatsink_env::{Processes, RealProcesses};
use heatsink_fence::Bounds;

use crate::memory::Expectation;
use crate::rules::FenceSettings;

/// How a gateway takes part in changes of layouts.
#[derive(Clone, Debug)]
pub struct Fencing {
    /// The name of the registry's table.
    pub registry: String,
    /// The time bounds.
    pub bounds: Bounds,
    /// No other gateway uses the same store: none is registered, and none is waited for.
    pub exclusive: bool,
    /// Read-only: it is not registered, and records nothing. Its results may be out of date at
    /// once.
    pub observes: bool,
    /// It forwards requests as they are, or not at all: from the first sight of a registry on every
    /// request is refused.
    pub forwards: bool,
    /// This gateway's name for people, such as host and port.
    pub name: String,
    /// Whether this gateway carries out reshards that operators ask for, of keys and of values of
    /// indexes.
    pub carries: bool,
    /// Whether the store has to have its registry.
    pub expectation: Arc<Expectation>,
    /// Who tells whether the processes of other gateways have ended.
    pub processes: Arc<dyn Processes>,
}

impl Fencing {
    /// The only gateway of its store, as an embedded store has it.
    pub fn exclusive(settings: &FenceSettings) -> Self {
        // Nobody else changes anything, so the lease only decides how often this gateway checks
        // whether a registry was created after all.
        let lease = crate::table_cache::MAX_AGE;
        let bounds = Bounds { lease, heartbeat: lease / 2, poll: lease / 2, ..settings.bounds };
        Fencing {
            registry: settings.registry.clone(),
            bounds,
            exclusive: true,
            observes: false,
            forwards: false,
            name: String::new(),
            carries: false,
            expectation: settings.expectation.clone(),
            processes: Arc::new(RealProcesses),
        }
    }

    /// The same, of a gateway that carries out reshards.
    #[must_use]
    pub fn carrying(self) -> Self {
        Fencing { carries: true, ..self }
    }

    /// A command that only reads.
    pub fn observing(settings: &FenceSettings) -> Self {
        Fencing { observes: true, ..Fencing::exclusive(settings) }
    }

    /// A gateway that knows no layouts, and is registered nowhere. Others may use the same store:
    /// nobody relies on a new registry before each gateway that saw none has noticed it, or has let
    /// its lease run out ([`Bounds::UNREGISTERED`]).
    pub fn forwarding(settings: &FenceSettings) -> Self {
        Fencing { forwards: true, exclusive: false, ..Fencing::observing(settings) }
    }

    /// One of several gateways.
    pub fn shared(settings: &FenceSettings, name: &str) -> Self {
        Fencing {
            registry: settings.registry.clone(),
            bounds: settings.bounds,
            exclusive: false,
            observes: false,
            forwards: false,
            name: name.to_owned(),
            carries: false,
            expectation: settings.expectation.clone(),
            processes: Arc::new(RealProcesses),
        }
    }
}
