//! What became of a request, as the label `outcome` of metrics names it.

use heatsink_dynamo::{Error, Fault};

/// The names.
pub(crate) const OUTCOMES: [&str; 4] = ["ok", "throttled", "client_error", "server_error"];

/// The place among [`OUTCOMES`] of a request that was answered with this error, or without one.
pub(crate) fn outcome(error: Option<&Error>) -> usize {
    match error {
        None => 0,
        Some(error) if error.fault() == Fault::Server => 3,
        Some(error) if error.retryable() => 1,
        Some(_) => 2,
    }
}
