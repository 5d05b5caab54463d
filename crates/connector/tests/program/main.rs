//! The SDK for Rust in a program that holds the gateway: what it is answered, how long it waits,
//! what becomes of calls that it gives up, how the gateway ends.
//!
//! Not here: that answers are those of the other door (`clients/rust/tests/sdk`).

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking, its helper functions included"
)]
#![allow(clippy::disallowed_methods, reason = "the SDK keeps real time")]

mod answers;
mod double;
mod errors;
mod local;
mod stage;
mod stop;
mod waits;
