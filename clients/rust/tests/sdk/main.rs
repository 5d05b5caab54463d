//! The AWS SDK for Rust against gateways in this process. The answers are computed here, from what
//! was written.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking, its helper functions included"
)]

mod doors;
mod leaderboard;
mod signed;
mod stage;
