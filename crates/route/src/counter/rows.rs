//! The rows of a counter's item: their physical keys, and which row a stored item is.

use bytes::Bytes;
use heatsink_dynamo::json::{self, Malformed, Object};
use heatsink_dynamo::{Error, KeyValue};
use heatsink_layout::{Layout, Slot, Table};

use crate::key::KeyText;
use crate::splice::Splice;

/// The physical keys of all rows of the item whose key is in `object` (a raw, valid `Key` or `Item` with logical key), row 0 first.
///
/// # Errors
/// `ValidationException` for a key that the suffix of one of them makes too long.
pub(crate) fn keys(table: &Table, layout: &Layout, object: &[u8]) -> Result<Vec<Bytes>, Error> {
    let partition = &table.key.partition;
    let own = key(table, object).map_err(|Malformed| unreadable())?;
    let value = json::member(&own, &partition.name).ok().flatten().ok_or_else(unreadable)?;
    let text = KeyText::read(value, partition.key_type).ok_or_else(unreadable)?;
    let row = |shard| {
        let suffix = table.suffix(&text.bytes, layout, Slot::shard(shard));
        let suffix = suffix.map_err(|unplaced| Error::validation(unplaced.to_string()))?;
        let mut splice = Splice::new(&own);
        text.append(&suffix, &mut splice);
        Ok(splice.finish(&own))
    };
    (0..layout.shards).map(row).collect()
}

/// The primary key in a raw key or item, alone.
pub(crate) fn key(table: &Table, object: &[u8]) -> Result<Bytes, Malformed> {
    let mut key = Object::new();
    for name in table.key.names() {
        key.raw(name, json::member(object, name)?.ok_or(Malformed)?);
    }
    Ok(Bytes::from(key.finish()))
}

/// Whether a raw key has the attributes of the table's key and no other.
pub(crate) fn is_key(table: &Table, object: &[u8]) -> bool {
    json::members(object).is_ok_and(|members| members.len() == table.key.names().count())
}

fn unreadable() -> Error {
    Error::validation("One of the required keys was not given a value")
}

/// Which item a row belongs to, whatever its shard: equal for all rows of one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Identity {
    partition: Vec<u8>,
    sort: Vec<u8>,
}

/// Reads the key of a stored row.
pub(crate) fn stored(table: &Table, row: &[u8]) -> Result<(Identity, Slot), Malformed> {
    let read = |attribute: &heatsink_dynamo::AttributeDefinition| {
        let raw = json::member(row, &attribute.name)?.ok_or(Malformed)?;
        KeyValue::read(raw, attribute).map(|key| key.canonical_bytes().into_owned()).map_err(|_| Malformed)
    };
    let physical = read(&table.key.partition)?;
    let (length, slot) = table.decode(&physical);
    let partition = physical.get(..length).ok_or(Malformed)?.to_vec();
    let sort = table.key.sort.as_ref().map_or(Ok(Vec::new()), read)?;
    Ok((Identity { partition, sort }, slot.unwrap_or_default()))
}

/// The identity of the item with a logical key.
pub(crate) fn logical(table: &Table, object: &[u8]) -> Result<Identity, Malformed> {
    let read = |attribute: &heatsink_dynamo::AttributeDefinition| {
        let raw = json::member(object, &attribute.name)?.ok_or(Malformed)?;
        KeyValue::read(raw, attribute).map(|key| key.canonical_bytes().into_owned()).map_err(|_| Malformed)
    };
    let sort = table.key.sort.as_ref().map_or(Ok(Vec::new()), read)?;
    Ok(Identity { partition: read(&table.key.partition)?, sort })
}

/// The identity of a key of a table that is not sharded.
pub(crate) fn opaque(key: &[u8]) -> Identity {
    let members: std::collections::BTreeMap<String, serde_json::Value> =
        serde_json::from_slice(key).unwrap_or_default();
    Identity { partition: serde_json::to_vec(&members).unwrap_or_default(), sort: Vec::new() }
}

impl Identity {
    /// The bytes of the logical partition key.
    pub(crate) fn partition(&self) -> &[u8] {
        &self.partition
    }
}
