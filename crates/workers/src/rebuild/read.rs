//! Reads the keys of a table's items, and the values that they have in indexes, and judges which
//! numbers of shards put them where they are.
//!
//! Not here: what is recorded of it (`rebuild`).

use std::collections::BTreeMap;
use std::sync::Arc;

use heatsink_control::registry::Registry;
use heatsink_control::reshard_intent::key_text;
use heatsink_control::rules::attribute_to_spread;
use heatsink_control::{KeyTraces, MAX_KEY_RECORDS, MOST_SHARDS, ShardTraces};
use heatsink_dynamo::{AttributeDefinition, KeyType, TableSchema};
use heatsink_layout::codec::{is_reserved, is_reserved_with_buckets, split_shard, split_shard_of};
use heatsink_layout::{
    By, Hash, Layout, MAX_VALUE_LAYOUTS, OfIndex, PrimaryKey, SortKey, SplitPoints, Strategy, Table,
    ValueLayout,
};

use super::rebuilt::{NotTold, Rebuilt, Told};
use crate::error::WorkerError;
use crate::items::item::{Attributes, ItemContext, Scalar};
use crate::progress::Progress;
use crate::verify::pages::Pages;

/// With no other sign than the items, chance has to be less than this.
const CHANCE: f64 = 1e-5;

/// What was read.
#[derive(Default)]
pub(super) struct Seen {
    pub items: u64,
    keys: ShardTraces,
    /// The values of each index that are written like shards, by what those would be shards of.
    values: Vec<(OfIndex, BTreeMap<Vec<u8>, KeyTraces>)>,
    /// Keys in forms that only rules write, or of items without a sort key, with the number of
    /// items and the reason why they tell nothing.
    of_rules: BTreeMap<Vec<u8>, (u64, &'static str)>,
}

/// Reads every item; twice, if some keys or values are written like shards.
pub(super) async fn read(
    registry: &Registry,
    schema: &TableSchema,
    rate: Option<u64>,
    progress: &dyn Progress,
) -> Result<Seen, WorkerError> {
    let indexes = spreadable(schema);
    // A value of each index, so that its attribute is read.
    let values: Vec<ValueLayout> = indexes.iter().map(|index| layout(index, Vec::new(), 1)).collect();
    let table = Table::new(schema.clone(), Arc::default()).with_value_layouts(&values);
    let context = ItemContext { table: Arc::new(table) };
    let values = indexes.into_iter().map(|index| (index, BTreeMap::new())).collect();
    let mut seen = Seen { values, ..Seen::default() };
    for first in [true, false] {
        let mut pages = Pages::reading(registry, &context, None, rate);
        while let Some(page) = pages.next().await? {
            for item in &page {
                let key = context.key(item)?;
                let sort = context.sort(item)?;
                let sort = sort.as_ref().map(Scalar::key);
                if first {
                    seen.first(schema.key.partition.key_type, &key, sort, item);
                } else {
                    seen.second(&schema.key.partition, &key, sort, item);
                }
            }
            if seen.keys.len() > MAX_KEY_RECORDS {
                return Err(WorkerError::Usage(format!(
                    "More than {MAX_KEY_RECORDS} keys of table {0} are written like shards, which is more than can be on record one by one. If a rule lays the \
                     table out: `heatsink adopt {0} --as-it-lies`",
                    schema.name
                )));
            }
            progress.passed(u64::try_from(page.len()).unwrap_or(0));
        }
        if seen.keys.is_empty() && seen.values.iter().all(|(_, values)| values.is_empty()) {
            break;
        }
    }
    Ok(seen)
}

impl Seen {
    /// Notes what is written like a shard.
    fn first(&mut self, key_type: KeyType, key: &[u8], sort: Option<SortKey<'_>>, item: &Attributes) {
        self.items += 1;
        let why = match (split_shard_of(key, key_type), sort) {
            (None, _) if key_type == KeyType::N => None,
            (None, _) if is_reserved_with_buckets(key) && !is_reserved(key) => Some((key, BUCKET)),
            (Some((base, _)), _) if is_reserved_with_buckets(base) && !is_reserved(base) => {
                Some((base, BUCKET))
            }
            (None, _) if is_reserved(key) => Some((key, ESCAPED)),
            (Some((base, _)), None) => Some((base, NO_SORT_KEY)),
            (Some(_), Some(sort)) => {
                self.keys.see(key, key_type, sort);
                None
            }
            (None, _) => None,
        };
        if let Some((key, why)) = why {
            self.of_rules.entry(key.to_vec()).or_insert((0, why)).0 += 1;
        }
        for (index, values) in &mut self.values {
            let value = bytes(item, &index.attribute);
            if let Some((base, _)) = value.as_deref().and_then(split_shard)
                && values.len() <= MAX_VALUE_LAYOUTS
            {
                values.entry(base.to_vec()).or_default();
            }
        }
    }

