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
    /// The store failed. Run it again: it goes on where it stopped.
    Store(Error),
}

impl std::fmt::Display for ReshardError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ReshardError::Usage(problem) | ReshardError::Stopped(problem) => f.write_str(problem),
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
            ClaimError::TakenOver(why) => ReshardError::Stopped(why),
            ClaimError::Store(error) => ReshardError::Store(error),
        }
    }
}
