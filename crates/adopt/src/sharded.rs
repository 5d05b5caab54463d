//! Whether a table that is to be brought under its rules is sharded already: a copy of a sharded table, or one that was made again and filled
//! from one. Its shards would become logical keys of their own, and requests would find the items of shard 0 alone.
//!
//! The sign is values in the reserved form (`game#~3`), in partition keys or in keys of indexes, that are just what the rule writes. Of values
//! that clients wrote by themselves one in N is so by chance.
//!
//! Not here: putting such a table on record (`as_it_lies`).

use std::collections::BTreeMap;

use heatsink_layout::Slot;
use heatsink_layout::codec::is_reserved;

use crate::item::{Attributes, Ground, NoKey};
use crate::place::Lies;

/// What was seen of values in the reserved form, by attribute.
#[derive(Debug, Default)]
pub(crate) struct Sharded(BTreeMap<String, Seen>);

#[derive(Debug, Default)]
struct Seen {
    /// Values that are written like shards.
    written_like: u64,
    /// Those of them that are just what the rule writes.
    by_the_rule: u64,
    /// How many would be by chance, in thousandths.
    by_chance: u64,
    first: Option<String>,
}

impl Sharded {
    /// Takes in an item and where it lies. `ground` has every layout of the rules.
    pub fn see(&mut self, ground: &Ground, key: &[u8], item: &Attributes) -> Result<(), NoKey> {
        if ground.table.is_reserved(key) {
            let (logical, slot) = ground.table.decode(key);
            if slot.is_some_and(|slot| slot != Slot::default()) {
                let shards = ground.table.layouts().of(logical).map_or(1, |layout| layout.shards);
                let by_the_rule = matches!(ground.lies(key, item)?, Lies::AtItsPlace | Lies::Part(_));
                self.add(&ground.table.key.partition.name, key, shards, by_the_rule);
            }
        }
        for held in ground.held(item, true)? {
            if is_reserved(&held.stored) {
                let by_the_rule = held.new.as_ref() == Ok(&held.stored);
                let shards = held.key.shards(held.key.logical(&held.stored));
                self.add(&held.key.attribute().name, &held.stored, shards, by_the_rule);
            }
        }
        Ok(())
    }

    fn add(&mut self, attribute: &str, value: &[u8], shards: u16, by_the_rule: bool) {
        let seen = self.0.entry(attribute.to_owned()).or_default();
        seen.written_like += 1;
        seen.by_chance += 1_000 / u64::from(shards.max(1));
        if by_the_rule {
            seen.by_the_rule += 1;
            seen.first.get_or_insert_with(|| String::from_utf8_lossy(value).into_owned());
        }
    }

    /// Why the table is not to be brought under its rules again, and what to do instead.
    pub fn verdict(&self, table: &str) -> Option<String> {
        self.0.iter().find_map(|(attribute, seen)| seen.verdict(table, attribute))
    }
}

impl Seen {
    fn verdict(&self, table: &str, attribute: &str) -> Option<String> {
        let Seen { written_like, by_the_rule, by_chance, first } = self;
        let first = first.as_ref()?;
        // Five standard deviations and five items beyond chance.
        let chance = by_chance + 5 * (by_chance * 1_000).isqrt() + 5_000;
        (by_the_rule == written_like || by_the_rule * 1_000 > chance).then(|| {
            format!(
                "Table {table} seems to be sharded already: of {written_like} items whose {attribute} is written like a shard, {by_the_rule} have just \
                 the value that the rule writes, such as {first:?}. Adopted once more, each shard would become a logical key, and requests would \
                 miss its items. If it is a copy of a sharded table, or holds the items of one, put it on record with `heatsink adopt {table} \
                 --as-it-lies`, or with the record of the original with `heatsink adopt {table} --records-from ID`. If clients wrote these values: \
                 `heatsink adopt {table} --as-logical-keys`"
            )
        })
    }
}
