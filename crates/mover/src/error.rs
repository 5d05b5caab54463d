//! Why a key was not resharded, or not to the end.

use heatsink_control::claim::ClaimError;
use heatsink_dynamo::Error;

/// Why a key was not resharded, or not to the end.
#[derive(Debug)]
pub enum ReshardError {
    /// It is not possible as asked; nothing was changed.
    Usage(String),
    /// It stopped. The message says what to do next.
    Stopped(String),
    /// Another run, or another key of the table, is at work. Later it is possible.
    Busy(String),
    /// It was cancelled, and the key is laid out as before.
    Cancelled(String),
    /// The store failed. Run it again: it goes on where it stopped.
    Store(Error),
}

/// It is not possible as asked.
pub(crate) fn usage<T>(problem: impl Into<String>) -> Result<T, ReshardError> {
    Err(ReshardError::Usage(problem.into()))
}

impl std::fmt::Display for ReshardError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ReshardError::Usage(problem)
            | ReshardError::Stopped(problem)
            | ReshardError::Busy(problem)
            | ReshardError::Cancelled(problem) => f.write_str(problem),
            ReshardError::Store(error) => {
                write!(f, "The store failed: {error}. Run this again: it goes on where it stopped")
            }
        }
    }
}

impl std::error::Error for ReshardError {}

impl From<Error> for ReshardError {
    fn from(error: Error) -> Self {
        ReshardError::Store(error)
    }
}

impl From<ClaimError> for ReshardError {
    fn from(error: ClaimError) -> Self {
        match error {
            ClaimError::TakenOver(why) => ReshardError::Busy(why),
            ClaimError::Store(error) => ReshardError::Store(error),
        }
    }
}
