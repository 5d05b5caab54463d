//! What a request touches: the demands of single requests, and of the items of batches and transactions.

use heatsink_dynamo::capacity::write_units;
use heatsink_dynamo::size::item_size;
use heatsink_dynamo::value::read_item;
use heatsink_dynamo::{Operation, json};
use heatsink_physics::{Access, Demand, Place, Units};

use super::catalogue::TableInfo;
use super::locate;

/// The demands of a request on one table or index.
pub(super) fn single(operation: Operation, body: &[u8], table: &TableInfo) -> Vec<Demand> {
    let names = ["Item", "Key", "IndexName", "ConsistentRead"];
    let Ok([item, key, index, consistent]) = json::attributes_of(body, names) else { return Vec::new() };
    let units = read_bound(consistent);
    match operation {
        Operation::PutItem => put(item, table, 1),
        Operation::UpdateItem | Operation::DeleteItem => vec![write(key, table, Units::ONE)],
        Operation::GetItem => vec![read(key, table, read_access(consistent), units)],
        Operation::Query | Operation::Scan => {
            // A local index lives in its table's partitions; one that does not exist is the store's to refuse.
            let index = index.and_then(|name| json::string(name).ok()).and_then(|name| table.index(&name));
            let place = match (operation, index) {
                (Operation::Scan, _) => Place::Even,
                (_, Some(index)) => locate::query(body, &index.key),
                (_, None) => locate::query(body, &table.key),
            };
            let on = index.map_or(table.id, |index| index.id);
            vec![Demand { on, access: read_access(consistent), place, units }]
        }
        _ => Vec::new(),
    }
}

/// The lower bound of a read: half a unit, or one if it is strongly consistent (PHYSICS §14).
pub(super) fn read_bound(consistent: Option<&[u8]>) -> Units {
    if consistent == Some(b"true") { Units::ONE } else { Units::HALF }
}

/// Which replicas may answer.
pub(super) fn read_access(consistent: Option<&[u8]>) -> Access {
    if consistent == Some(b"true") { Access::Strong } else { Access::Eventual }
}

/// A read of one item.
pub(super) fn read(key: Option<&[u8]>, table: &TableInfo, access: Access, units: Units) -> Demand {
    at(locate::primary_key(key, &table.key), table, access, units)
}

/// An update, a delete or a condition check. What it does to indexes is known afterwards.
pub(super) fn write(key: Option<&[u8]>, table: &TableInfo, units: Units) -> Demand {
    at(locate::primary_key(key, &table.key), table, Access::Write, units)
}

/// A put: of the table, and of each global index that gets an entry. `times`: 1, in a transaction 2.
pub(super) fn put(item: Option<&[u8]>, table: &TableInfo, times: u64) -> Vec<Demand> {
    let mut demands = vec![write(item, table, kilobytes(item).times(times))];
    let Some(item) = item else { return demands };
    for index in &table.indexes {
        if let Some(place) = locate::item(item, &index.key) {
            demands.push(Demand { on: index.id, access: Access::Write, place, units: Units::ONE });
        }
    }
    demands
}

/// What writing an item costs at least: its size, whatever was there before.
fn kilobytes(item: Option<&[u8]>) -> Units {
    match item {
        // An item is never larger than its JSON, so most need not be read.
        Some(item) if item.len() > 1024 => match read_item(item) {
            Ok(item) => Units::from_f64(write_units(0, item_size(&item))),
            Err(_) => Units::ONE,
        },
        _ => Units::ONE,
    }
}

fn at(place: Place, table: &TableInfo, access: Access, units: Units) -> Demand {
    Demand { on: table.id, access, place, units }
}
