//! Makes the registry: by it the gateways find each other, and without it nothing can be done for a
//! hot key.
//!
//! Not here: what lies in it (`heatsink_control::registry`).

use std::time::Duration;

use heatsink_control::Control;
use heatsink_control::registry::Registry;
use heatsink_env::MonotonicInstant;

/// How long after it could not be made it is tried again.
const RETRY: Duration = Duration::from_secs(10);
/// How long after a warning there is another one.
const AGAIN: Duration = Duration::from_secs(600);

/// Whether the registry is made.
#[derive(Default)]
pub(super) struct Made {
    is_made: bool,
    tried: Option<MonotonicInstant>,
    warned: Option<MonotonicInstant>,
}

impl Made {
    /// Makes it, if it is not there. Says whether it is.
    pub async fn make(&mut self, control: &Control, registry: &Registry) -> bool {
        let now = registry.env().now();
        if self.is_made || self.tried.is_some_and(|tried| now.since(tried) < RETRY) {
            return self.is_made;
        }
        self.tried = Some(now);
        match control.changer().make_registry().await {
            Ok(()) => self.is_made = true,
            Err(error) if self.warned.is_none_or(|warned| now.since(warned) >= AGAIN) => {
                self.warned = Some(now);
                let name = registry.name();
                tracing::warn!(
                    "hot keys are left alone, and other gateways are not told of them: the registry table {name} cannot be made: {error}. Let this \
                     gateway's credentials create that table, or create it by `heatsink freeze --thaw --upstream URL` with credentials that may"
                );
            }
            Err(error) => tracing::debug!("the registry cannot be made: {error}"),
        }
        self.is_made
    }
}
