//! The demands of reads: of single requests, and of the items of batches and transactions.

use heatsink_dynamo::{Operation, json};
use heatsink_physics::{Access, Demand, KeyRange, Units};

use super::catalogue::TableInfo;
use super::locate;

/// The demand of a read of one table or index.
pub(super) fn single(operation: Operation, body: &[u8], table: &TableInfo) -> Vec<Demand> {
    let Ok([key, index, consistent]) = json::attributes_of(body, ["Key", "IndexName", "ConsistentRead"])
    else {
        return Vec::new();
    };
    let (access, units) = (read_access(consistent), read_bound(consistent));
    if operation == Operation::GetItem {
        return vec![read(key, table, access, units)];
    }
    // A local index lives in its table's partitions; one that does not exist is the store's to
    // refuse.
    let index = index.and_then(|name| json::string(name).ok()).and_then(|name| table.index(&name));
    let place = match (operation, index) {
        (Operation::Scan, _) => KeyRange::All,
        (_, Some(index)) => locate::query(body, &index.key),
        (_, None) => locate::query(body, &table.key),
    };
    vec![Demand { on: index.map_or(table.id, |index| index.id), access, place, units }]
}

/// The lower bound of a read: half a unit, or one if it is strongly consistent (AWS, "Read and
/// write operations").
pub(super) fn read_bound(consistent: Option<&[u8]>) -> Units {
    if consistent == Some(b"true") { Units::ONE } else { Units::HALF }
}

/// Which replicas may answer.
pub(super) fn read_access(consistent: Option<&[u8]>) -> Access {
    if consistent == Some(b"true") { Access::Strong } else { Access::Eventual }
}

/// A read of one item.
pub(super) fn read(key: Option<&[u8]>, table: &TableInfo, access: Access, units: Units) -> Demand {
    Demand { on: table.id, access, place: locate::primary_key(key, &table.key), units }
}
