//! Which item something is, whatever its slot; and its primary key alone.
//!
//! Not here: the physical keys of an item (`fragments`).

use bytes::Bytes;
use heatsink_dynamo::json::{self, Malformed, Object};
use heatsink_dynamo::{KeyType, KeyValue, Number, Value};
use heatsink_layout::{Slot, SortKey, Table};

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

/// Which item something stored belongs to, whatever its slot: equal for all fragments of one item.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Identity {
    partition: Vec<u8>,
    sort: Vec<u8>,
}

/// Reads the key of a stored item or fragment: which item it belongs to, and its slot.
pub(crate) fn stored(table: &Table, item: &[u8]) -> Result<(Identity, Slot), Malformed> {
    let physical = logical(table, item)?;
    let (partition, slot) = table.decode(&physical.partition);
    Ok((Identity { partition: partition.to_vec(), sort: physical.sort }, slot.unwrap_or_default()))
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
