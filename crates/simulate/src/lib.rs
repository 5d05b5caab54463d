//! Scenarios in virtual time.
//!
//! A scenario names tables, workloads and remedies; each remedy is one run of the same workloads against the partitions of
//! [`heatsink_physics`], the very model that the embedded store runs in real time. Out come counts, costs, latencies and pictures.
//!
//! Sans-IO: text in, [`Report`] out. Not here: files, terminals, PNG (the command line has them); requests on the wire.

mod compile;
mod cost;
mod diagnosis;
mod draw;
mod each;
mod engine;
mod latency;
mod model;
pub mod numbers;
mod offer;
mod picker;
mod picture;
mod record;
mod report;
mod retries;
pub mod scenario;
mod schedule;
pub mod shipped;
#[cfg(test)]
mod tests;
pub mod trace;
mod turns;
mod words;

pub use report::{Load, Point, Report, Run, simulate};
