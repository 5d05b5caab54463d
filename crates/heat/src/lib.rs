//! Advice on hot keys. So far: how many shards a key needs, how sure that is, and what its reads will cost.
//!
//! Sans-IO: figures in, figures out. Not here: who is hot (nothing measures that yet), and layouts themselves (`layout`).

mod crowding;
mod shards;

pub use crowding::some_partition_holds;
pub use shards::{Advice, Asked, Costs, Row, advise, units_per_write};
