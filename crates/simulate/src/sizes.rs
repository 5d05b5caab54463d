//! How many bytes a workload's requests read or write, and how many capacity units that takes.

use heatsink_dynamo::capacity::{self, read_units, write_units};
use heatsink_physics::{Access, Units};

use crate::scenario::{Consistency, Operation, Size, Table, Workload};

/// Bytes of an item where the scenario does not say.
const ITEM_BYTES: u64 = 200;

/// Average bytes of a workload's items.
pub(crate) fn item_bytes(workload: &Workload) -> u64 {
    match &workload.item_bytes {
        None => ITEM_BYTES,
        Some(Size::Fixed(bytes)) => bytes.0,
        Some(Size::Between(between)) => u64::midpoint(between.from.0, between.to.0),
    }
}

/// All of a table in one Scan, in bytes.
pub(crate) fn scan_bytes(table: &Table) -> u64 {
    let items = table.items.map_or(0, |items| items.0);
    items.saturating_mul(table.item_bytes.map_or(ITEM_BYTES, |bytes| bytes.0))
}

/// What an operation of a workload does to capacity.
pub(crate) fn access(workload: &Workload, operation: Operation) -> Access {
    match (operation.writes(), workload.consistency) {
        (true, _) => Access::Write,
        (false, Consistency::Strong) => Access::Strong,
        (false, Consistency::Eventual) => Access::Eventual,
    }
}

/// Units for writing an item, or for reading so many bytes at once.
pub(crate) fn units(access: Access, bytes: u64) -> Units {
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    Units::from_f64(match access {
        Access::Write => write_units(0, bytes),
        Access::Strong => read_units(bytes, capacity::Consistency::Strong),
        Access::Eventual => read_units(bytes, capacity::Consistency::Eventual),
    })
}

/// The items that a scatter first requests of each shard: mean and three standard deviations of
/// Binomial(limit, 1/N).
pub(crate) fn share(limit: u64, shards: u64) -> u64 {
    let (limit_f, p) = (limit as f64, 1.0 / shards as f64);
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most the limit")]
    let share = (limit_f * p + 3.0 * (limit_f * p * (1.0 - p)).sqrt()).ceil() as u64;
    share.clamp(1, limit)
}
