//! Calls that become one. Writes of one item: their effects and answers are those of the same
//! writes one after the other, and an error goes to whom it belongs. Reads: no client misses its
//! own write.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(clippy::disallowed_methods, reason = "the store answers in real time")]

mod fold;
mod gone;
mod history;
mod measure;
mod reads;
mod slow;
mod together;
mod writes;
