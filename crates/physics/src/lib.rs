//! DynamoDB's partitions: key ranges, ceilings, token buckets, throttles. Sans-IO, on an injected clock.
//!
//! One model, two clocks: the embedded store runs it in real time, a simulator in virtual time. Time is an
//! argument everywhere: nanoseconds on any monotonic clock, the same one for all calls on one [`Tables`].
//!
//! A request must pass two gates (PHYSICS §5): the bucket of its table or index, and the bucket of the partition
//! that its key falls into. Both are post-paid: see [`Tables::admit`].
//!
//! Not here: what a request touches and what it cost (the store knows), error bodies, splits, replicas.

mod bucket;
mod demand;
mod hash;
mod meter;
mod mode;
mod partition;
mod resource;
mod tables;
mod units;

pub use demand::{Access, Cause, Demand, Place, Throttle};
pub use hash::position;
pub use mode::{Mode, QUOTA};
pub use partition::{PARTITION_READS, PARTITION_WRITES, PartitionSnapshot};
pub use resource::ResourceSnapshot;
pub use tables::Tables;
pub use units::Units;
