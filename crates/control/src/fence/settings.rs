//! The settings of a gateway's part in the fence.

use heatsink_fence::Bounds;

use crate::rules::FenceSettings;

/// How a gateway takes part in changes of layouts.
#[derive(Clone, Debug)]
pub struct Fencing {
    /// The name of the registry's table.
    pub registry: String,
    /// How long things may take.
    pub bounds: Bounds,
    /// No other gateway stands before the same store: nobody is registered, and nobody is waited for.
    pub exclusive: bool,
    /// It only looks: it is on no list, and puts nothing on record. What it finds may be out of date at once.
    pub observes: bool,
    /// What people call this gateway: host and port, say.
    pub name: String,
}

impl Fencing {
    /// The only gateway of its store, as an embedded store has it.
    pub fn exclusive(settings: &FenceSettings) -> Self {
        // Nobody else changes anything, so the lease only says how often the registry is looked for that somebody else made after all.
        let lease = crate::table_cache::MAX_AGE;
        let bounds = Bounds { lease, heartbeat: lease / 2, poll: lease / 2, ..settings.bounds };
        Fencing {
            registry: settings.registry.clone(),
            bounds,
            exclusive: true,
            observes: false,
            name: String::new(),
        }
    }

    /// A command that only looks.
    pub fn observing(settings: &FenceSettings) -> Self {
        Fencing { observes: true, ..Fencing::exclusive(settings) }
    }

    /// One of several gateways.
    pub fn shared(settings: &FenceSettings, name: &str) -> Self {
        Fencing {
            registry: settings.registry.clone(),
            bounds: settings.bounds,
            exclusive: false,
            observes: false,
            name: name.to_owned(),
        }
    }
}