    /// Adds the items of the keys themselves, and all items of the values.
    fn second(
        &mut self,
        partition: &AttributeDefinition,
        key: &[u8],
        sort: Option<SortKey<'_>>,
        item: &Attributes,
    ) {
        if let Some(sort) = sort {
            self.keys.see_base(key, sort);
        }
        let logical = split_shard_of(key, partition.key_type).map_or(key, |(base, _)| base);
        let text = String::from_utf8_lossy(logical);
        let partition = match partition.key_type {
            KeyType::S => SortKey::S(&text),
            KeyType::N => SortKey::N(&text),
            KeyType::B => SortKey::B(logical),
        };
        for (index, values) in &mut self.values {
            let Some(value) = bytes(item, &index.attribute) else { continue };
            let (base, shard) = split_shard(&value).unwrap_or((&value, 0));
            if let Some(traces) = values.get_mut(base) {
                traces.add(PrimaryKey { partition, sort }.shard_counts(shard, MOST_SHARDS), shard);
            }
        }
    }

    /// Judges each key and value. `signed`: something beside the items says that the table was on
    /// record.
    pub fn judge(&self, schema: &TableSchema, signed: bool, rebuilt: &mut Rebuilt) {
        let key_type = schema.key.partition.key_type;
        for (key, (items, why)) in &self.of_rules {
            rebuilt.not_told.push(NotTold {
                key: key_text(key, key_type),
                index: None,
                items: *items,
                why: (*why).to_owned(),
            });
        }
        let looked_at = self.keys.len() + self.values.iter().map(|(_, values)| values.len()).sum::<usize>();
        let chance = if signed { 1.1 } else { CHANCE / u32::try_from(looked_at).map_or(f64::MAX, f64::from) };
        let keys = self.keys.iter().map(|(key, _)| key);
        let nested: Vec<&[u8]> = keys.filter(|key| self.is_nested(key, key_type)).collect();
        for (key, traces) in self.keys.iter() {
            let text = key_text(key, key_type);
            let verdict = match nested.contains(&key) {
                true => Err(NESTED.to_owned()),
                false => told(traces, chance),
            };
            if let Some(lies) = sort_out(rebuilt, text, None, traces, verdict) {
                rebuilt.found.keys.push((key.to_vec(), lies.layout()));
            }
        }
        for (index, values) in &self.values {
            for (value, traces) in values {
                let text = key_text(value, index.attribute.key_type);
                let verdict = match values.len() > MAX_VALUE_LAYOUTS {
                    true => Err(MANY_VALUES.to_owned()),
                    false => told(traces, chance),
                };
                if let Some(lies) = sort_out(rebuilt, text, Some(index), traces, verdict) {
                    rebuilt.found.values.push(layout(index, value.clone(), lies.least));
                }
            }
        }
    }

    /// Whether a key would be a shard of another one that has shards.
    fn is_nested(&self, key: &[u8], key_type: KeyType) -> bool {
        split_shard_of(key, key_type)
            .is_some_and(|(base, _)| self.keys.iter().any(|(other, _)| other == base))
    }
}

const BUCKET: &str = "it is written like a bucket, which only rules have: `heatsink adopt TABLE --as-it-lies` records the table under its rules";
const ESCAPED: &str = "it is written like an escaped key of a table that a rule lays out: `heatsink adopt TABLE --as-it-lies` records the table under its rules";
const NO_SORT_KEY: &str = "the table has no sort key, so these would be the parts of a counter, and they do not tell which attributes are summed";
const NESTED: &str = "it is written like a shard of another key that has shards, and has such keys itself";
const MANY_VALUES: &str = "the index has more such values than can be on record one by one: if a rule spreads it, `heatsink adopt TABLE --as-it-lies` records it";

/// How the items of a key lie.
struct Lies {
    /// The least number of shards with which every item lies where it does, and the greatest.
    least: u16,
    greatest: u16,
    /// Their slots by name; empty where shard k has slot k.
    slots: Vec<u16>,
    /// Where ranges begin, if they are that.
    split_at: Option<SplitPoints>,
    /// How likely they lie so by chance, at most.
    by_chance: f64,
}

impl Lies {
    fn of(traces: &KeyTraces) -> Option<Self> {
        let least = traces.least();
        let by_chance = traces.by_chance();
        let hashed = |greatest, slots| Lies { least, greatest, slots, split_at: None, by_chance };
        if let Some((_, greatest)) = traces.shards {
            return Some(hashed(greatest, Vec::new()));
        }
        let named = traces.slots().map(|slots| hashed(least, slots));
        match (named, traces.ranges()) {
            (Some(named), None) => Some(named),
            // Of many items not both are so.
            (Some(named), Some(told)) if by_chance < told.by_chance.min(CHANCE) => Some(named),
            (_, Some(told)) => {
                let ranges = told.split_points.ranges();
                let (slots, by_chance) = (told.slots, told.by_chance);
                let split_at = Some(told.split_points);
                Some(Lies { least: ranges, greatest: ranges, slots, split_at, by_chance })
            }
            (None, None) => None,
        }
    }

