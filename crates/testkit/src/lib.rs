//! Doubles that the tests, benchmarks and fuzz targets of several crates share.
//!
//! Not here: what the product uses; doubles that one crate alone needs.

mod stepped;

pub use stepped::{Step, Stepped};
