//! What the automatic mode is told by its gateway.
//!
//! Not here: how it is counted (`heatsink-gateway`).

use heatsink_heat::KeyLoad;
use heatsink_heat::policy::Partitions;

/// What tells which keys are hot at this gateway.
pub trait HeatSource: Send + Sync {
    /// The keys and the values of indexes with the highest loads of the last full second.
    fn hottest(&self) -> Vec<KeyLoad>;

    /// The partitions of a table, or of a global index, where the store tells.
    fn partitions(&self, _table: &str, _index: Option<&str>) -> Option<Box<dyn Partitions + Send + Sync>> {
        None
    }
}
