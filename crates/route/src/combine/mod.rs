//! Writes of one item that go to the store as one: which writes can be combined, the request that
//! they become, and each client's own answer out of the one answer.
//!
//! | writes | become | a client's answer |
//! |---|---|---|
//! | puts and deletes | the last of them | empty |
//! | updates that add to numbers, or set values | one update: sums, and the last values | what it would have seen in its place of the order |
//!
//! Writes with a condition, with other clauses, or that ask for what was there before are sent
//! alone. So is a write that would hide the error of one before it: a put behind an update, a SET
//! behind an ADD of the same attribute.
//!
//! What lies between the writes of one call is never stored. It is held neither against the 38
//! digits of a number nor, by up to [`LOST`] bytes, against the size of an item.
//!
//! Not here: who waits for whom, and what is sent when (`heatsink_gateway`).

mod answers;
mod attribute;
mod combined;
mod read;

pub use combined::{Combined, Step};
pub use read::ItemWrite;

/// How many bytes of values that others replace one call may leave out.
const LOST: usize = 1024;

/// The most attributes of one combined update: its expression stays within 4 KB.
const ATTRIBUTES: usize = 50;
