//! What a cursor holds: the key of the item at which a page ends, and beside it, in attributes of
//! their own, what does not follow from that key.
//!
//! Shard-tagged cursors are those of tables whose shards are assigned externally: the cursor says
//! in which shard its item lies. A Query on the table says it only where several shards hold the
//! last sort key (`query::shard_streams`). A client that rebuilds cursors from items loses it; its
//! item is then looked for (`assigned::seek`).

use bytes::Bytes;
use heatsink_dynamo::json::{self, Malformed, Object};
use heatsink_dynamo::{AttributeDefinition, KeyValue};
use heatsink_layout::Table;

use crate::collection::keys::Key;
use crate::key::{KeyText, strip};
use crate::splice::Splice;

/// The attribute that says under which layouts a position was given out (`layout_cursor`).
pub(crate) const LAYOUT: &str = "heatsink:layout";

/// The attribute that names the shard.
pub(crate) const SHARD: &str = "heatsink:shard";

/// The values of a cursor, each also raw.
pub(crate) type Cursor<'a> = Vec<(Key, &'a [u8])>;

/// The values of those attributes in an object's members, in their order; `None` where one is
/// missing or of another type.
pub(crate) fn values<'a>(
    members: &[json::Member<'a>],
    attributes: &[&AttributeDefinition],
) -> Option<Cursor<'a>> {
    let value = |attribute: &&AttributeDefinition| {
        let (_, raw) = members.iter().find(|(name, _)| *name == attribute.name)?;
        Some((KeyValue::read(raw, attribute).ok()?.into_owned(), *raw))
    };
    attributes.iter().map(value).collect()
}

/// A request without the attribute of that name in its `ExclusiveStartKey`, and that attribute's
/// raw value.
pub(crate) fn without<'a>(body: &'a Bytes, name: &str) -> Option<(Bytes, &'a [u8])> {
    let start = json::member(body, "ExclusiveStartKey").ok()??;
    let value = json::member(start, name).ok()??;
    let start = json::splice_members(start, &[(name, None)]).ok()?;
    let body = json::splice_members(body, &[("ExclusiveStartKey", Some(&start))]).ok()?;
    Some((Bytes::from(body), value))
}

/// A Query or Scan as DynamoDB knows it, and the shard that its `ExclusiveStartKey` names beside
/// the keys.
pub(crate) fn without_shard(body: &Bytes, table: &Table) -> (Bytes, Option<u16>) {
    let read = || {
        let (body, shard) = without(body, SHARD)?;
        let shard = json::string(json::member(shard, "N").ok()??).ok()?.parse().ok()?;
        Some((body, shard))
    };
    match table.has_externally_assigned().then(read).flatten() {
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
    strip(table, key, splice)?;
    if table.has_externally_assigned()
        && let Some(partition) = json::member(key, &table.key.partition.name)?
        && let Some(shard) = shard(table, partition)
    {
        splice.insert(key, 1, format!(",\"{SHARD}\":{shard}"));
    }
    Ok(())
}

/// The value of the attribute for a raw physical partition key whose shard is externally assigned.
pub(crate) fn shard(table: &Table, partition: &[u8]) -> Option<String> {
    let key = KeyText::read(partition, table.key.partition.key_type)?;
    Some(format!("{{\"N\":\"{}\"}}", table.assigned_slot(&key.bytes)?.shard))
}
