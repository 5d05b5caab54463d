//! Keys of clients that are written like physical ones: code that shards by hand sends `game_x#2`
//! where the table's rule makes such keys of `game_x` itself. What becomes of them is the rule's to
//! say, and never on record.
//!
//! Only templates are met so: a client's key in the form of Heatsink's own suffixes is escaped.

use crate::{Layout, PhysicalKeys, Slot, SortKey, Table, Unplaced};

impl Table {
    /// The same table with what becomes of such keys, for each of its layouts in order.
    #[must_use]
    pub fn with_physical_keys(mut self, of_layouts: Vec<PhysicalKeys>) -> Self {
        self.physical_keys = of_layouts;
        self
    }

    /// What becomes of a client's key, if it is written like a physical one.
    pub fn written_as_physical(&self, key: &[u8]) -> Option<PhysicalKeys> {
        self.shard_named(key).map(|(.., taken)| taken)
    }

    /// Whether a client's key is refused.
    ///
    /// # Errors
    /// [`Unplaced::Physical`] with the logical key that it should be.
    pub fn admit(&self, key: &[u8]) -> Result<(), Unplaced> {
        match self.shard_named(key) {
            Some((logical, _, PhysicalKeys::Refuse)) => Err(Unplaced::Physical {
                key: String::from_utf8_lossy(key).into_owned(),
                logical: String::from_utf8_lossy(logical).into_owned(),
            }),
            _ => Ok(()),
        }
    }

    /// Whether a client's key is taken as a shard that the item with that sort key belongs to;
    /// `None` where it is not taken as a shard.
    ///
    /// # Errors
    /// [`Unplaced::OtherShard`] where the item belongs to another one: nobody would find it there.
    pub fn as_shard(&self, key: &[u8], sort: Option<SortKey<'_>>) -> Option<Result<(), Unplaced>> {
        let (logical, slot, PhysicalKeys::AsShard) = self.shard_named(key)? else { return None };
        let layout: &Layout = self.layouts().of(logical)?;
        Some(layout.slots_of(sort).and_then(|slots| match slots.contains(&slot) {
            true => Ok(()),
            false => Err(Unplaced::OtherShard {
                key: String::from_utf8_lossy(key).into_owned(),
                slots: slots.iter().map(Slot::to_string).collect::<Vec<_>>().join(", "),
            }),
        }))
    }

    fn shard_named<'a>(&self, key: &'a [u8]) -> Option<(&'a [u8], Slot, PhysicalKeys)> {
        if !self.has_templates() {
            return None;
        }
        let (logical, slot) = self.decode(key);
        let (slot, own) = (slot?, self.layouts().of(logical)?);
        let at = self.layouts().iter().position(|one| std::sync::Arc::ptr_eq(one.layout(), own));
        let taken = at.and_then(|at| self.physical_keys.get(at)).copied().unwrap_or_default();
        Some((logical, slot, taken))
    }
}
