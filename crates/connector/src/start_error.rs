//! Why a gateway in a program does not start.

use heatsink_dynamo::Error;

/// Why a gateway does not start, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The rules are wrong, or cannot hold for what the store has on record. Change one of them.
    #[error("{0}")]
    Rules(String),
    /// The endpoint cannot be used: its URL, the region or the credentials. The message says which.
    #[error("the upstream cannot be used: {0}")]
    Upstream(String),
    /// The store could not be asked. It may be later where the error is retryable.
    #[error("the store does not answer: {0}")]
    Store(Error),
    /// Heatsink needs tokio, as the SDK does.
    #[error("no runtime of tokio is running here; start the gateway in one")]
    NoRuntime,
}

impl From<heatsink_control::StartError> for StartError {
    fn from(error: heatsink_control::StartError) -> Self {
        match error {
            heatsink_control::StartError::Rules(problem) => StartError::Rules(problem),
            heatsink_control::StartError::Store(error) => StartError::Store(error),
        }
    }
}
