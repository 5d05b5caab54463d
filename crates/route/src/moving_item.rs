//! Items that change their slot, as planning meets them.

use std::sync::Arc;

use heatsink_layout::{Moving, Slots, SortKey, Table};

use crate::identity::{self, Identity};

/// An item that a request writes to and whose slot changes.
#[derive(Clone, Debug)]
pub(crate) struct MovingItem {
    pub(crate) table: String,
    pub(crate) identity: Identity,
    /// Its logical key, raw.
    pub(crate) key: Vec<u8>,
    pub(crate) moving: Arc<Moving>,
    pub(crate) slots: Slots,
}

impl MovingItem {
    pub(crate) fn new(
        table: &Table,
        key: &[u8],
        sort: Option<SortKey<'_>>,
        moving: &Arc<Moving>,
        slots: Slots,
    ) -> Self {
        MovingItem {
            table: table.name.clone(),
            identity: Identity::of(key, sort),
            key: identity::raw(table, key, sort),
            moving: Arc::clone(moving),
            slots,
        }
    }
}
