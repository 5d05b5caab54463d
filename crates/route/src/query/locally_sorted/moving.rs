//! Rows of indexes while keys move: which of an item's copies a row is of, and whether an old copy
//! is the item.
//!
//! A row of an old slot is shown where the new slot holds no copy and the old one still does, both
//! read consistently in this order after the row: then the old copy was the item when the new slot
//! was read. It is shown, too, where the new slot holds a copy that belongs where the row stands:
//! the item may have moved since the row was read, and then no other row of it was. Where that copy
//! had a row, that one is shown. Not here: in which order rows are read and shown
//! (`query::locally_sorted`).

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;
use heatsink_dynamo::{AttributeDefinition, Error, KeyValue, Operation, json};
use heatsink_layout::{InForce, Moving, Phase, Placement, Slot, Slots, SortKey, Table};

use crate::Calls;
use crate::answer::unreadable;
use crate::capacity::Capacity;
use crate::collection::keys::Key;
use crate::fragments;
use crate::identity::{self, Identity};
use crate::items::fetch::{Fetch, key_and};
use crate::request::quoted;

/// Where a row lies.
#[derive(Clone, Debug)]
pub(crate) enum Lies {
    /// Where the item is.
    Here,
    /// In the old slot of an item that changes its slot.
    Old(Copy),
    /// Where no reader looks for the item.
    Astray,
}

/// The copies of an item that changes its slot.
#[derive(Clone, Debug)]
pub(crate) struct Copy {
    identity: Identity,
    /// Its logical key, raw.
    key: Vec<u8>,
    moving: Arc<Moving>,
    slots: Slots,
    /// The values of the index's [own key attributes](own_attributes) in its row.
    index_key: Vec<Key>,
}

impl Copy {
    /// The same copy, whose row has these values of the index's own key attributes.
    pub(crate) fn at(self, index_key: Vec<Key>) -> Self {
        Copy { index_key, ..self }
    }

    /// Whether an item has the same values of these attributes.
    fn belongs_with(&self, item: &[u8], attributes: &[AttributeDefinition]) -> Result<bool, Error> {
        for (attribute, value) in attributes.iter().zip(&self.index_key) {
            let found =
                json::member(item, &attribute.name).map_err(|_| unreadable(Operation::BatchGetItem))?;
            let is_same = match found {
                Some(found) => KeyValue::read(found, attribute).is_ok_and(|found| found == *value),
                None => false,
            };
            if !is_same {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Which item it is.
    pub(crate) fn identity(&self) -> &Identity {
        &self.identity
    }
}

/// Where a row with that logical key lies, which was found in `slot`.
pub(crate) fn lies(table: &Table, key: &[u8], sort: Option<SortKey<'_>>, slot: Option<Slot>) -> Lies {
    let Some(recorded) = table.key_layouts().get(key) else { return Lies::Here };
    let is_at = |home: Slot| if slot == Some(home) { Lies::Here } else { Lies::Astray };
    let moving = match &recorded.in_force {
        InForce::Moving(moving) if moving.phase > Phase::Reserve => moving,
        stays => return stays.settled().slot_of(sort).map_or(Lies::Astray, is_at),
    };
    match moving.slots(sort) {
        Ok(Some(slots)) if slot == Some(slots.from) => Lies::Old(Copy {
            identity: Identity::of(key, sort),
            key: identity::raw(table, key, sort),
            moving: Arc::clone(moving),
            slots,
            index_key: Vec::new(),
        }),
        Ok(Some(slots)) => is_at(slots.to),
        Ok(None) => moving.from.slot_of(sort).map_or(Lies::Astray, is_at),
        Err(_) => Lies::Astray,
    }
}

/// The key attributes of an index that are not the table's: a row and an item of one identity are
/// of one place if they have the same values of them.
pub(crate) fn own_attributes<'a>(
    table: &'a Table,
    attributes: impl IntoIterator<Item = &'a AttributeDefinition>,
) -> impl Iterator<Item = &'a AttributeDefinition> {
    attributes.into_iter().filter(|attribute| !table.key.names().any(|name| name == attribute.name))
}

/// The rows of which of these copies are shown. `attributes`: the index's
/// [own key attributes](own_attributes).
///
/// # Errors
/// The store's.
pub(crate) async fn shown(
    table: &Arc<Table>,
    copies: &[Copy],
    attributes: &[AttributeDefinition],
    capacity: &mut Option<Capacity>,
    calls: &mut dyn Calls,
) -> Result<HashSet<Identity>, Error> {
    let mut left = copies.iter().collect::<Vec<_>>();
    let mut moved = HashSet::new();
    for new in [true, false] {
        let key = |copy: &&Copy| {
            let mut keys =
                fragments::keys(table, &copy.moving.to, &Placement::Moving(copy.slots), &copy.key)?
                    .into_iter();
            let (to, from) = (keys.next(), keys.next());
            Ok(if new { to } else { from })
        };
        let keys = left.iter().map(key).collect::<Result<Vec<Option<Bytes>>, Error>>()?;
        let keys = keys.into_iter().flatten().collect();
        let report = Some(b"\"INDEXES\"".to_vec());
        let attributes = if new { attributes } else { &[] };
        let mut fetch = Fetch::new(table, quoted(&table.name), key_and(table, attributes), report, keys);
        fetch.read_all(calls).await?;
        fetch.capacity.iter().for_each(|cost| capacity.get_or_insert_default().add(cost));
        for copy in left.iter().filter(|_| new) {
            let found = fetch.parts(&copy.identity).into_iter().flat_map(|parts| &parts.found);
            for (_, item) in found {
                if copy.belongs_with(item, attributes)? {
                    moved.insert(copy.identity.clone());
                }
            }
        }
        left.retain(|copy| fetch.parts(&copy.identity).is_some() != new);
    }
    moved.extend(left.into_iter().map(|copy| copy.identity.clone()));
    Ok(moved)
}