    fn layout(&self) -> Layout {
        let strategy = match &self.split_at {
            Some(points) => Strategy::range(points.clone()),
            None => Strategy::calculated(By::SortKey),
        };
        let layout = Layout { strategy, shards: self.least, hash: Hash::JumpXxh3, version: 1 };
        if self.slots.is_empty() { layout } else { layout.clone().with_slots(&self.slots).unwrap_or(layout) }
    }
}

/// How the items of a key lie; or the reason why it is not told.
fn told(traces: &KeyTraces, chance: f64) -> Result<Lies, String> {
    let Some(lies) = Lies::of(traces) else {
        return Err(
            "no number of shards, in any slots, and no ranges of the sort key put all of its items where they are: the key was being moved, it is a counter, its shards follow from a part of the sort key, or \
             clients wrote these keys themselves"
                .to_owned(),
        );
    };
    if lies.least == 1 {
        return Err(
            "all of its items lie under one such key, which may be the slot of a whole key or a client's own"
                .to_owned(),
        );
    }
    // Slots by name are told by their items alone. Ranges are right for all items that there are, so
    // a sign that the table was on record is enough for them.
    let is_signed = chance > 1.0;
    let is_told = lies.slots.is_empty() || lies.split_at.is_some() && is_signed;
    let chance = if is_told { chance } else { chance.min(CHANCE) };
    if lies.by_chance >= chance {
        return Err(format!(
            "its {} items may lie so by chance, and nothing else says that the table was on record (`required = true` under [fence] says it)",
            traces.items
        ));
    }
    Ok(lies)
}

/// Lists a key or value as told, and gives its number of shards and their slots; or as not told.
fn sort_out(
    rebuilt: &mut Rebuilt,
    key: String,
    index: Option<&OfIndex>,
    traces: &KeyTraces,
    verdict: Result<Lies, String>,
) -> Option<Lies> {
    let (items, index) = (traces.items, index.map(|index| index.name.clone()));
    match verdict {
        Ok(lies) => {
            let list = if index.is_none() { &mut rebuilt.keys } else { &mut rebuilt.values };
            let Lies { least: shards, greatest: at_most, slots, split_at, by_chance } = &lies;
            let (slots, split_at) = (slots.clone(), split_at.clone());
            list.push(Told {
                key,
                index,
                shards: *shards,
                at_most: *at_most,
                slots,
                split_at,
                items,
                by_chance: *by_chance,
            });
            Some(lies)
        }
        Err(why) => {
            rebuilt.not_told.push(NotTold { key, index, items, why });
            None
        }
    }
}

/// The indexes whose values can be spread, one for each attribute.
fn spreadable(schema: &TableSchema) -> Vec<OfIndex> {
    let mut found: Vec<OfIndex> = Vec::new();
    for index in schema.indexes.iter().filter(|index| !index.local) {
        if let Ok(attribute) = attribute_to_spread(&index.name, schema)
            && !found.iter().any(|known| known.attribute == *attribute)
        {
            found.push(OfIndex { name: index.name.clone(), attribute: attribute.clone() });
        }
    }
    found
}

fn layout(index: &OfIndex, value: Vec<u8>, shards: u16) -> ValueLayout {
    ValueLayout { index: index.clone(), value, shards, migration: None, former: Vec::new(), reserved: shards }
}

/// The bytes of an item's attribute, if it has it.
fn bytes(item: &Attributes, attribute: &AttributeDefinition) -> Option<Vec<u8>> {
    match Scalar::of(item.get(&attribute.name)?)? {
        Scalar::S(text) => Some(text.into_bytes()),
        Scalar::B(bytes) => Some(bytes),
        Scalar::N(_) => None,
    }
}
