//! Where one stored item lies by the record: at its place, at another place of its key, or where the record puts nothing.
//!
//! Not here: what lies at its place meanwhile (`verify`); moving it (`mover`).

use heatsink_layout::{Layout, Slot};

use crate::item::{Attributes, Ground, NoKey};

/// Where a stored item lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Lies {
    /// Where requests for its key look for it.
    AtItsPlace,
    /// It is a part of a counter. It counts only where the base fragment is there too, under this physical key.
    Part(Vec<u8>),
    /// In a slot of its logical key that is not its own. Requests look for it under this physical key.
    Elsewhere(Vec<u8>),
    /// Under a physical key, or in a form, that the record never writes: why.
    Foreign(String),
}

impl Ground {
    /// Where an item lies that is found under `key`.
    pub fn lies(&self, key: &[u8], item: &Attributes) -> Result<Lies, NoKey> {
        let table = &self.table;
        let (logical, slot) = table.decode(key);
        let whole = Layout::none();
        let layout = table.layouts().of(logical).map_or(&whole, |layout| layout);
        if let Some(slot) = slot.filter(|slot| !has_slot(layout, *slot)) {
            let logical = String::from_utf8_lossy(logical);
            return Ok(Lies::Foreign(format!(
                "its key is written like {slot} of {logical:?}, and by the record {logical:?} has no such shard"
            )));
        }
        if let (Some(slot), Some(counted)) = (slot, layout.counted())
            && slot != Slot::default()
        {
            let primary = self.primary_key(item);
            let other = item.keys().find(|name| !primary.contains_key(*name) && !counted.contains(*name));
            return Ok(match (other, table.physical(logical, layout, Slot::default())) {
                (Some(name), _) => Lies::Foreign(format!(
                    "its key is that of a part of a counter, which holds numbers of the counter alone, and it holds {name:?}"
                )),
                (None, Ok(base)) => Lies::Part(base),
                (None, Err(unplaced)) => Lies::Foreign(unplaced.to_string()),
            });
        }
        Ok(match self.home(key, logical, item)? {
            Ok(home) if home == key => Lies::AtItsPlace,
            Ok(home) => Lies::Elsewhere(home),
            Err(unplaced) => Lies::Foreign(unplaced.to_string()),
        })
    }
}

/// Whether some item of a key that is laid out so can lie in that slot.
fn has_slot(layout: &Layout, slot: Slot) -> bool {
    match (layout.time(), slot.bucket) {
        (None, None) => slot.shard < layout.shards.max(1),
        (Some(time), Some(bucket)) => {
            bucket.granularity() == time.granularity && slot.shard < layout.shards.max(1)
        }
        // Sort keys without a time lie outside all buckets.
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

    fn ground(strategy: Strategy) -> Ground {
        let attribute = |name: &str| AttributeDefinition { name: name.to_owned(), key_type: KeyType::S };
        let schema = TableSchema {
            name: "T".to_owned(),
            id: "t".to_owned(),
            key: KeySchema { partition: attribute("pk"), sort: Some(attribute("sk")) },
            indexes: Vec::new(),
            composite_indexes: Vec::new(),
        };
        let layout = Layout { strategy, shards: 4, hash: Hash::JumpXxh3, version: 1 };
        let layouts = TableLayouts::new(vec![KeyLayout::new(Glob::new("game*"), layout)]);
        Ground { table: Arc::new(Table::new(schema, Arc::new(layouts))) }
    }

    fn lies(ground: &Ground, key: &str, sort: &str, more: &[&str]) -> Lies {
        let mut item = json!({ "pk": { "S": key }, "sk": { "S": sort } }).as_object().unwrap().clone();
        item.extend(more.iter().map(|name| ((*name).to_owned(), json!({ "N": "1" }))));
        ground.lies(key.as_bytes(), &item).unwrap()
    }

    #[test]
    fn every_item_of_a_sharded_key_lies_in_one_place() {
        let ground = ground(Strategy::Calculated { by: By::SortKey });
        let own = ground.table.layouts().of(b"game").unwrap().shard_of(Some(SortKey::S("a")));
        for shard in 0..4 {
            let key = if shard == 0 { "game".to_owned() } else { format!("game#~{shard}") };
            match lies(&ground, &key, "a", &[]) {
                Lies::AtItsPlace => assert_eq!(shard, own),
                Lies::Elsewhere(place) => {
                    assert_ne!(shard, own);
                    assert_eq!(
                        lies(&ground, std::str::from_utf8(&place).unwrap(), "a", &[]),
                        Lies::AtItsPlace
                    );
                }
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn keys_beyond_every_recorded_shard_are_foreign() {
        let ground = ground(Strategy::Calculated { by: By::SortKey });
        for key in ["game#~4", "game#~77", "other#~1"] {
            assert!(matches!(lies(&ground, key, "a", &[]), Lies::Foreign(_)), "{key}");
        }
        // An unescaped key that a client could mean: its place is the escaped one.
        assert_eq!(lies(&ground, "other#~0", "a", &[]), Lies::Elsewhere(b"other#~0#~0".to_vec()));
        assert_eq!(lies(&ground, "other", "a", &[]), Lies::AtItsPlace);
    }

    #[test]
    fn a_part_of_a_counter_holds_its_numbers_alone() {
        let ground = ground(Strategy::Counter { attributes: vec!["votes".to_owned()] });
        assert_eq!(lies(&ground, "game", "a", &["votes", "name"]), Lies::AtItsPlace);
        assert_eq!(lies(&ground, "game#~3", "a", &["votes"]), Lies::Part(b"game".to_vec()));
        assert!(matches!(lies(&ground, "game#~3", "a", &["votes", "name"]), Lies::Foreign(_)));
        assert!(matches!(lies(&ground, "game#~4", "a", &["votes"]), Lies::Foreign(_)));
    }
}
