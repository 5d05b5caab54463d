//! The verifier: each rule by itself, changed requests, other signers, and time.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod changes;
mod clients;
mod draft;
mod host;
mod oracle;
mod rules;
mod secrecy;
mod timing;
