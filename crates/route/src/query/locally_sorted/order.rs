//! The order of logical keys, in which rows are shown that the store orders by physical ones: where
//! in it a stored row stands, or a cursor. And which of its item's copies a row is of, while keys
//! move.
//!
//! Not here: which rows a page keeps (`page`).

use std::sync::Arc;

use heatsink_dynamo::{AttributeDefinition, Error, KeyValue, Number, json};
use heatsink_layout::{Slot, Table};

use super::moving::{Copy, Lies, lies, own_attributes};
use crate::collection::keys::{Key, slot_of, stable, with_sort};
use crate::collection::position::Position;
use crate::context::PlanContext;
use crate::cursor::Cursor;
use crate::query::request::Query;
use crate::refusal::Unplanned;

/// The order of rows: the index's sort key, in logical values; the logical partition key; the
/// table's sort key; and where shards are externally assigned, so that several items can have one
/// key, the slot.
pub(super) type Place = (Position, Key, Option<Key>, Slot);

/// What a row is of, the one that counts first where several rows are of one item.
#[derive(Clone, Debug)]
pub(super) enum RowKind {
    /// The item.
    Item,
    /// An old copy that is not the item. It stays, so that the page ends where it would with it.
    Gone,
    /// An old copy that was found to be the item, or to have been when its row was read.
    Alone,
    /// An old copy, of which nothing more is known.
    Old(Copy),
}

impl RowKind {
    pub(super) fn rank(&self) -> u8 {
        match self {
            RowKind::Item => 0,
            RowKind::Gone => 1,
            RowKind::Alone => 2,
            RowKind::Old(_) => 3,
        }
    }

    pub(super) fn old(&self) -> Option<&Copy> {
        match self {
            RowKind::Old(copy) => Some(copy),
            _ => None,
        }
    }
}

/// How a table's rows are ordered in an index.
#[derive(Clone)]
pub(super) struct LogicalOrder {
    schema: Arc<Table>,
    /// Which of the sort attributes is the table's partition key, if it is stored with shard
    /// suffixes.
    own: Option<usize>,
    /// Whether keys of the table move.
    moves: bool,
    /// The partition key attributes of the index, then the sort attributes.
    attributes: Vec<AttributeDefinition>,
}

impl LogicalOrder {
    pub(super) fn new(query: &Query<'_>) -> Self {
        let keys = query.schema.key_layouts();
        let own = query.sort().iter().position(|sort| sort.name == query.schema.key.partition.name);
        let partition =
            std::iter::once(query.spread).chain(query.fixed.iter().map(|(attribute, _)| *attribute));
        LogicalOrder {
            schema: Arc::clone(query.schema),
            own: own.filter(|_| !query.schema.keys_are_whole()),
            moves: keys.any_apart(keys.newest()),
            attributes: partition.chain(query.sort()).cloned().collect(),
        }
    }

    pub(super) fn schema(&self) -> &Arc<Table> {
        &self.schema
    }

    /// Which of the sort attributes is the table's partition key, if it is stored with shard
    /// suffixes.
    pub(super) fn own(&self) -> Option<usize> {
        self.own
    }

    /// Whether keys of the table move.
    pub(super) fn moves(&self) -> bool {
        self.moves
    }

    /// The index's own key attributes.
    pub(super) fn index_attributes(&self) -> Vec<AttributeDefinition> {
        own_attributes(&self.schema, &self.attributes).cloned().collect()
    }

    /// Their values in a row that was found under these values of the index's partition key, at that
    /// stored position.
    pub(super) fn index_key<'a>(
        &self,
        partition: impl Iterator<Item = &'a Key>,
        at: &'a Position,
    ) -> Vec<Key> {
        let values: Vec<&Key> = partition.chain(at.values()).collect();
        let of = |own: &AttributeDefinition| self.attributes.iter().position(|one| one.name == own.name);
        let own = own_attributes(&self.schema, &self.attributes);
        own.filter_map(|own| values.get(of(own)?).map(|value| (*value).clone())).collect()
    }

    /// A stored item's position in logical values.
    pub(super) fn position(&self, mut at: Position) -> Position {
        if let Some((own, stored)) = self.own.and_then(|own| Some((own, at.values().nth(own)?.clone()))) {
            at.replace(own, self.logical_key(stored));
        }
        at
    }

    /// The place of a stored item, and what its row is of; nothing for what lies where no reader
    /// looks.
    pub(super) fn row(&self, at: Position, item: &[u8]) -> Result<Option<(Place, RowKind)>, Error> {
        let unreadable =
            || Error::internal("The store's answer to Query has an item without the table's key");
        let key = &self.schema.key;
        let sort = key.sort.as_ref().unwrap_or(&key.partition);
        let [partition, sort_value] =
            json::attributes_of(item, [&key.partition.name, &sort.name]).map_err(|_| unreadable())?;
        let stored = KeyValue::read(partition.ok_or_else(unreadable)?, &key.partition)?.into_owned();
        let physical = stored.canonical_bytes().into_owned();
        let slot = self.schema.assigned_slot(&physical).unwrap_or_default();
        let logical = self.logical_key(stored);
        let sort = match &key.sort {
            None => None,
            Some(sort) => Some(KeyValue::read(sort_value.ok_or_else(unreadable)?, sort)?.into_owned()),
        };
        let of = if self.moves {
            let (key, slot) = self.schema.decode(&physical);
            match with_sort(sort.as_ref(), |sort| lies(&self.schema, key, sort, slot)) {
                Lies::Here => RowKind::Item,
                Lies::Old(copy) => RowKind::Old(copy),
                Lies::Astray => return Ok(None),
            }
        } else {
            RowKind::Item
        };
        Ok(Some(((self.position(at), logical, sort, slot), of)))
    }

    /// The logical partition key of a stored one.
    fn logical_key(&self, stored: Key) -> Key {
        match stored {
            Key::S(text) => {
                let logical = self.schema.logical(text.as_bytes());
                Key::S(std::str::from_utf8(logical).unwrap_or(&text).to_owned().into())
            }
            Key::B(bytes) => Key::B(self.schema.logical(&bytes).to_vec().into()),
            Key::N(number) => {
                let text = number.to_string();
                let logical = std::str::from_utf8(self.schema.logical(text.as_bytes())).ok();
                Key::N(logical.and_then(|logical| Number::parse(logical).ok()).unwrap_or(number))
            }
        }
    }
}

/// The place of a cursor.
pub(super) fn of_cursor(
    query: &Query<'_>,
    cursor: &Cursor<'_>,
    context: &PlanContext<'_>,
) -> Result<Place, Unplanned> {
    let find = |name: &str| query.value_of(cursor, name).cloned();
    let key = &query.schema.key;
    let partition = find(&key.partition.name).ok_or(Unplanned::Invalid)?;
    let at = query.position_of(cursor);
    if find(&query.spread.name).as_ref() != Some(&query.partition) || !at.matches(&query.conditions) {
        return Err(Unplanned::Invalid);
    }
    let sort = key.sort.as_ref().and_then(|sort| find(&sort.name));
    let layout = stable(context, query.schema, &partition);
    let slot = match layout.is_externally_assigned() {
        true => slot_of(context, query.schema, &layout, &partition, sort.as_ref())?,
        false => Slot::default(),
    };
    Ok((at, partition, sort, slot))
}
