//! Why a verification did not start or did not finish.

use heatsink_control::claim::ClaimError;
use heatsink_dynamo::Error;

use crate::items::item::NoKey;

/// Why a verification did not start or did not finish.
#[derive(Debug)]
pub enum VerifyError {
    /// It is not possible as requested. Nothing was read or changed.
    Usage(String),
    /// The table is not on record. Whether it was, and the record is lost, its items tell
    /// ([`Rebuild`](crate::Rebuild)).
    NotRecorded(String),
    /// It stopped: the table's record changed, or another worker took over.
    Stopped(String),
    /// The store failed.
    Store(Error),
}

impl std::fmt::Display for VerifyError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            VerifyError::Usage(problem)
            | VerifyError::NotRecorded(problem)
            | VerifyError::Stopped(problem) => f.write_str(problem),
            VerifyError::Store(error) => write!(f, "The store failed: {error}"),
        }
    }
}

impl std::error::Error for VerifyError {}

impl From<Error> for VerifyError {
    fn from(error: Error) -> Self {
        VerifyError::Store(error)
    }
}

impl From<NoKey> for VerifyError {
    fn from(no_key: NoKey) -> Self {
        VerifyError::Store(no_key.into())
    }
}

impl From<ClaimError> for VerifyError {
    fn from(error: ClaimError) -> Self {
        match error {
            ClaimError::TakenOver(what) => VerifyError::Stopped(what),
            ClaimError::Store(error) => VerifyError::Store(error),
        }
    }
}
