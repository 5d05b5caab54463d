//! HTTP in and out: the wire's headers, limits, deadlines, draining; and the life of a request between the wire and
//! the store.
//!
//! Not here: what a request means (`dynamo`), which shards it touches (`route`), where it is carried out (`store`).

mod absent;
mod absent_statements;
mod budget;
mod drive;
mod footprint;
mod gateway;
mod heavy;
pub mod http;
mod limits;
mod metrics;
mod service;
mod weight;

pub use gateway::{Builder, Gateway};
pub use limits::{Cost, Limits};
pub use service::{Partitions, Recorded, Service};
