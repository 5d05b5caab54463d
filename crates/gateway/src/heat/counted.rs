//! Requests that are counted: which they are is drawn before they are sent, so that the store can
//! be asked what some of them cost.
//!
//! Not here: asking (`asked_capacity`), which requests are drawn (`heatsink_heat::draw`).

use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use heatsink_dynamo::{Operation, json};
use heatsink_heat::draw::{Chosen, Draw};

use super::asked_capacity::AskedRequest;

/// A request that was drawn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DrawnRequest {
    pub(super) draw: Draw,
    /// Which of its items are counted.
    pub(super) chosen: Chosen,
    /// Whether the store is asked what it costs.
    pub(super) asks: bool,
}

impl DrawnRequest {
    /// Whether the request is sent in another way than it came: often none of a batch's items is
    /// drawn.
    pub(crate) fn is_asked(&self, operation: Operation) -> bool {
        self.asks || may_have_token(operation)
    }

    /// The request, or a call that it takes, on its way to the store.
    pub(crate) fn asking(&self, operation: Operation, body: Bytes) -> AskedRequest {
        // Whoever repeats a transaction with its token has to send the same request. DynamoDB does
        // not say whether this member belongs to it, so it is in all of them, drawn or not.
        let repeats = || {
            may_have_token(operation)
                && json::member(&body, "ClientRequestToken").is_ok_and(|token| token.is_some())
        };
        if self.asks || repeats() { AskedRequest::new(operation, body) } else { AskedRequest::unasked(body) }
    }
}

const fn may_have_token(operation: Operation) -> bool {
    matches!(operation, Operation::TransactWriteItems | Operation::ExecuteTransaction)
}

/// What the calls of one request cost: values of `ConsumedCapacity`.
#[derive(Debug, Default)]
pub(crate) struct Figures(Mutex<Vec<Bytes>>);

impl Figures {
    /// Adds those of a call.
    pub(crate) fn add(&self, figures: Option<Bytes>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(figures);
    }

    /// Those of all calls.
    pub(crate) fn all(self) -> Vec<Bytes> {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}
