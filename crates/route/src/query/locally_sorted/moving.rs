//! Rows of indexes while keys move: which of an item's copies a row is of, and whether an old copy
//! is the item.
//!
//! A row of an old slot is shown where the new slot holds no copy and the old one still does, both
//! read consistently in this order after the row: then the old copy was the item when the new slot
//! was read. Not here: in which order rows are read and shown (`query::locally_sorted`).

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;
use heatsink_dynamo::Error;
use heatsink_layout::{InForce, Moving, Phase, Placement, Slot, Slots, SortKey, Table};

use crate::Calls;
use crate::capacity::Capacity;
use crate::fragments;
use crate::identity::{self, Identity};
use crate::items::fetch::{Fetch, key_only};
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
}

impl Copy {
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
        }),
        Ok(Some(slots)) => is_at(slots.to),
        Ok(None) => moving.from.slot_of(sort).map_or(Lies::Astray, is_at),
        Err(_) => Lies::Astray,
    }
}

/// Which of these items lie in their old slots alone.
///
/// # Errors
/// The store's.
pub(crate) async fn in_old_slots(
    table: &Arc<Table>,
    copies: &[Copy],
    capacity: &mut Option<Capacity>,
    calls: &mut dyn Calls,
) -> Result<HashSet<Identity>, Error> {
    let mut left = copies.iter().collect::<Vec<_>>();
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
        let mut fetch = Fetch::new(table, quoted(&table.name), key_only(table), report, keys);
        fetch.read_all(calls).await?;
        fetch.capacity.iter().for_each(|cost| capacity.get_or_insert_default().add(cost));
        left.retain(|copy| fetch.parts(&copy.identity).is_some() != new);
    }
    Ok(left.into_iter().map(|copy| copy.identity.clone()).collect())
}
