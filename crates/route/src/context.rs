//! What one planning knows: the layouts in force, and where items lie whose shard does not follow from their key. And what it learns on the way.
//!
//! Not here: looking for items (`assigned::seek`), entering buckets (`directory`).

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use heatsink_layout::{
    Bucket, InForce, Layout, LayoutSource, Placement, Reads, Slot, SortKey, Table, Unplaced, directory_key,
};

use crate::items::identity::{self, Identity};

/// An item: its table and its logical key.
pub(crate) type Item = (String, Identity);

/// Where items were found; `None` for one that is nowhere.
pub(crate) type Places = HashMap<Item, Option<Slot>>;

/// An item that a request names.
#[derive(Clone, Debug)]
pub(crate) struct Named {
    pub(crate) table: String,
    pub(crate) layout: Arc<Layout>,
    pub(crate) placement: Placement,
    /// Its logical key, raw.
    pub(crate) key: Vec<u8>,
    pub(crate) identity: Identity,
}

impl Named {
    /// Which item it is.
    pub(crate) fn item(&self) -> Item {
        (self.table.clone(), self.identity.clone())
    }
}

/// Where an item lies, as far as is known.
#[derive(Clone, Debug)]
pub(crate) struct ItemLocation {
    /// Where it may lie.
    pub(crate) placement: Placement,
    /// The slot that a request for it goes to: where it was found, or else the placement's first.
    pub(crate) slot: Slot,
    /// Whether that is another slot than the placement's first: a write must not create the item there if it is gone by then.
    pub(crate) misplaced: bool,
}

impl ItemLocation {
    fn at_first(placement: Placement) -> Self {
        ItemLocation { slot: placement.first(), placement, misplaced: false }
    }
}

/// What a planning learns.
#[derive(Debug, Default)]
pub(crate) struct Learned {
    /// The buckets that items are put into, by their keys in the directory.
    pub(crate) buckets: Vec<(String, Bucket)>,
    /// The items that were taken to lie in their hashed slot, because nobody has looked for them.
    pub(crate) assumed: Vec<Named>,
}

impl Learned {
    /// The assumed items, each once.
    pub(crate) fn assumed(self) -> Vec<Named> {
        let mut met = std::collections::HashSet::new();
        let mut assumed = self.assumed;
        assumed.retain(|one| met.insert(one.item()));
        assumed
    }
}

/// What one planning knows.
#[derive(Clone, Copy)]
pub(crate) struct PlanContext<'a> {
    layouts: &'a dyn LayoutSource,
    /// Tells the time in milliseconds since 1970, if it is known.
    now: &'a dyn Fn() -> Option<u64>,
    /// Where the items lie that were looked for; `None` before anybody has looked.
    places: Option<&'a Places>,
    /// The shard that the request's cursor names.
    cursor: Option<u16>,
    /// Whether the request can put items, so that buckets have to be entered.
    writes: bool,
    learned: &'a RefCell<Learned>,
}

impl<'a> PlanContext<'a> {
    pub(crate) fn new(
        layouts: &'a dyn LayoutSource,
        now: &'a dyn Fn() -> Option<u64>,
        places: Option<&'a Places>,
        writes: bool,
        learned: &'a RefCell<Learned>,
    ) -> Self {
        PlanContext { layouts, now, places, cursor: None, writes, learned }
    }

    /// The same, for a request whose cursor names the shard that it stands in.
    pub(crate) fn with_cursor(self, shard: Option<u16>) -> Self {
        PlanContext { cursor: shard, ..self }
    }

    /// A table that is on record as sharded.
    pub(crate) fn table(&self, name: &str) -> Option<Arc<Table>> {
        self.layouts.table(name)
    }

    /// The layout of a logical partition key.
    pub(crate) fn layout(&self, table: &Table, key: &[u8]) -> Arc<Layout> {
        let InForce::Stable(layout) = self.layouts.in_force(table, key);
        layout
    }

    /// How reads of a logical partition key are gathered.
    pub(crate) fn reads(&self, table: &Table, key: &[u8]) -> Reads {
        self.layouts.reads(table, key)
    }

    /// Up to when writers that bypass Heatsink may have begun buckets.
    pub(crate) fn now(&self) -> Option<u64> {
        (self.now)()
    }

    /// The slot of the item with that key.
    ///
    /// # Errors
    /// As [`locate`](Self::locate).
    pub(crate) fn slot(
        &self,
        table: &Table,
        layout: &Layout,
        key: &[u8],
        sort: Option<SortKey<'_>>,
    ) -> Result<Slot, Unplaced> {
        self.locate(table, layout, key, sort).map(|location| location.slot)
    }

    /// Where the item with that key lies. Of one whose shard other writers assign, and for which nobody has looked yet, the hashed slot is
    /// assumed, and learned that it was.
    ///
    /// # Errors
    /// [`Unplaced`] where the sort key cannot be an item's, or nobody knows where the item lies.
    pub(crate) fn locate(
        &self,
        table: &Table,
        layout: &Layout,
        key: &[u8],
        sort: Option<SortKey<'_>>,
    ) -> Result<ItemLocation, Unplaced> {
        if let Some(named) = table.as_shard(key, sort) {
            return named.map(|()| ItemLocation::at_first(Placement::One(Slot::default())));
        }
        let placement = layout.placement(sort)?;
        let Placement::AnyOf { hashed, .. } = placement else {
            return Ok(ItemLocation::at_first(placement));
        };
        let at = |placement, slot| ItemLocation { placement, slot, misplaced: slot != hashed };
        // A request names one item at most where it has a cursor: the one that it stands at.
        if let Some(shard) = self.cursor.filter(|shard| *shard < layout.shards) {
            return Ok(at(placement, Slot { shard, ..hashed }));
        }
        let item = Identity::of(key, sort);
        let Some(places) = self.places else {
            self.learned.borrow_mut().assumed.push(Named {
                table: table.name.clone(),
                layout: Arc::new(layout.clone()),
                placement: placement.clone(),
                key: identity::raw(table, key, sort),
                identity: item,
            });
            return Ok(ItemLocation::at_first(placement));
        };
        match places.get(&(table.name.clone(), item)) {
            Some(found) => Ok(at(placement, found.unwrap_or(hashed))),
            None => layout.slot_of(sort).map(|slot| at(placement, slot)),
        }
    }

    /// The slot where an item is known to lie whose slot does not follow from its key.
    pub(crate) fn found(&self, table: &Table, key: &[u8], sort: Option<SortKey<'_>>) -> Option<Slot> {
        let layout = self.layout(table, key);
        if let Some(shard) =
            self.cursor.filter(|shard| layout.is_externally_assigned() && *shard < layout.shards)
        {
            return Some(Slot { shard, ..layout.hashed_slot(sort).ok()? });
        }
        *self.places?.get(&(table.name.clone(), Identity::of(key, sort)))?
    }

    /// Learns that an item lies in a bucket, or will once the request is carried out.
    pub(crate) fn learn_bucket(&self, table: &Table, key: &[u8], bucket: Bucket) {
        if self.writes {
            self.learned.borrow_mut().buckets.push((directory_key(table, key), bucket));
        }
    }
}
