//! Puts a table back on record whose record is lost with its registry: the layouts of its keys, and
//! of values of its indexes, are read off its items.
//!
//! A key's items tell its number of shards, because each lies where the hash of its sort key and
//! that number put it ([`ShardTraces`] says how, and how likely chance is). No item is written:
//! where several numbers put every item where it is, the smallest of them is as good as the one
//! that was. Where the shards have slots by name, each slot tells its shard.
//!
//! **What items do not tell**: which attributes of a counter are summed; a shard that follows from
//! a part of the sort key; a whole key under another slot; how far a key had moved; the layouts of buckets and of tables that a
//! rule lays out, which [`AsItLies`](crate::AsItLies) records by the rule. Such keys are listed,
//! and nothing is recorded.
//!
//! Not here: where items of a recorded table belong (`verify`), which signs there are that the
//! record is lost (`heatsink_control::lost_registry`).

mod read;
mod rebuilt;

use std::sync::Arc;

use heatsink_control::describe::Described;
use heatsink_control::registry::Registry;
use heatsink_control::rules::FenceSettings;
use heatsink_control::{Changer, Expectation, Fencing, KeyRecord, Record, lost_registry};
use heatsink_env::Env;
use heatsink_store::Store;

pub use self::rebuilt::{NotTold, Rebuilt, Told};
use crate::eligible;
use crate::error::WorkerError;
use crate::on_record::{self, tag, taken_over};
use crate::progress::{Phase, Progress};

/// A table without a record, whose layouts may be read off its items.
pub struct Rebuild {
    registry: Registry,
    changer: Changer,
    described: Described,
    /// Why it is taken for a table that was on record; `None` where nothing but its items can say
    /// so.
    sign: Option<String>,
}

impl Rebuild {
    /// Checks whether a table has no record. Changes nothing. `fencing`: how the registry is
    /// written.
    ///
    /// # Errors
    /// [`WorkerError::Usage`] for a table that is on record, that another registry has on record,
    /// or that cannot be used.
    pub async fn prepare(
        store: Arc<dyn Store>,
        env: Arc<dyn Env>,
        fence: &FenceSettings,
        table: &str,
        fencing: Fencing,
    ) -> Result<Self, WorkerError> {
        let registry = fence.registry_in(store, env);
        let described = eligible::usable(&registry, table).await?;
        if registry.read(&described.schema.id).await?.is_some() {
            return Err(WorkerError::Usage(format!(
                "Table {table} is on record. `heatsink verify {table}` checks whether its items are where the record puts them"
            )));
        }
        let sign = lost_registry::refusal_if_written(&registry, &described).await?;
        let required = fence.expectation.required == Some(true) && sign.is_none();
        let sign = sign.or_else(|| required.then(|| "`required = true` under [fence]".to_owned()));
        // This is what a missed registry is made again by.
        let made = Arc::new(Expectation { required: Some(false), ..Expectation::default() });
        let changer =
            Changer::new(registry.clone().expecting(&made), Fencing { expectation: made, ..fencing });
        Ok(Rebuild { registry, changer, described, sign })
    }

    /// Reads every item's keys, twice where some are written like shards. Changes nothing. `rate`:
    /// the maximum number of items per second.
    ///
    /// # Errors
    /// The store's; [`WorkerError::Usage`] for more keys than can be on record.
    pub async fn look(&self, rate: Option<u64>, progress: &dyn Progress) -> Result<Rebuilt, WorkerError> {
        progress.phase(Phase::Looking, None);
        let seen = read::read(&self.registry, &self.described.schema, rate, progress).await?;
        let mut rebuilt = Rebuilt {
            table: self.described.schema.name.clone(),
            sign: self.sign.clone(),
            items: seen.items,
            ..Rebuilt::default()
        };
        seen.judge(&self.described.schema, self.sign.is_some(), &mut rebuilt);
        Ok(rebuilt)
    }

    /// Puts the table on record as `rebuilt` says. No gateway may have the table in use meanwhile.
    /// `as_logical_keys`: what is not told is clients' own.
    ///
    /// # Errors
    /// [`WorkerError::Stopped`] where something is not told; the store's.
    pub async fn record(&self, mut rebuilt: Rebuilt, as_logical_keys: bool) -> Result<Rebuilt, WorkerError> {
        let table = &self.described.schema.name;
        if !rebuilt.not_told.is_empty() && !as_logical_keys {
            return Err(WorkerError::Stopped(format!(
                "Table {table} was not put on record: {} keys or values are written like shards, and their items do not tell how they are laid out",
                rebuilt.not_told.len()
            )));
        }
        self.changer.make_registry().await?;
        self.changer.begin_patiently().await?;
        let first = self.registry.first_record(&self.described, Default::default(), true);
        let mut record = Record { values: rebuilt.found.values.clone(), ..first };
        on_record::begin(&self.registry, &record).await?;
        for (key, layout) in &rebuilt.found.keys {
            let key = KeyRecord {
                key: key.clone(),
                key_type: self.described.schema.key.partition.key_type,
                moves: None,
                settled: true,
                reserved: layout.slot_bound(),
                layout: layout.clone(),
                version: 0,
                changed: self.registry.env().unix_millis(),
                since: 0,
            };
            let Some((next, _)) = self.registry.replace_key(&record, None, &key).await? else {
                return Err(taken_over(table));
            };
            record = next;
        }
        self.changer.announce(&record.name, record.version).await?;
        tag(&self.registry, &self.described).await;
        rebuilt.recorded = true;
        Ok(rebuilt)
    }
}
