//! The physical keys under which the rows of an item lie, or may lie, and which item a stored row is of.

use bytes::Bytes;
use heatsink_dynamo::json::{self, Malformed, Object};
use heatsink_dynamo::{Error, KeyType, KeyValue, Number, Value};
use heatsink_layout::{Layout, Slot, SortKey, Table, Unplaced};

use crate::key::KeyText;
use crate::splice::Splice;

/// The physical keys of all rows of the item whose key is in `object` (a raw, valid `Key` or `Item` with logical key). First comes row 0,
/// or where an item is put whose shard is drawn.
///
/// # Errors
/// `ValidationException` for a key that the suffix of one of them makes too long, or one that cannot be an item's.
pub(crate) fn keys(table: &Table, layout: &Layout, object: &[u8]) -> Result<Vec<Bytes>, Error> {
    let partition = &table.key.partition;
    let own = key(table, object).map_err(|Malformed| unreadable())?;
    let value = json::member(&own, &partition.name).ok().flatten().ok_or_else(unreadable)?;
    let text = KeyText::read(value, partition.key_type).ok_or_else(unreadable)?;
    let refused = |unplaced: Unplaced| Error::gateway_rejection(unplaced.to_string());
    let row = |slot| {
        let affixes = table.affixes(&text.bytes, layout, slot).map_err(refused)?;
        let mut splice = Splice::new(&own);
        text.wrap(&affixes, &mut splice);
        Ok(splice.finish(&own))
    };
    if layout.counted().is_some() {
        return (0..layout.shards).map(Slot::shard).map(row).collect();
    }
    let sort = match &table.key.sort {
        None => None,
        Some(sort) => {
            let value = json::member(&own, &sort.name).ok().flatten().ok_or_else(unreadable)?;
            Some(KeyText::read(value, sort.key_type).ok_or_else(unreadable)?)
        }
    };
    let sort = sort.as_ref().and_then(KeyText::sort_key);
    let home = layout.home(sort).map_err(refused)?;
    let others = layout.slots_of(sort).map_err(refused)?.into_iter().filter(|slot| *slot != home);
    std::iter::once(home).chain(others).map(row).collect()
}

/// The primary key in a raw key or item, alone.
pub(crate) fn key(table: &Table, object: &[u8]) -> Result<Bytes, Malformed> {
    let mut key = Object::new();
    for name in table.key.names() {
        key.raw(name, json::member(object, name)?.ok_or(Malformed)?);
    }
    Ok(Bytes::from(key.finish()))
}

/// A logical primary key as requests have it.
pub(crate) fn raw(table: &Table, partition: &[u8], sort: Option<SortKey<'_>>) -> Vec<u8> {
    let mut key = Object::new();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let value = match table.key.partition.key_type {
        KeyType::B => Value::B(Bytes::copy_from_slice(partition)),
        KeyType::N => Value::N(text(partition)),
        KeyType::S => Value::S(text(partition)),
    };
    key.raw(&table.key.partition.name, &value.to_json());
    if let (Some(attribute), Some(sort)) = (&table.key.sort, sort) {
        let value = match sort {
            SortKey::S(text) => Value::S(text.to_owned()),
            SortKey::N(text) => Value::N(text.to_owned()),
            SortKey::B(bytes) => Value::B(Bytes::copy_from_slice(bytes)),
        };
        key.raw(&attribute.name, &value.to_json());
    }
    key.finish()
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
    let (logical, slot) = table.decode(&physical);
    let partition = logical.to_vec();
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
    /// Of a logical key.
    pub(crate) fn of(partition: &[u8], sort: Option<SortKey<'_>>) -> Self {
        let sort = match sort {
            None => Vec::new(),
            Some(SortKey::S(text)) => text.as_bytes().to_vec(),
            Some(SortKey::B(bytes)) => bytes.to_vec(),
            Some(SortKey::N(text)) => match Number::parse(text) {
                Ok(number) => KeyValue::N(number).canonical_bytes().into_owned(),
                Err(_) => text.as_bytes().to_vec(),
            },
        };
        Identity { partition: partition.to_vec(), sort }
    }

    /// The bytes of the logical partition key.
    pub(crate) fn partition(&self) -> &[u8] {
        &self.partition
    }

    /// Those of the sort key; none without one.
    pub(crate) fn sort(&self) -> &[u8] {
        &self.sort
    }
}
