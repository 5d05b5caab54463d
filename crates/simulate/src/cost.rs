//! The monthly cost of a run: us-east-1, Standard class, prices since 2024-11-01
//! (docs/explain/simulator.md#what-comes-out).
//!
//! Storage, backups and data transfer are left out: remedies do not change them much.

use heatsink_physics::Mode;

use crate::scenario::{Kind, Remedy};

/// US dollars per write request unit.
pub const WRITE_REQUEST: f64 = 0.625e-6;
/// US dollars per read request unit.
pub const READ_REQUEST: f64 = 0.125e-6;
/// US dollars per provisioned write unit and hour.
pub const WRITE_HOUR: f64 = 0.00065;
/// US dollars per provisioned read unit and hour.
pub const READ_HOUR: f64 = 0.00013;
/// Hours of a month, as AWS counts them.
pub const MONTH_HOURS: f64 = 730.0;

/// US dollars per cache node and hour where the scenario does not say: an assumption, about a small
/// memory-optimised node.
const NODE_HOUR: f64 = 0.27;

/// A month of a table or index that takes so many units per second.
pub(crate) fn month(mode: Mode, reads: f64, writes: f64) -> f64 {
    match mode {
        Mode::Provisioned { read, write } => {
            (read as f64 * READ_HOUR + write as f64 * WRITE_HOUR) * MONTH_HOURS
        }
        Mode::OnDemand { .. } => (reads * READ_REQUEST + writes * WRITE_REQUEST) * MONTH_HOURS * 3_600.0,
    }
}

/// A month of what the remedy adds besides.
pub(crate) fn extra(remedy: Option<&Remedy>) -> f64 {
    let Some(remedy) = remedy.filter(|remedy| remedy.kind == Kind::ReadCache) else { return 0.0 };
    let nodes = remedy.nodes.map_or(3, |nodes| nodes.0);
    nodes as f64 * remedy.node_usd_per_hour.map_or(NODE_HOUR, |rate| rate.0) * MONTH_HOURS
}
