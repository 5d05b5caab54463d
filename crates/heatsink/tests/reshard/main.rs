//! Keys, and values of indexes, that are resharded while gateways serve them: by the command, by
//! intents, without being asked for, in a table that is made again meanwhile; and what that takes
//! of the partition that a key leaves.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod automatic;
mod automatic_many;
mod automatic_remedies;
mod buckets;
mod command;
mod counter;
mod drained;
mod events;
mod frozen;
mod here;
mod long_key;
mod lost_registry;
mod many_intents;
mod mirror;
mod number;
mod online;
mod recreated;
mod stall;
mod table_groups;
mod table_online;
mod table_turned;
mod together;
mod town;
mod value;
mod value_online;
