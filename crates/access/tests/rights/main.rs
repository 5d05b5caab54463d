//! What clients may do: every operation, every way to name a table, against a second evaluator that
//! is as plain as can be; and what policies say that cannot be kept.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod cases;
mod clients;
mod matrix;
mod policies;
mod words;
