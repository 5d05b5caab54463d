//! Sources of layouts that know, or take note of, where items lie whose shard was drawn.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use heatsink_layout::{Bucket, Layout, LayoutSource, Placement, Reads, Slot, SortKey, Table, Unplaced};

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

/// Where items lie; `None` for one that is nowhere.
pub(super) type Places = HashMap<(String, Identity), Option<Slot>>;

/// Passes on everything but where items lie.
macro_rules! passed_on {
    ($inner:tt) => {
        fn table(&self, name: &str) -> Option<Arc<Table>> {
            self.$inner.table(name)
        }

        fn placement(&self, table: &Table, key: &[u8]) -> Placement {
            self.$inner.placement(table, key)
        }

        fn reads(&self, table: &Table, key: &[u8]) -> Reads {
            self.$inner.reads(table, key)
        }

        fn now(&self) -> Option<u64> {
            self.$inner.now()
        }

        fn handle(&self) -> Arc<dyn LayoutSource> {
            self.$inner.handle()
        }

        fn note(&self, table: &Table, key: &[u8], bucket: Bucket) {
            self.$inner.note(table, key, bucket);
        }

        fn is_hidden(&self, name: &str) -> bool {
            self.$inner.is_hidden(name)
        }

        fn hidden_tables(&self) -> Vec<String> {
            self.$inner.hidden_tables()
        }
    };
}
pub(crate) use passed_on;

/// Every item at its home: for reads that ask for all physical keys, of which that is the first.
pub(super) struct AtHome<'a>(pub(super) &'a dyn LayoutSource);

impl LayoutSource for AtHome<'_> {
    passed_on!(0);

    fn slot(
        &self,
        table: &Table,
        layout: &Layout,
        key: &[u8],
        sort: Option<SortKey<'_>>,
    ) -> Result<Slot, Unplaced> {
        if layout.is_drawn() { layout.home(sort) } else { self.0.slot(table, layout, key, sort) }
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
    passed_on!(inner);

    fn slot(
        &self,
        table: &Table,
        layout: &Layout,
        key: &[u8],
        sort: Option<SortKey<'_>>,
    ) -> Result<Slot, Unplaced> {
        if !layout.is_drawn() {
            return self.inner.slot(table, layout, key, sort);
        }
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
    passed_on!(inner);

    fn slot(
        &self,
        table: &Table,
        layout: &Layout,
        key: &[u8],
        sort: Option<SortKey<'_>>,
    ) -> Result<Slot, Unplaced> {
        if !layout.is_drawn() {
            return self.inner.slot(table, layout, key, sort);
        }
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
