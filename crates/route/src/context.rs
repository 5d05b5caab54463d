//! What one planning knows: the layouts in force, and where items lie whose shard does not follow
//! from their key. And what it learns on the way.
//!
//! Not here: looking for items (`assigned::seek`), entering buckets (`directory`).

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use heatsink_dynamo::Operation;
use heatsink_layout::{
    Bucket, InForce, Layout, LayoutSource, Moving, Phase, Placement, Reads, Slot, Slots, SortKey, Table,
    Unplaced, directory_key,
};
use heatsink_reshard::{Access, Act, Rules, Side, act};

use crate::identity::{self, Identity};
use crate::moving_item::MovingItem;
use crate::unrecorded::{self, Before, Row};

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
    /// Whether that is another slot than the placement's first: a write must not create the item
    /// there if it is gone by then.
    pub(crate) misplaced: bool,
}

impl ItemLocation {
    /// In that slot or nowhere.
    pub(crate) fn at(slot: Slot) -> Self {
        ItemLocation::at_first(Placement::One(slot))
    }

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
    /// The items that are written to while they change their slot.
    pub(crate) moving: Vec<MovingItem>,
    /// Whether a collection is read whose key moves.
    pub(crate) gathers_moving: bool,
    /// The rows of keys without a record that are written to while their table gets other layouts.
    pub(crate) entered: Vec<Row>,
    /// The table of such a key while its writes wait, or of a bucket that nothing is put into yet,
    /// because it gets another number of shards.
    pub(crate) held: Option<String>,
}

impl Learned {
    /// Whether nothing was: the plan is carried out as it is.
    pub(crate) fn is_nothing(&self) -> bool {
        let Learned { buckets, assumed, moving, gathers_moving, entered, held } = self;
        buckets.is_empty()
            && assumed.is_empty()
            && moving.is_empty()
            && !gathers_moving
            && entered.is_empty()
            && held.is_none()
    }

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
    operation: Operation,
    /// Under which layout the collection of a key that moves is read.
    side: Side,
    /// Whether a statement is planned that reads one item.
    selects: bool,
    learned: &'a RefCell<Learned>,
}

impl<'a> PlanContext<'a> {
    pub(crate) fn new(
        layouts: &'a dyn LayoutSource,
        now: &'a dyn Fn() -> Option<u64>,
        places: Option<&'a Places>,
        operation: Operation,
        learned: &'a RefCell<Learned>,
    ) -> Self {
        let (side, selects) = (Side::Old, false);
        PlanContext { layouts, now, places, cursor: None, operation, side, selects, learned }
    }

    /// The same, for a read of a collection under one of the layouts of a key that moves.
    pub(crate) fn side(self, side: Side) -> Self {
        PlanContext { side, ..self }
    }

    /// The same, for a statement that reads one item, under one of the layouts of a key that moves.
    pub(crate) fn selecting(self, selects: bool) -> Self {
        PlanContext { selects, ..self }
    }

    /// The same, for a request whose cursor names the shard that it stands in.
    pub(crate) fn with_cursor(self, shard: Option<u16>) -> Self {
        PlanContext { cursor: shard, ..self }
    }

