//! Histories of calls on one item, and a checker that says whether one DynamoDB item could have
//! answered so.
//!
//! A history is *linearizable* if every call can be given a moment between its invocation and its
//! return, so that the calls, carried out one after another in the order of these moments, give the
//! answers that were seen. A call whose outcome is unknown may take effect at any moment after its
//! invocation, or never.
//!
//! Linearizability is local: a history of many items is linearizable if the history of each item is
//! (Herlihy and Wing, 1990). So a test splits its calls by item and checks each item alone. A Query
//! or Scan is split too: each row is a read of its item. What this crate does not judge is
//! therefore whether the rows of one Query belong to one moment.
//!
//! Not here: who makes the calls and when (tests do), transactions over several items.

mod check;
mod item;

pub use check::{Call, LIMIT, Verdict, Violation, check, check_within};
pub use item::{Answer, Operation, State, Value};
