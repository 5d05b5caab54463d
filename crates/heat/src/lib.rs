//! Hot keys: which are hot now, by the requests that a gateway sees; how many shards a key needs,
//! with the risk and the cost of reads; and which keys of a table need a rule, by its items.
//!
//! Sans-IO: accesses, figures and items in, figures out. Not here: what a request accesses
//! (`gateway`), and layouts (`layout`).

pub mod advice;
pub mod audit;
mod client_load;
pub mod costs;
mod crowding;
pub mod detect;
pub mod draw;
pub mod history;
mod key_load;
mod loads;
pub mod policy;
mod recent;
mod shards;
mod source;

pub use client_load::{ClientLoad, ClientLoads, ClientShare};
pub use crowding::{sharing_a_partition, some_partition_holds};
pub use key_load::{KeyLoad, Refused, SlotLoad};
pub use loads::{TOLD_KEYS, all_loads, shardable_loads};
pub use recent::Recent;
pub use shards::{Advice, Asked, Cause, Ceiling, Costs, DEFAULT_RISK, Row, advise, assess, units_per_write};
pub use source::HeatSource;

/// Write units a second that one partition takes.
#[allow(clippy::cast_precision_loss, reason = "1,000")]
const PARTITION_WRITES: f64 = heatsink_physics::PARTITION_WRITES as f64;
/// Read units a second that one partition takes.
#[allow(clippy::cast_precision_loss, reason = "3,000")]
const PARTITION_READS: f64 = heatsink_physics::PARTITION_READS as f64;
