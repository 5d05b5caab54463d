//! Test doubles that the tests, benchmarks and fuzz targets of several crates share.
//!
//! Not here: code that the product uses; doubles that only one crate needs.

mod stepped;

pub use stepped::{Step, Stepped};
