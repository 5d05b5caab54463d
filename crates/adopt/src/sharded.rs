//! Whether a table that is to be brought under its rules is sharded already: a copy of a sharded table, or one that was made again and filled
//! from one. Its shards would become logical keys of their own, and requests would find the items of shard 0 alone.
//!
//! The sign is keys in the reserved form (`game#~3`) whose items lie just where the rule puts them. Of keys that clients wrote by
//! themselves one item in N lies there by chance.
//!
//! Not here: putting such a table on record (`as_it_lies`).

use heatsink_layout::Slot;

use crate::item::{Attributes, Ground, NoKey};
use crate::place::Lies;

/// What was seen of keys in the reserved form.
#[derive(Debug, Default)]
pub(crate) struct Sharded {
    /// Items whose key is written like a shard.
    written_like: u64,
    /// Those of them that lie where the rule puts them.
    at_their_place: u64,
    /// How many would by chance, in thousandths.
    by_chance: u64,
    first: Option<String>,
}

impl Sharded {
    /// Takes in an item and where it lies.
    pub fn see(&mut self, ground: &Ground, key: &[u8], item: &Attributes) -> Result<(), NoKey> {
        if !ground.table.is_reserved(key) {
            return Ok(());
        }
        let (logical, slot) = ground.table.decode(key);
        if slot.is_none_or(|slot| slot == Slot::default()) {
            return Ok(());
        }
        self.written_like += 1;
        let shards = ground.table.layouts().of(logical).map_or(1, |layout| layout.shards.max(1));
        self.by_chance += 1_000 / u64::from(shards);
        if matches!(ground.lies(key, item)?, Lies::AtItsPlace | Lies::Part(_)) {
            self.at_their_place += 1;
            self.first.get_or_insert_with(|| String::from_utf8_lossy(key).into_owned());
        }
        Ok(())
    }

    /// Why the table is not to be brought under its rules again, and what to do instead.
    pub fn verdict(&self, table: &str) -> Option<String> {
        let Sharded { written_like, at_their_place, by_chance, first } = self;
        let first = first.as_ref()?;
        // Five standard deviations and five items beyond chance.
        let chance = by_chance + 5 * (by_chance * 1_000).isqrt() + 5_000;
        (at_their_place == written_like || at_their_place * 1_000 > chance).then(|| {
            format!(
                "Table {table} seems to be sharded already: of {written_like} items whose keys are written like shards, {at_their_place} lie just where \
                 the rule puts them, such as those of {first:?}. Adopted once more, each shard would become a logical key, and requests would miss \
                 its items. If it is a copy of a sharded table, or holds the items of one, put it on record with `heatsink adopt {table} \
                 --as-it-lies`, or with the record of the original with `heatsink adopt {table} --records-from ID`. If clients wrote these keys: \
                 `heatsink adopt {table} --as-logical-keys`"
            )
        })
    }
}
