//! What is fuzzed: one function for each kind of bytes that come from outside. Each takes any bytes
//! and panics only if something is wrong: a panic in the code under test, or a property that does
//! not hold.
//!
//! `fuzz/run` gives them to libFuzzer, one after the other; `cargo test -p heatsink-fuzz` runs the
//! kept corpus and small changes of it. Not here: properties of well-formed input (the crates' own
//! property tests, the differential test).

#![allow(
    clippy::panic,
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a fuzz target reports by panicking"
)]

mod audit;
mod cursors;
mod expressions;
mod keys;
mod layouts;
mod partiql;
mod wire;

pub use audit::audit;
pub use cursors::cursors;
pub use expressions::expressions;
pub use keys::keys;
pub use partiql::partiql;
pub use wire::wire;

/// A target: any bytes.
pub type Target = fn(&[u8]);

/// Every target, by the name of its corpus folder.
pub const TARGETS: [(&str, Target); 6] = [
    ("wire", wire),
    ("expressions", expressions),
    ("partiql", partiql),
    ("cursors", cursors),
    ("keys", keys),
    ("audit", audit),
];
