//! Why a worker did not start, or not come to its end.

use heatsink_control::claim::ClaimError;
use heatsink_dynamo::Error;

/// Why a worker did not start, or not come to its end.
#[derive(Debug)]
pub enum WorkerError {
    /// It is not possible as asked; nothing was changed.
    Usage(String),
    /// It stopped. The message says what to do next.
    Stopped(String),
    /// Another run, or another change of the table, is at work. Later it is possible.
    Busy(String),
    /// It was cancelled, and everything is as it was.
    Cancelled(String),
    /// The store failed. Run it again: it goes on where it stopped.
    Store(Error),
}

/// It is not possible as asked.
pub(crate) fn usage<T>(problem: impl Into<String>) -> Result<T, WorkerError> {
    Err(WorkerError::Usage(problem.into()))
}

impl WorkerError {
    /// The same, with more to say.
    pub(crate) fn saying(mut self, more: &str) -> Self {
        match &mut self {
            WorkerError::Usage(text)
            | WorkerError::Stopped(text)
            | WorkerError::Busy(text)
            | WorkerError::Cancelled(text) => text.push_str(more),
            WorkerError::Store(error) => error.message.get_or_insert_default().push_str(more),
        }
        self
    }
}

impl std::fmt::Display for WorkerError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            WorkerError::Usage(problem)
            | WorkerError::Stopped(problem)
            | WorkerError::Busy(problem)
            | WorkerError::Cancelled(problem) => f.write_str(problem),
            WorkerError::Store(error) => {
                write!(f, "The store failed: {error}. Run this again: it goes on where it stopped")
            }
        }
    }
}

impl std::error::Error for WorkerError {}

impl From<Error> for WorkerError {
    fn from(error: Error) -> Self {
        WorkerError::Store(error)
    }
}

impl From<ClaimError> for WorkerError {
    fn from(error: ClaimError) -> Self {
        match error {
            ClaimError::TakenOver(why) => WorkerError::Busy(why),
            ClaimError::Store(error) => WorkerError::Store(error),
        }
    }
}
