//! Keys that are resharded while gateways serve them: by the command, by intents, in a table that is made again meanwhile.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod command;
mod online;
mod recreated;
