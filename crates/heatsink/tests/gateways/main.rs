//! One or more gateways over the embedded store, in one process: what clients see of them. One
//! binary, so that their code is built once.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod adopt;
mod between_forms;
mod between_slots;
mod composite_index;
mod conflicts;
mod copies;
mod counter;
mod former_stream;
#[path = "../late/mod.rs"]
mod late;
mod missing_tables;
mod registry_tag;
mod scan_cursors;
mod strategies;
mod tailing_reader;
mod verify;
