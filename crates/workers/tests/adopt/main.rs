//! Adoption and verification before the embedded store. One binary: each would compile that store
//! anew.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

mod adopt;
mod adopt_index;
mod adopt_index_shards;
mod adopt_template;
mod bad_registry;
mod claims;
mod leave;
mod support;
mod value_reshard;
mod verify;
