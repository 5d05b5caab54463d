//! Keys, and values of indexes, that are resharded while gateways serve them: by the command, by intents, without being asked for, in a table that is
//! made again meanwhile.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod automatic;
mod command;
mod counter;
mod online;
mod recreated;
mod town;
mod value;
mod value_online;
