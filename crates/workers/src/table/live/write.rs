//! What a live adoption puts on record.

use std::collections::HashSet;

use futures::{StreamExt, TryStreamExt, stream};
use heatsink_control::registry::Registry;
use heatsink_control::reshard_intent::key_text;
use heatsink_control::{KeyRecord, KeyWrites, MAX_KEY_RECORDS, Record, State, TableChange};
use heatsink_dynamo::KeyType;
use heatsink_reshard::TablePhase;

use super::LiveAdoption;
use super::layouts::{Layouts, too_many};
use crate::error::WorkerError;
use crate::on_record::{begin, newer, newest, tag};
use crate::progress::Progress;

/// How many keys wait to be put on record: as many go together as one transaction takes.
const AT_ONCE: usize = 256;

impl LiveAdoption {
    /// Writes a phase: the first one with all that is known of the change, TURN with the layouts
    /// that hold from then on.
    pub(super) async fn write_phase(&mut self, phase: TablePhase) -> Result<(), WorkerError> {
        if phase == TablePhase::Enter {
            self.registry.make_directory_anyway().await?;
        }
        let next = match (&self.record, phase) {
            (None, _) => return self.write_first().await,
            (Some(record), TablePhase::Enter) => {
                // Of a change that is turned round nothing more is entered.
                if let State::ChangingKeys(before) = &record.state {
                    self.registry.forget_entered(record, before.run).await?;
                }
                Record { state: State::ChangingKeys(self.begun()), ..record.clone() }
            }
            (Some(record), phase) => {
                let (_, change) = self.change()?;
                let mut next = record.clone();
                let mut change = TableChange { phase, ..change.clone() };
                if phase == TablePhase::Turn {
                    // Positions of before may still be in use.
                    next.adopted = true;
                    let attributes = record.layouts.attributes();
                    change.other = record.layouts.own();
                    next.layouts = self.to.with_indexes(&attributes, &record.layouts);
                    let of_numbers = self.described.schema.key.partition.key_type == KeyType::N;
                    next.numbers = of_numbers && !self.to.is_empty();
                }
                Record { state: State::ChangingKeys(change), ..next }
            }
        };
        self.replace(next).await
    }

    /// Whether the store has a place for keys that are entered: a server of Heatsink that serves as an
    /// upstream has none. Nothing is changed.
    ///
    /// # Errors
    /// The store's.
    pub async fn can_enter_keys(&self) -> Result<bool, WorkerError> {
        Ok(self.registry.can_have_directory().await?)
    }

    async fn write_first(&mut self) -> Result<(), WorkerError> {
        let first = self.registry.first_record(&self.described, Default::default(), true);
        let record = Record { state: State::ChangingKeys(self.begun()), ..first };
        begin(&self.registry, &record).await?;
        tag(&self.registry, &self.described).await;
        self.record = Some(record);
        Ok(())
    }

    fn begun(&self) -> TableChange {
        let run = self.registry.env().random();
        TableChange { phase: TablePhase::Enter, run, other: self.to.clone() }
    }

    /// Writes the next record of the table, if nothing but records of its keys has changed.
    pub(super) async fn replace(&mut self, next: Record) -> Result<(), WorkerError> {
        let mut known = self.on_record()?.clone();
        loop {
            let to = Record {
                version: known.version + 1,
                keys: known.keys,
                forgotten: known.forgotten,
                tally: known.tally,
                touched: known.touched.clone(),
                changed: known.changed,
                ..next.clone()
            };
            if self.registry.replace(&known, &to).await? {
                self.record = Some(to);
                return Ok(());
            }
            // Keys that move write it, too.
            known = newer(&self.registry, &known).await?;
        }
    }

    /// Reads the table's record again: keys that moved have changed it.
    pub(super) async fn refresh(&mut self) -> Result<(), WorkerError> {
        self.record = Some(newest(&self.registry, self.on_record()?).await?);
        Ok(())
    }

    /// Reads which keys the table has, and puts those on record as they lie that have no record and
    /// would lie otherwise once the table has turned.
    ///
    /// # Errors
    /// [`WorkerError::Stopped`] where a key cannot be moved so: nothing is lost, and what to do.
    pub(super) async fn record_all(&mut self, progress: &dyn Progress) -> Result<(), WorkerError> {
        self.refresh().await?;
        let layouts = self.all_layouts()?;
        let (record, _) = self.change()?;
        let records = self.registry.all_key_records(record).await?;
        let table = self.laid_out(record, &records);
        let walked = self.walk(&table, progress).await?;
        // A key that began to move meanwhile has shards, which are no keys.
        self.refresh().await?;
        let (record, _) = self.change()?;
        let records = self.registry.all_key_records(record).await?;
        let walked = walked.read_anew(&self.laid_out(record, &records));
        if let Some(why) = self.unwritable(&walked, &layouts) {
            return Err(WorkerError::Stopped(why));
        }
        self.put_on_record(walked.keys.into_keys().collect(), &records).await
    }

    /// The same of the keys that were entered.
    pub(super) async fn record_entered(&mut self) -> Result<(), WorkerError> {
        self.refresh().await?;
        let (record, change) = self.change()?;
        let records = self.registry.all_key_records(record).await?;
        let entered = self.registry.entered_keys(record, change.run).await?;
        self.put_on_record(entered, &records).await
    }

    async fn put_on_record(&mut self, keys: Vec<Vec<u8>>, records: &[KeyRecord]) -> Result<(), WorkerError> {
        let layouts = self.all_layouts()?;
        let key_type = self.described.schema.key.partition.key_type;
        let known: HashSet<&[u8]> = records.iter().map(|one| &*one.key).collect();
        let missing = |key: &Vec<u8>| !known.contains(&**key) && layouts.changes(key, key_type);
        let missing: Vec<KeyRecord> =
            keys.into_iter().filter(missing).map(|key| self.as_it_lies(key, &layouts)).collect();
        let record = self.on_record()?;
        if records.len() + missing.len() > MAX_KEY_RECORDS {
            let keys = records.len() + missing.len();
            return Err(WorkerError::Stopped(too_many(&record.name, keys)));
        }
        let writes = KeyWrites::default();
        let puts = missing.into_iter().map(|key| put(&self.registry, &writes, record, key));
        stream::iter(puts.collect::<Vec<_>>()).buffer_unordered(AT_ONCE).try_collect::<Vec<()>>().await?;
        self.refresh().await
    }

    fn as_it_lies(&self, key: Vec<u8>, layouts: &Layouts) -> KeyRecord {
        let key_type = self.described.schema.key.partition.key_type;
        let layout = layouts.before(&key, key_type);
        KeyRecord {
            key,
            key_type,
            reserved: layout.slot_bound(),
            layout,
            moves: None,
            settled: true,
            version: 0,
            changed: self.registry.env().unix_millis(),
            since: 0,
        }
    }
}

/// Writes the record of a key that has none.
async fn put(
    registry: &Registry,
    writes: &KeyWrites,
    table: &Record,
    key: KeyRecord,
) -> Result<(), WorkerError> {
    let mut table = table.clone();
    loop {
        if writes.replace(registry, &table, None, &key).await?.is_some() {
            return Ok(());
        }
        let found = registry.key_record(&table.id, &key.key, key.key_type).await?;
        match registry.read(&table.id).await? {
            // Another key's record was written.
            Some(now) if now.says_as(&table) && found.is_none() => table = now,
            _ => {
                return Err(WorkerError::Busy(format!(
                    "The record of the key {:?} of table {} was written by another process",
                    key_text(&key.key, key.key_type),
                    table.name
                )));
            }
        }
    }
}
