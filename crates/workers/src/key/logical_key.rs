//! The key that moves: its physical keys, and the items under them.
//!
//! Not here: which of them move (`mover`), and which should not be there (`survey`).

use std::sync::Arc;

use heatsink_control::registry::Registry;
use heatsink_control::reshard_intent::key_text;
use heatsink_dynamo::{Error, KeyType, KeyValue, Operation};
use heatsink_layout::{Layout, Slot, SortKey, Table};
use serde_json::{Value as Json, json};

use crate::items::item::value;

/// The logical partition key of a table.
#[derive(Clone, Debug)]
pub struct Key {
    /// The table, as it is laid out.
    pub table: Arc<Table>,
    /// The key's bytes: UTF-8 of a string, raw binary.
    pub bytes: Vec<u8>,
}

/// An item as the store has it.
pub(crate) type Item = Json;

/// The value of an item's sort key.
pub(crate) type Sort = KeyValue<'static>;

/// A page of the items under one physical key, and where it goes on.
pub(crate) struct Page {
    pub items: Vec<Item>,
    pub more: Option<Json>,
    /// Read units that it took.
    pub units: u32,
}

impl Key {
    pub(crate) fn key_type(&self) -> KeyType {
        self.table.key.partition.key_type
    }

    /// The key as people read it.
    pub fn text(&self) -> String {
        key_text(&self.bytes, self.key_type())
    }

    fn value(&self, bytes: &[u8]) -> Json {
        value(bytes, self.key_type())
    }

    /// The physical key of the slot of that number. Plain suffixes: only keys of tables that have no
    /// others can move.
    ///
    /// # Errors
    /// `ValidationException` for a key that its suffix makes too long.
    pub(crate) fn physical(&self, layout: &Layout, number: u16) -> Result<Json, Error> {
        self.in_slot(layout, Slot::shard(number))
    }

    /// The physical key of a slot.
    ///
    /// # Errors
    /// As [`physical`](Self::physical).
    pub(crate) fn in_slot(&self, layout: &Layout, slot: Slot) -> Result<Json, Error> {
        let physical = self.table.physical(&self.bytes, layout, slot);
        physical.map(|bytes| self.value(&bytes)).map_err(|unplaced| Error::validation(unplaced.to_string()))
    }

    /// The number of the slot in which a layout puts an item; that of the first shard, where items
    /// have no sort key.
    ///
    /// # Errors
    /// An item of the store's without the table's sort key.
    pub(crate) fn slot_of(&self, layout: &Layout, item: &Item) -> Result<u16, Error> {
        match &self.table.key.sort {
            Some(_) => Ok(Key::slot(layout, &self.sort(item)?)),
            None => Ok(layout.shard_of(None)),
        }
    }

    /// The number of the slot in which a layout puts the item with that sort key.
    pub(crate) fn slot(layout: &Layout, sort: &Sort) -> u16 {
        match sort {
            KeyValue::S(text) => layout.shard_of(Some(SortKey::S(text))),
            KeyValue::B(bytes) => layout.shard_of(Some(SortKey::B(bytes))),
            KeyValue::N(number) => layout.shard_of(Some(SortKey::N(&number.to_string()))),
        }
    }

    /// The primary key of an item, under that physical key.
    pub(crate) fn primary(&self, physical: &Json, item: &Item) -> Json {
        let mut key = json!({ self.table.key.partition.name.as_str(): physical });
        if let Some(sort) = &self.table.key.sort {
            key[&sort.name] = item[&sort.name].clone();
        }
        key
    }

    /// A page of the items under a physical key, strongly consistent.
    ///
    /// # Errors
    /// The store's.
    pub(crate) async fn page(
        &self,
        registry: &Registry,
        physical: &Json,
        start: Option<&Json>,
        limit: Option<usize>,
    ) -> Result<Page, Error> {
        let mut body = json!({
            "TableName": self.table.name, "ConsistentRead": true, "KeyConditionExpression": "#p = :p", "ReturnConsumedCapacity": "TOTAL",
            "ExpressionAttributeNames": { "#p": self.table.key.partition.name }, "ExpressionAttributeValues": { ":p": physical },
        });
        if let Some(start) = start {
            body["ExclusiveStartKey"] = start.clone();
        }
        if let Some(limit) = limit {
            body["Limit"] = json!(limit);
        }
        let mut page = registry.call_patiently(Operation::Query, body).await?;
        let units = page["ConsumedCapacity"]["CapacityUnits"].as_f64().unwrap_or(1.0).ceil();
        let items = match page["Items"].take() {
            Json::Array(items) => items,
            _ => Vec::new(),
        };
        let more = Some(page["LastEvaluatedKey"].take()).filter(|last| !last.is_null());
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a page has 1 MB")]
        Ok(Page { items, more, units: units as u32 })
    }

    /// The key attributes of the item with the highest sort key under a physical key, strongly
    /// consistent. Not asked again if the store refuses it.
    ///
    /// # Errors
    /// The store's; a page without items that does not say that there are none.
    pub(crate) async fn last(&self, registry: &Registry, physical: &Json) -> Result<Option<Item>, Error> {
        let body = json!({
            "TableName": self.table.name, "ConsistentRead": true, "KeyConditionExpression": "#p = :p", "ScanIndexForward": false, "Limit": 1,
            "ExpressionAttributeNames": { "#p": self.table.key.partition.name }, "ExpressionAttributeValues": { ":p": physical },
        });
        let mut page = registry.call(Operation::Query, body).await?;
        match page["Items"].get_mut(0).map(Json::take) {
            None if !page["LastEvaluatedKey"].is_null() => {
                Err(Error::internal("The store sent a page without items that is not the last"))
            }
            last => Ok(last),
        }
    }

    /// An item's sort key.
    ///
    /// # Errors
    /// An item without one.
    pub(crate) fn sort(&self, item: &Item) -> Result<Sort, Error> {
        let unreadable = || Error::internal("The store sent an item without the table's sort key");
        let sort = self.table.key.sort.as_ref().ok_or_else(unreadable)?;
        let raw = item[&sort.name].to_string();
        KeyValue::read(raw.as_bytes(), sort).map(KeyValue::into_owned).map_err(|_| unreadable())
    }
}
