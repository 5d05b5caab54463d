//! Requests that a test has planned something for, or waits for.

use futures::channel::oneshot;
use heatsink_dynamo::Operation;

use super::weather::Fate;

/// Requests of a process that hold a text; of any process whose name begins so.
pub(super) struct Requests {
    pub(super) process: String,
    pub(super) operation: Operation,
    pub(super) text: String,
}

impl Requests {
    pub(super) fn of(process: &str, operation: Operation, text: &str) -> Self {
        Requests { process: process.to_owned(), operation, text: text.to_owned() }
    }

    pub(super) fn hold(&self, process: &str, operation: Operation, text: &str) -> bool {
        process.starts_with(&self.process) && self.operation == operation && text.contains(&self.text)
    }
}

/// What a test has planned for the next so many of these requests.
pub(super) struct Planned {
    pub(super) requests: Requests,
    pub(super) fate: Fate,
    pub(super) times: usize,
}

/// Somebody waits for the moment at which a process sends a request.
pub(super) struct Awaited {
    pub(super) process: String,
    pub(super) text: String,
    /// How many requests that hold the text come before it.
    pub(super) before: usize,
    /// It never arrives.
    pub(super) vanishes: bool,
    /// Is told which process it is.
    pub(super) sent: oneshot::Sender<String>,
}