    /// The layouts.
    pub(crate) fn layouts(&self) -> &'a dyn LayoutSource {
        self.layouts
    }

    /// Whether statements are planned.
    pub(crate) fn is_statement(&self) -> bool {
        use Operation::{BatchExecuteStatement, ExecuteStatement, ExecuteTransaction};
        matches!(self.operation, ExecuteStatement | BatchExecuteStatement | ExecuteTransaction)
    }

    /// The layouts, to be kept by a plan.
    pub(crate) fn handle(&self) -> Arc<dyn LayoutSource> {
        self.layouts.handle()
    }

    /// A table that is on record as sharded.
    pub(crate) fn table(&self, name: &str) -> Option<Arc<Table>> {
        self.layouts.table(name)
    }

    /// The layout of a logical partition key: of one that moves, the old one, unless the new one
    /// was chosen.
    pub(crate) fn layout(&self, table: &Table, key: &[u8]) -> Arc<Layout> {
        match self.layouts.in_force(table, key) {
            InForce::Stable(layout) => layout,
            InForce::Widening(widening) => Arc::clone(&widening.layout),
            InForce::Narrowing(narrowing) => Arc::clone(&narrowing.layout),
            InForce::Stepping(stepping) => Arc::clone(&stepping.layout),
            InForce::Moving(moving) => Arc::clone(match self.side {
                Side::Old => &moving.from,
                Side::New => &moving.to,
            }),
        }
    }

    /// The layout of a key whose collection is read. Of one that moves, learns that it does.
    pub(crate) fn gathered(&self, table: &Table, key: &[u8]) -> Arc<Layout> {
        if self.moves(table, key) {
            self.learned.borrow_mut().gathers_moving = true;
        }
        self.layout(table, key)
    }

    /// Whether items of a key can lie in two places.
    pub(crate) fn moves(&self, table: &Table, key: &[u8]) -> bool {
        self.moving(table, key).is_some_and(|moving| moving.phase > Phase::Reserve)
    }

    /// The slots that hold items of a key that has that layout, in order: of one that moves, those of
    /// both. For layouts without buckets.
    pub(crate) fn slots(&self, table: &Table, key: &[u8], layout: &Layout) -> Vec<Slot> {
        let mut numbers: Vec<u16> = match self.moving(table, key) {
            None => layout.slot_numbers().collect(),
            Some(moving) => moving.from.slot_numbers().chain(moving.to.slot_numbers()).collect(),
        };
        numbers.sort_unstable();
        numbers.dedup();
        numbers.into_iter().map(Slot::shard).collect()
    }

    /// The move of a key that moves.
    pub(crate) fn moving(&self, table: &Table, key: &[u8]) -> Option<Arc<Moving>> {
        if !table.key_layouts().any_moves() {
            return None;
        }
        match self.layouts.in_force(table, key) {
            InForce::Stable(_) | InForce::Widening(_) | InForce::Narrowing(_) | InForce::Stepping(_) => None,
            InForce::Moving(moving) => Some(moving),
        }
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

    /// Where the item with that key lies. Of one whose shard other writers assign, and for which
    /// nobody has looked yet, the hashed slot is assumed, and learned that it was.
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
        if table.change().is_some() && self.operation.can_put() && !self.selects {
            self.learn_first_write(table, key)?;
        }
        if let Some(moving) = self.moving(table, key)
            && let Some(slots) = moving.slots(sort)?
        {
            return Ok(self.locate_moving(table, key, sort, &moving, slots));
        }
        let placement = layout.placement(sort)?;
        // Only counters are looked up twice: they may widen.
        if matches!(placement, Placement::SumOf { .. }) {
            let widened = self.layouts.in_force(table, key).placement(sort)?;
            return Ok(ItemLocation::at_first(widened.unwrap_or(placement)));
        }
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

    /// Where a request goes for an item that changes its slot: what the protocol of moves says
    /// ([`act`]). A write is taken for one that depends on the item; whether it does is asked once
    /// the whole request is known (`moving::plan`), which only a write in HOLD, CHECK or MOVE waits
    /// for.
    fn locate_moving(
        &self,
        table: &Table,
        key: &[u8],
        sort: Option<SortKey<'_>>,
        moving: &Arc<Moving>,
        slots: Slots,
    ) -> ItemLocation {
        use Operation::{BatchGetItem, GetItem, Query, Scan, TransactGetItems};
        let at = |slot| ItemLocation::at_first(Placement::One(slot));
        let under = |side| match side {
            Side::Old => at(slots.from),
            Side::New => at(slots.to),
        };
        // The position of a cursor, and a statement that is sent to both slots: each plan is of one
        // side, also above the high water.
        let one_side = self.selects || matches!(self.operation, Query | Scan);
        let access = match self.operation {
            GetItem | BatchGetItem | TransactGetItems => Access::Read,
            _ if one_side => Access::Read,
            _ => Access::Dependent,
        };
        let above = !one_side && moving.is_above_high_water(sort);
        match act(moving.phase, access, above, Rules::ALL) {
            Act::Old => under(Side::Old),
            Act::ReadBoth if one_side => under(self.side),
            Act::ReadBoth => ItemLocation::at_first(Placement::Moving(slots)),
            Act::New => under(Side::New),
            Act::Wait | Act::PullThenNew | Act::NewIf(..) => {
                let item = MovingItem::new(table, key, sort, moving, slots);
                self.learned.borrow_mut().moving.push(item);
                under(Side::New)
            }
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

    /// Learns what comes before a write of a key that has no record, while all keys of the table get
    /// other layouts.
    ///
    /// # Errors
    /// [`Unplaced::Changing`] for a key that would have another physical key afterwards.
    fn learn_first_write(&self, table: &Table, key: &[u8]) -> Result<(), Unplaced> {
        let mut learned = self.learned.borrow_mut();
        match unrecorded::before(table, key)? {
            Before::Nothing => {}
            Before::Row(row) => learned.entered.push(row),
            Before::Wait => learned.held = Some(table.name.clone()),
        }
        Ok(())
    }

    /// Learns that an item lies in a bucket, or will once the request is carried out; and whether
    /// that has to wait.
    pub(crate) fn learn_bucket(&self, table: &Table, key: &[u8], bucket: Bucket) {
        if self.operation.can_put() {
            let mut learned = self.learned.borrow_mut();
            if !table.key_layouts().is_empty() && self.layouts.in_force(table, key).holds(bucket) {
                learned.held = Some(table.name.clone());
            }
            learned.buckets.push((directory_key(table, key), bucket));
        }
    }
}
