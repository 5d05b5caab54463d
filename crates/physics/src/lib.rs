//! DynamoDB's partitions: key ranges, ceilings, replicas, token buckets, throttles, splits.
//! Sans-IO, on an injected clock.
//!
//! One model, two clocks: the embedded store runs it in real time, a simulator in virtual time.
//! Time is an argument everywhere: nanoseconds on any monotonic clock, the same one for all calls
//! on one [`Tables`]. What is left to chance is drawn from [`Rules::seed`].
//!
//! A request must pass two gates (docs/explain/partitions.md#two-gates): the bucket of its table or
//! index, and the bucket of the partition that its key falls into. Both are post-paid: see
//! [`Tables::offer`]. While time passes, hot partitions split and on-demand capacity grows;
//! [`Tables::take_events`] tells.
//!
//! ```
//! use heatsink_physics::{Access, Batch, Demand, Mode, KeyRange, Rules, Tables, Units, position};
//!
//! let mut tables = Tables::new(Rules { seed: 1, ..Rules::default() });
//! let votes = tables.create(0, "votes".into(), Mode::ON_DEMAND);
//! let write = Demand {
//!     on: votes,
//!     access: Access::Write,
//!     place: KeyRange::key(position(b"song-1")),
//!     units: Units::ONE,
//! };
//! assert!(tables.offer(0, &[write]).is_ok());
//! // 5,000 writes/s on one key for ten seconds: its partition takes 1,000 a second, and half a second's burst.
//! let tally = tables.offer_batch(Batch { first: 1, step: 200_000, count: 50_000 }, &[write]);
//! assert_eq!((tally.admitted, tally.throttled()), (10_499, 39_501));
//! ```
//!
//! Not here: what a request touches and what it cost (the store knows), error bodies.

mod batch;
mod bucket;
mod capacity;
mod ceilings;
mod demand;
mod entry;
mod event;
mod growth;
mod hash;
mod heat;
mod hit_counts;
mod key_position;
mod lifecycle;
mod meter;
mod mode;
mod partition;
mod partition_load;
mod permit;
mod persistence;
mod quotas;
mod random;
mod ranges;
mod resource;
mod rules;
mod same_instant;
mod split;
mod stored;
mod tables;
mod units;

pub use batch::{Batch, Tally};
pub use ceilings::{PARTITION_BYTES, PARTITION_READS, PARTITION_WRITES};
pub use demand::{Access, Cause, Demand, ResourceId, Throttle};
pub use entry::{Entry, EntryWrite};
pub use event::{Event, EventKind};
pub use hash::position;
pub use key_position::{KeyPosition, KeyRange, SortKey};
pub use mode::{Mode, QUOTA};
pub use partition::{Health, PartitionSnapshot};
pub use partition_load::PartitionLoad;
pub use persistence::{NotPartitions, SavedPartitions, SavedTable};
pub use quotas::{Plan, QuotaExceeded, Quotas};
pub use resource::ResourceSnapshot;
pub use rules::{HOT, Rules, SUSTAINED_SECONDS};
pub use split::Refusal;
pub use stored::CollectionFull;
pub use tables::Tables;
pub use units::Units;
