//! Items before and after a write: their sizes, and their entries in indexes.

use std::cell::OnceCell;

use heatsink_dynamo::size::{item_size, value_size};
use heatsink_dynamo::value::{read_item, write_item};
use heatsink_dynamo::{Item, Value};
use heatsink_physics::{Entry, KeyPosition};

use super::catalogue::{Key, Projection, TableInfo};
use super::locate;

/// A whole item.
pub(super) struct Image {
    item: Item,
    /// As the wire has it, where an index wants its key; tables without indexes never do.
    raw: OnceCell<Vec<u8>>,
}

/// An index's entry of an item. Two entries are the same if key and attributes are.
pub(super) type EntryOf<'a> = Entry<Vec<u8>, Vec<(&'a String, &'a Value)>>;

impl Image {
    /// Reads an item's JSON; `None` if it is none, which the store refuses.
    pub(super) fn read(raw: &[u8]) -> Option<Image> {
        read_item(raw).ok().map(Image::of)
    }

    pub(super) fn of(item: Item) -> Image {
        Image { item, raw: OnceCell::new() }
    }

    pub(super) fn item(&self) -> &Item {
        &self.item
    }

    pub(super) fn bytes(&self) -> usize {
        item_size(&self.item)
    }

    /// What an index with this key and projection holds of it, and where; `None` if the item lacks
    /// a part of the key.
    pub(super) fn entry(
        &self,
        table: &Key,
        index: &Key,
        projection: &Projection,
    ) -> Option<(KeyPosition, EntryOf<'_>)> {
        let raw = self.raw.get_or_init(|| {
            let mut raw = Vec::new();
            write_item(&self.item, &mut raw);
            raw
        });
        let point = locate::item(raw, index)?;
        let key = locate::identity(raw, index)?;
        let keys = || [table, index].into_iter().flat_map(|key| key.partition.iter().chain(&key.sort));
        let held = |name: &String| match projection {
            Projection::All => true,
            Projection::Keys(included) => {
                included.contains(name) || keys().any(|attribute| attribute.name == *name)
            }
        };
        let projected: Vec<_> = self.item.iter().filter(|(name, _)| held(name)).collect();
        let bytes = projected.iter().map(|(name, value)| name.len() + value_size(value)).sum::<usize>();
        Some((point, Entry { key, projected, bytes: bytes as u64 }))
    }

    /// Bytes in the table's own partitions: the item, and its entries in local indexes.
    pub(super) fn stored(&self, table: &TableInfo) -> usize {
        let locals = table.locals.iter();
        let entries = locals.filter_map(|local| self.entry(&table.key, &local.key, &local.projection));
        #[allow(clippy::cast_possible_truncation, reason = "at most an item's bytes")]
        let entries = entries.map(|(_, entry)| entry.bytes as usize).sum::<usize>();
        self.bytes() + entries
    }
}
