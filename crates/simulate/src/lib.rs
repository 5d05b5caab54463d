//! Simulates scenarios in virtual time.
//!
//! A scenario names tables, workloads and remedies. Each remedy is one run of the same workloads
//! against the partitions of [`heatsink_physics`], the model that the embedded store runs in real
//! time. The results are counts, costs, latencies and pictures.
//!
//! Sans-IO: text in, [`Report`] out. Not here: files, terminals, PNG (the command line has them);
//! requests on the wire.

mod advised;
mod bounds;
mod cache;
mod combined;
mod compile;
mod cost;
mod counts;
mod diagnosis;
mod dispatch;
mod display;
mod draw;
mod engine;
mod interleave;
mod key_sampler;
mod key_traffic;
mod latency;
mod model;
pub mod numbers;
mod partitions;
mod picture;
mod read;
mod record;
mod recorded_capacity;
mod recorded_load;
mod recorded_scenario;
mod replay;
mod report;
mod retries;
mod sampled_requests;
pub mod scenario;
mod schedule;
pub mod shipped;
mod simulation;
mod sizes;
mod stream;
mod summary;
#[cfg(test)]
mod tests;

pub use picture::Recording;
pub use recorded_scenario::scenario_of_trace;
pub use report::{Load, Point, Report, Run};
pub use simulation::simulate;
