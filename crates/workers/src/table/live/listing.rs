//! Which keys a table has, and which of them have to move.

use std::collections::BTreeMap;
use std::sync::Arc;

use heatsink_control::reshard_intent::key_text;
use heatsink_control::{KeyRecord, Record};
use heatsink_layout::{Changing, Slot, Table, TablePhase};

use super::LiveAdoption;
use super::layouts::{KeyWish, Layouts};
use crate::error::WorkerError;
use crate::items::item::{NoKey, bytes};
use crate::items::walk::Walk;
use crate::key::estimate::as_count;
use crate::key::logical_key::Key;
use crate::progress::{Phase, Progress};
use crate::recorded_keys;

/// So many keys that stand in the way are named.
const NAMED: usize = 20;

/// A table's keys, and what they hold.
#[derive(Default)]
pub(super) struct Walked {
    /// How many items each logical key has.
    pub keys: BTreeMap<Vec<u8>, u64>,
    pub items: u64,
    /// About how many bytes they have.
    pub bytes: u64,
}

impl Walked {
    /// The same where these keys are on record by now: what was met of their shards is theirs.
    pub fn read_anew(self, table: &Table) -> Self {
        let mut keys = BTreeMap::new();
        for (key, items) in self.keys {
            *keys.entry(table.logical(&key).to_vec()).or_default() += items;
        }
        Walked { keys, ..self }
    }
}

impl LiveAdoption {
    /// The table as its record lays it out.
    pub(super) fn laid_out(&self, record: &Record, records: &[KeyRecord]) -> Table {
        let keys = recorded_keys::layouts(record.keys.max(1), records);
        Table::new(self.described.schema.clone(), record.layouts.clone().into()).with_key_layouts(keys)
    }

    /// Reads the partition keys of all items.
    pub(super) async fn walk(&self, table: &Table, progress: &dyn Progress) -> Result<Walked, WorkerError> {
        progress.phase(Phase::Looking, None);
        let partition = &table.key.partition;
        let mut walked = Walked::default();
        let mut walk = Walk::of_keys(&self.registry, table);
        while let Some(page) = walk.page().await? {
            for item in &page {
                let value = item.get(&partition.name).ok_or(NoKey)?;
                let physical = bytes(value, partition.key_type)?;
                let logical = table.logical(&physical);
                match walked.keys.get_mut(logical) {
                    Some(items) => *items += 1,
                    None => drop(walked.keys.insert(logical.to_vec(), 1)),
                }
            }
            walked.items += u64::try_from(page.len()).unwrap_or(u64::MAX);
            progress.passed(u64::try_from(page.len()).unwrap_or(u64::MAX));
        }
        // A strong read takes a unit for each 4 KB of a page.
        walked.bytes = as_count(walk.units() * 4096.0);
        Ok(walked)
    }

    /// The keys on record that lie as before, once the table has turned.
    pub(super) async fn list(&mut self) -> Result<Vec<KeyWish>, WorkerError> {
        self.refresh().await?;
        let layouts = self.all_layouts()?;
        self.take_back_former(&layouts).await?;
        self.refresh().await?;
        let (record, _) = self.change()?;
        let key_type = self.described.schema.key.partition.key_type;
        let records = self.registry.all_key_records(record).await?;
        let wish = |one: KeyRecord| {
            let layout = layouts.wish(&one.key, key_type, Some(&one))?;
            Some(KeyWish { key: one.key, layout })
        };
        Ok(records.into_iter().filter_map(wish).collect())
    }

    /// Why keys of clients stand in the way.
    pub(super) fn unwritable(&self, walked: &Walked, layouts: &Layouts) -> Option<String> {
        self.written_like_shards(walked, layouts).or_else(|| self.too_long(walked, layouts))
    }

    /// A key that has no room for the names of its shards stops what moves the others.
    fn too_long(&self, walked: &Walked, layouts: &Layouts) -> Option<String> {
        let schema = &self.described.schema;
        let key_type = schema.key.partition.key_type;
        let table = Arc::new(Table::new(schema.clone(), layouts.to.clone().into()));
        let why = |key: &Vec<u8>| {
            let to = layouts.after(key, key_type);
            let last = Slot { bucket: to.newest_from(), shard: to.slot_bound() - 1 };
            let error = Key { table: Arc::clone(&table), bytes: key.clone() }.in_slot(&to, last).err()?;
            Some(format!(
                "The key {:?} of table {} is too long for so many shards: {error}. Name fewer keys in the rule, or use fewer shards. `heatsink adopt {1} --back` takes \
                 back what was begun",
                key_text(key, key_type),
                self.table()
            ))
        };
        walked.keys.keys().filter(|key| layouts.changes(key, key_type)).find_map(why)
    }

    fn written_like_shards(&self, walked: &Walked, layouts: &Layouts) -> Option<String> {
        let schema = &self.described.schema;
        // What gateways refuse to write meanwhile.
        let change = Changing::new(TablePhase::Enter, 0, schema, &layouts.from, &layouts.to);
        let rewritten = walked.keys.keys().filter(|key| change.rewrites(key)).take(NAMED);
        let text = |key: &Vec<u8>| format!("{:?}", key_text(key, schema.key.partition.key_type));
        let keys: Vec<String> = rewritten.map(text).collect();
        if keys.is_empty() {
            return None;
        }
        Some(format!(
            "Table {0} has keys that are written like shards, which have another physical key under rules than without them: {1}. They cannot be moved while clients \
             use them: delete them, or run this with --offline while nobody uses the table. `heatsink adopt {0} --back` takes back what was begun",
            self.table(),
            keys.join(", ")
        ))
    }
}
