//! Detects that a table to be adopted is sharded already: a copy of a sharded table, or a table
//! that was created again and filled from one. Adoption would turn its shards into logical keys of
//! their own, and requests would find only the items of shard 0.
//!
//! The sign is partition keys or index keys in the reserved form (`game#~3`) that equal what the
//! rule writes. Of values that clients wrote by themselves, one in N equals it by chance.
//!
//! Not here: recording such a table (`as_it_lies`).

use std::collections::BTreeMap;

use heatsink_control::reshard_intent::key_text;
use heatsink_dynamo::AttributeDefinition;
use heatsink_layout::Slot;
use heatsink_layout::codec::is_reserved;

use crate::items::item::{Attributes, ItemContext, NoKey};
use crate::items::item_location::ItemLocation;

/// Values in the reserved form, counted by attribute.
#[derive(Debug, Default)]
pub(crate) struct Sharded(BTreeMap<String, Seen>);

#[derive(Debug, Default)]
struct Seen {
    /// Values that look like shards.
    written_like: u64,
    /// Those that equal what the rule writes.
    by_the_rule: u64,
    /// How many would equal it by chance, in thousandths.
    by_chance: u64,
    first: Option<String>,
}

impl Sharded {
    /// Counts an item and its key. `context` has every layout of the rules.
    pub fn see(&mut self, context: &ItemContext, key: &[u8], item: &Attributes) -> Result<(), NoKey> {
        if context.table.is_reserved(key) {
            let (logical, slot) = context.table.decode(key);
            if slot.is_some_and(|slot| slot != Slot::default()) {
                let shards = context.table.layout_of(logical).map_or(1, |layout| layout.shards);
                let by_the_rule = matches!(
                    context.locate(key, item)?,
                    ItemLocation::Expected | ItemLocation::CounterFragment(_)
                );
                self.add(&context.table.key.partition, key, shards, by_the_rule);
            }
        }
        for index_value in context.index_values(item)? {
            if is_reserved(&index_value.stored) {
                let by_the_rule = index_value.new.as_ref() == Ok(&index_value.stored);
                let shards = index_value.key.shards(index_value.key.logical(&index_value.stored));
                self.add(index_value.key.attribute(), &index_value.stored, shards, by_the_rule);
            }
        }
        Ok(())
    }

    fn add(&mut self, attribute: &AttributeDefinition, value: &[u8], shards: u16, by_the_rule: bool) {
        let seen = self.0.entry(attribute.name.clone()).or_default();
        seen.written_like += 1;
        seen.by_chance += 1_000 / u64::from(shards.max(1));
        if by_the_rule {
            seen.by_the_rule += 1;
            seen.first.get_or_insert_with(|| key_text(value, attribute.key_type));
        }
    }

    /// The reason not to adopt the table again, and what to do instead.
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
