//! Cursors of tables whose shards others draw: the shard of a cursor's item does not follow from its key, so the cursor says it, in an attribute of
//! its own beside the keys.
//!
//! A Query on the table says it only where several shards hold the last sort key (`query::lanes`). A client that rebuilds cursors from
//! items loses it; its item is then looked for (`drawn::seek`).

use bytes::Bytes;
use heatsink_dynamo::json::{self, Malformed, Object};
use heatsink_layout::Table;

use crate::answer::strip_object;
use crate::key::KeyText;
use crate::splice::Splice;

/// The attribute.
pub(crate) const SHARD: &str = "heatsink:shard";

/// A Query or Scan as DynamoDB knows it, and the shard that its `ExclusiveStartKey` names beside the keys.
pub(crate) fn taken_off(body: &Bytes, table: &Table) -> (Bytes, Option<u16>) {
    let read = || {
        let start = json::member(body, "ExclusiveStartKey").ok()??;
        let shard = json::member(json::member(start, SHARD).ok()??, "N").ok()??;
        let shard = json::string(shard).ok()?.parse().ok()?;
        let start = json::splice_members(start, &[(SHARD, None)]).ok()?;
        let body = json::splice_members(body, &[("ExclusiveStartKey", Some(&start))]).ok()?;
        Some((Bytes::from(body), shard))
    };
    match table.has_drawn().then(read).flatten() {
        Some((body, shard)) => (body, Some(shard)),
        None => (body.clone(), None),
    }
}

/// The raw cursor of a page that ends with an item: its values of the cursor's attributes.
///
/// # Errors
/// The item lacks one of them.
pub(crate) fn of_item(attributes: &[String], item: &[u8]) -> Result<Bytes, Malformed> {
    let members = json::members(item)?;
    let mut cursor = Object::new();
    for name in attributes {
        let (_, value) = members.iter().find(|(found, _)| found == name).ok_or(Malformed)?;
        cursor.raw(name, value);
    }
    Ok(Bytes::from(cursor.finish()))
}

/// Makes a raw `LastEvaluatedKey` of the store logical.
pub(crate) fn logical(table: &Table, key: &[u8], splice: &mut Splice<'_>) -> Result<(), Malformed> {
    if key == b"null" {
        return Ok(());
    }
    strip_object(table, key, splice)?;
    if table.has_drawn()
        && let Some(partition) = json::member(key, &table.key.partition.name)?
        && let Some(shard) = shard(table, partition)
    {
        splice.insert(key, 1, format!(",\"{SHARD}\":{shard}"));
    }
    Ok(())
}

/// The value of the attribute for a raw physical partition key whose shard was drawn.
pub(crate) fn shard(table: &Table, partition: &[u8]) -> Option<String> {
    let key = KeyText::read(partition, table.key.partition.key_type)?;
    Some(format!("{{\"N\":\"{}\"}}", table.drawn(&key.bytes)?.shard))
}
