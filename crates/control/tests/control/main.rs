//! Rules, the registry and what is in force, before the embedded store. One binary: each would
//! compile that store anew.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

mod fence;
mod few_actions;
mod indexes_change;
mod keys_together;
mod known_keys;
mod look;
mod lost_records;
mod many;
mod pages;
mod put_back;
mod ranges;
mod registry;
mod restarts;
mod rules;
mod support;
mod unread;
