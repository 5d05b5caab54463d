//! Compares where a stored item is with where the record puts it: at the expected key, at another
//! key of its logical key, or at a key that the record never writes.
//!
//! Not here: what is stored at the expected key (`verify`); moving the item (`item_move`).

use heatsink_layout::{Layout, Slot};

use crate::items::item::{Attributes, ItemContext, NoKey};

/// The location of a stored item, compared with the record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ItemLocation {
    /// Under the key where requests look for it.
    Expected,
    /// A fragment of a counter. It counts only if the base fragment exists under this physical key.
    CounterFragment(Vec<u8>),
    /// In a wrong slot of its logical key. Requests look for it under this physical key.
    Misplaced(Vec<u8>),
    /// Under a physical key, or in a form, that the record never writes: the reason.
    Foreign(String),
}

impl ItemContext {
    /// The location of an item that is stored under `key`.
    pub fn locate(&self, key: &[u8], item: &Attributes) -> Result<ItemLocation, NoKey> {
        let table = &self.table;
        let (logical, slot) = table.decode(key);
        let whole = Layout::none();
        let layout = table.layout_of(logical).map_or(&whole, |layout| layout);
        if let Some(slot) = slot.filter(|slot| !has_slot(layout, *slot)) {
            let logical = self.text(logical);
            return Ok(ItemLocation::Foreign(format!(
                "its key is written like {slot} of {logical:?}, and by the record {logical:?} has no such shard"
            )));
        }
        if let (Some(slot), Some(counted)) = (slot, layout.counter_attributes())
            && slot != Slot::default()
        {
            let primary = self.primary_key(item);
            let other = item.keys().find(|name| !primary.contains_key(*name) && !counted.contains(*name));
            return Ok(match (other, table.physical(logical, layout, Slot::default())) {
                (Some(name), _) => ItemLocation::Foreign(format!(
                    "its key is that of a part of a counter, which holds numbers of the counter alone, and it holds {name:?}"
                )),
                (None, Ok(base)) => ItemLocation::CounterFragment(base),
                (None, Err(unplaced)) => ItemLocation::Foreign(unplaced.to_string()),
            });
        }
        Ok(match self.assigned_key(key, logical, item)? {
            Ok(assigned) if assigned == key => ItemLocation::Expected,
            Ok(assigned) => ItemLocation::Misplaced(assigned),
            Err(unplaced) => ItemLocation::Foreign(unplaced.to_string()),
        })
    }
}

/// Whether a layout can put an item into that slot.
fn has_slot(layout: &Layout, slot: Slot) -> bool {
    match (layout.time(), slot.bucket) {
        // What was written past Heatsink lies under the key itself, whatever slots it has.
        (None, None) => slot.shard == 0 || layout.shard_in(slot.shard).is_some(),
        (Some(time), Some(bucket)) => {
            bucket.granularity() == time.granularity && slot.shard < layout.shards_in(bucket).max(1)
        }
        // Items whose sort key has no time are stored outside all buckets.
        (Some(_), None) => slot.shard == 0,
        (None, Some(_)) => false,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use heatsink_dynamo::{AttributeDefinition, KeySchema, KeyType, TableSchema};
    use heatsink_layout::{By, Glob, Hash, KeyLayout, SortKey, Strategy, Table, TableLayouts};
    use serde_json::json;

    use super::*;

    fn context(strategy: Strategy) -> ItemContext {
        let attribute = |name: &str| AttributeDefinition { name: name.to_owned(), key_type: KeyType::S };
        let schema = TableSchema {
            name: "T".to_owned(),
            id: "t".to_owned(),
            key: KeySchema { partition: attribute("pk"), sort: Some(attribute("sk")) },
            indexes: Vec::new(),
        };
        let layout = Layout { strategy, shards: 4, hash: Hash::JumpXxh3, version: 1 };
        let layouts = TableLayouts::new(vec![KeyLayout::new(Glob::new("game*"), layout)]);
        ItemContext { table: Arc::new(Table::new(schema, Arc::new(layouts))) }
    }

    fn locate(context: &ItemContext, key: &str, sort: &str, more: &[&str]) -> ItemLocation {
        let mut item = json!({ "pk": { "S": key }, "sk": { "S": sort } }).as_object().unwrap().clone();
        item.extend(more.iter().map(|name| ((*name).to_owned(), json!({ "N": "1" }))));
        context.locate(key.as_bytes(), &item).unwrap()
    }

    #[test]
    fn every_item_of_a_sharded_key_lies_in_one_place() {
        let context = context(Strategy::calculated(By::SortKey));
        let own = context.table.layouts().of(b"game").unwrap().shard_of(Some(SortKey::S("a")));
        for shard in 0..4 {
            let key = if shard == 0 { "game".to_owned() } else { format!("game#~{shard}") };
            match locate(&context, &key, "a", &[]) {
                ItemLocation::Expected => assert_eq!(shard, own),
                ItemLocation::Misplaced(place) => {
                    assert_ne!(shard, own);
                    assert_eq!(
                        locate(&context, std::str::from_utf8(&place).unwrap(), "a", &[]),
                        ItemLocation::Expected
                    );
                }
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn keys_beyond_every_recorded_shard_are_foreign() {
        let context = context(Strategy::calculated(By::SortKey));
        for key in ["game#~4", "game#~77", "other#~1"] {
            assert!(matches!(locate(&context, key, "a", &[]), ItemLocation::Foreign(_)), "{key}");
        }
        // An unescaped key that a client could mean: its key is the escaped one.
        assert_eq!(locate(&context, "other#~0", "a", &[]), ItemLocation::Misplaced(b"other#~0#~0".to_vec()));
        assert_eq!(locate(&context, "other", "a", &[]), ItemLocation::Expected);
    }

    #[test]
    fn an_item_belongs_into_the_slot_that_its_shard_has_by_name() {
        let usual = Layout { shards: 4, ..Layout::none() };
        let usual = Layout { strategy: Strategy::calculated(By::SortKey), ..usual };
        let sort = SortKey::S("a");
        let shard = usize::from(usual.shard_of(Some(sort)));
        let mut slots = vec![5, 6, 7, 8];
        slots[shard] = 9;
        let context = context(usual.with_slots(&slots).unwrap().strategy);
        assert_eq!(locate(&context, "game#~9", "a", &[]), ItemLocation::Expected);
        // Under the key itself it was written past Heatsink; no shard has slot 1.
        for misplaced in ["game", &format!("game#~{}", slots[(shard + 1) % 4])] {
            let place = ItemLocation::Misplaced(b"game#~9".to_vec());
            assert_eq!(locate(&context, misplaced, "a", &[]), place, "{misplaced}");
        }
        assert!(matches!(locate(&context, "game#~1", "a", &[]), ItemLocation::Foreign(_)));
    }

    #[test]
    fn a_part_of_a_counter_holds_its_numbers_alone() {
        let context = context(Strategy::Counter { attributes: vec!["votes".to_owned()] });
        assert_eq!(locate(&context, "game", "a", &["votes", "name"]), ItemLocation::Expected);
        assert_eq!(
            locate(&context, "game#~3", "a", &["votes"]),
            ItemLocation::CounterFragment(b"game".to_vec())
        );
        assert!(matches!(locate(&context, "game#~3", "a", &["votes", "name"]), ItemLocation::Foreign(_)));
        assert!(matches!(locate(&context, "game#~4", "a", &["votes"]), ItemLocation::Foreign(_)));
    }
}
