//! What those who act on heat are told by a gateway.
//!
//! Not here: how it is counted (`heatsink-gateway`), who acts (`heatsink-workers`).

use crate::KeyLoad;
use crate::policy::Partitions;

/// What tells which keys are hot at this gateway.
pub trait HeatSource: Send + Sync {
    /// The keys and the values of indexes with the highest loads of the last full second.
    fn hottest(&self) -> Vec<KeyLoad>;

    /// The partitions of a table, or of a global index, where the store tells.
    fn partitions(&self, _table: &str, _index: Option<&str>) -> Option<Box<dyn Partitions + Send + Sync>> {
        None
    }
}
