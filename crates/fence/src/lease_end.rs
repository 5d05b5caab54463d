//! Until when a lease lets requests be sent.

use heatsink_env::MonotonicInstant;

/// The end of a lease. From that moment on nothing is sent under it, and no result is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LeaseEnd(pub MonotonicInstant);

impl LeaseEnd {
    /// Whether a request may be sent at `now`.
    pub fn allows(self, now: MonotonicInstant) -> bool {
        now < self.0
    }
}
