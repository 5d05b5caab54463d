//! Sources of layouts that know, or take note of, where items lie whose shard was drawn.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use heatsink_layout::{Layout, LayoutSource, Slot, SortKey, Table, Unplaced};

use crate::passed_on::passed_on;
use crate::rows::keys::Identity;

/// An item that a request names.
#[derive(Clone, Debug)]
pub(super) struct Named {
    pub(super) table: String,
    pub(super) layout: Arc<Layout>,
    /// Its logical key, raw.
    pub(super) key: Vec<u8>,
    pub(super) identity: Identity,
}

impl Named {
    /// Which item it is.
    pub(super) fn item(&self) -> Item {
        (self.table.clone(), self.identity.clone())
    }
}

/// An item: its table and its logical key.
pub(super) type Item = (String, Identity);

/// Where items lie; `None` for one that is nowhere.
pub(super) type Places = HashMap<Item, Option<Slot>>;

/// Every item at its home: for reads that ask for all physical keys, of which that is the first.
pub(super) struct AtHome<'a>(pub(super) &'a dyn LayoutSource);

impl LayoutSource for AtHome<'_> {
    passed_on!(0: note);

    fn drawn_slot(
        &self,
        _table: &Table,
        layout: &Layout,
        _key: &[u8],
        sort: Option<SortKey<'_>>,
    ) -> Result<Slot, Unplaced> {
        layout.home(sort)
    }
}

/// Takes note of the items that are asked for, and says that they are at home.
pub(super) struct Asking<'a> {
    inner: &'a dyn LayoutSource,
    named: Mutex<Vec<Named>>,
}

impl<'a> Asking<'a> {
    pub(super) fn new(inner: &'a dyn LayoutSource) -> Self {
        Asking { inner, named: Mutex::default() }
    }

    /// The items, each once.
    pub(super) fn named(self) -> Vec<Named> {
        let mut met = std::collections::HashSet::new();
        let mut named = self.named.into_inner().unwrap_or_else(PoisonError::into_inner);
        named.retain(|one| met.insert((one.table.clone(), one.identity.clone())));
        named
    }
}

impl LayoutSource for Asking<'_> {
    passed_on!(inner: note);

    fn drawn_slot(
        &self,
        table: &Table,
        layout: &Layout,
        key: &[u8],
        sort: Option<SortKey<'_>>,
    ) -> Result<Slot, Unplaced> {
        let home = layout.home(sort)?;
        let mut named = self.named.lock().unwrap_or_else(PoisonError::into_inner);
        named.push(Named {
            table: table.name.clone(),
            layout: Arc::new(layout.clone()),
            key: crate::rows::keys::raw(table, key, sort),
            identity: Identity::of(key, sort),
        });
        Ok(home)
    }
}

/// Knows where the items of a request were found; those that are nowhere belong home.
pub(super) struct Found {
    pub(super) inner: Arc<dyn LayoutSource>,
    pub(super) places: Places,
}

impl LayoutSource for Found {
    passed_on!(inner: note);

    fn drawn_slot(
        &self,
        table: &Table,
        layout: &Layout,
        key: &[u8],
        sort: Option<SortKey<'_>>,
    ) -> Result<Slot, Unplaced> {
        match self.places.get(&(table.name.clone(), Identity::of(key, sort))) {
            Some(Some(slot)) => Ok(*slot),
            Some(None) => layout.home(sort),
            None => layout.slot_of(sort),
        }
    }

    fn found(&self, table: &Table, key: &[u8], sort: Option<SortKey<'_>>) -> Option<Slot> {
        *self.places.get(&(table.name.clone(), Identity::of(key, sort)))?
    }
}
