//! Key values of a read: which layout they have, where an item with them lies, and what they are
//! stored as.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use heatsink_dynamo::key::KeyPart;
use heatsink_dynamo::{
    AttributeDefinition, IndexSchema, KeyAttributes, KeyValue, Number, TableSchema, Value,
};
use heatsink_layout::{Layout, Slot, SortKey, Table, Unplaced};

use crate::context::PlanContext;

/// The value of a key attribute.
pub(crate) type Key = KeyValue<'static>;

/// A key for an explanation: text, a number in canonical text, a binary value in base64.
pub(crate) fn explained(key: &Key) -> String {
    match key {
        KeyValue::S(text) => text.clone().into_owned(),
        KeyValue::N(number) => number.to_string(),
        KeyValue::B(bytes) => STANDARD.encode(bytes),
    }
}

/// The layout in force of a logical key.
pub(crate) fn stable(context: &PlanContext<'_>, table: &Table, partition: &Key) -> Arc<Layout> {
    context.gathered(table, &partition.canonical_bytes())
}

/// The slot of the item with that primary key.
///
/// # Errors
/// As [`PlanContext::slot`].
pub(crate) fn slot_of(
    context: &PlanContext<'_>,
    table: &Table,
    layout: &Layout,
    partition: &Key,
    sort: Option<&Key>,
) -> Result<Slot, Unplaced> {
    with_sort(sort, |sort| context.slot(table, layout, &partition.canonical_bytes(), sort))
}

/// Calls `then` with a sort key as layouts have it.
pub(crate) fn with_sort<T>(sort: Option<&Key>, then: impl FnOnce(Option<SortKey<'_>>) -> T) -> T {
    match sort {
        None => then(None),
        Some(KeyValue::S(text)) => then(Some(SortKey::S(text))),
        Some(KeyValue::B(bytes)) => then(Some(SortKey::B(bytes))),
        Some(KeyValue::N(number)) => then(Some(SortKey::N(&number.to_string()))),
    }
}

/// The physical key of a logical key in a slot.
///
/// # Errors
/// [`Unplaced`] where the key is too long for the slot.
pub(crate) fn physical(table: &Table, layout: &Layout, logical: &Key, slot: Slot) -> Result<Key, Unplaced> {
    let affixes = |bytes: &[u8]| table.affixes(bytes, layout, slot);
    Ok(match logical {
        KeyValue::S(text) => {
            let affixes = affixes(text.as_bytes())?;
            KeyValue::S(format!("{}{text}{}", affixes.before, affixes.after).into())
        }
        KeyValue::B(bytes) => KeyValue::B(affixes(bytes)?.around(bytes).into()),
        KeyValue::N(number) => {
            let text = number.to_string();
            let affixes = affixes(text.as_bytes())?;
            if affixes.is_empty() {
                return Ok(logical.clone());
            }
            let physical = format!("{text}{}", affixes.after);
            KeyValue::N(Number::parse(&physical).map_err(|_| Unplaced::NoRoom(text))?)
        }
    })
}

/// The attributes of a cursor: the table's key, and the index's, each once.
pub(crate) fn cursor_attributes<'a>(
    table: &'a TableSchema,
    index: Option<&'a IndexSchema>,
) -> Vec<&'a AttributeDefinition> {
    let mut attributes: Vec<&AttributeDefinition> = Vec::with_capacity(4);
    let keys = [Some(KeyAttributes::from(&table.key)), index.map(|index| index.key.attributes())];
    for attribute in keys.into_iter().flatten().flat_map(KeyAttributes::all) {
        if !attributes.contains(&attribute) {
            attributes.push(attribute);
        }
    }
    attributes
}

/// A value as a key, if it can be one.
pub(crate) fn key_value(value: &Value, attribute: &AttributeDefinition, part: KeyPart) -> Option<Key> {
    KeyValue::from_value(value)
        .filter(|key| key.key_type() == attribute.key_type && key.check(part, &attribute.name).is_ok())
        .map(KeyValue::into_owned)
}
