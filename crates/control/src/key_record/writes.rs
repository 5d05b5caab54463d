//! Writes records of keys of one table together: several of them, and the table's record, in one
//! transaction. Each write of a key's record writes the table's too, so keys that move beside each
//! other would meet there one by one.
//!
//! Not here: what is written (`heatsink_reshard` decides), how it becomes known (`Announcer`).

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use futures::FutureExt;
use heatsink_dynamo::{Code, Error};
use heatsink_layout::{InForce, KeyLayouts, RecordedKey};

use super::KeyRecord;
use super::pace::{Pace, Urgency};
use crate::record::Record;
use crate::registry::Registry;
use crate::together::Together;

/// The most keys of one transaction: with the table's record 100 actions, DynamoDB's most.
pub(super) const MOST_KEYS: usize = 99;
/// The same of stores that take 25 actions, as all did before 2022, and of those that take 10.
const SOME_KEYS: usize = 24;
pub(crate) const FEW_KEYS: usize = 9;

/// The next smaller number of keys to try in one transaction; `None` where it is not the number that
/// the store refuses.
pub(super) fn fewer(keys: usize) -> Option<usize> {
    [SOME_KEYS, FEW_KEYS].into_iter().find(|fewer| *fewer < keys)
}

/// The records of keys of one table, as one process writes them.
#[derive(Default)]
pub struct KeyWrites {
    together: Together<KeyWrite, Written>,
    surveys: Together<(), Arc<TableFacts>>,
    checked: Together<Record, Arc<KeyRecords>>,
    /// The table's record as this process wrote it last.
    newest: Mutex<Option<Record>>,
    /// How many keys the store takes in one transaction, as far as that is known.
    room: Room,
    pace: Pace,
}

struct Room(AtomicUsize);

impl Default for Room {
    fn default() -> Self {
        Room(AtomicUsize::new(MOST_KEYS))
    }
}

/// The records of a table's keys.
#[derive(Debug, Default)]
pub struct KeyRecords {
    records: Vec<KeyRecord>,
    layouts: OnceLock<Arc<KeyLayouts>>,
}

impl From<Vec<KeyRecord>> for KeyRecords {
    fn from(records: Vec<KeyRecord>) -> Self {
        KeyRecords { records, layouts: OnceLock::new() }
    }
}

impl std::ops::Deref for KeyRecords {
    type Target = [KeyRecord];

    fn deref(&self) -> &[KeyRecord] {
        &self.records
    }
}

impl KeyRecords {
    /// The layouts that the keys have, or had before they moved.
    pub fn layouts(&self) -> &Arc<KeyLayouts> {
        self.layouts.get_or_init(|| Arc::new(settled_layouts(1, &self.records)))
    }
}

/// The layouts that keys have, or had before they moved, for who knows them in that version.
pub fn settled_layouts(version: u64, records: &[KeyRecord]) -> KeyLayouts {
    let known = records.iter().map(|one| {
        let in_force = InForce::Stable(Arc::new(one.layout.clone()));
        let KeyRecord { reserved, since, settled, .. } = *one;
        (one.key.clone(), RecordedKey { in_force, reserved, since, settled })
    });
    KeyLayouts::new(version, known)
}

/// What keys that begin to move have to know of their table.
#[derive(Debug)]
pub struct TableFacts {
    /// The records of its keys.
    pub records: Vec<KeyRecord>,
    /// The attribute by which its items expire.
    pub expires: Option<String>,
    /// Whether its stream shows items as they were before.
    pub marks: bool,
}

/// The records of the table and of the key as they were written; `None` where nothing was.
type Written = Option<(Record, KeyRecord)>;

/// One key's record, and the table's as its writer knows it.
#[derive(Clone)]
struct KeyWrite {
    table: Record,
    from: Option<KeyRecord>,
    to: KeyRecord,
}

impl KeyWrites {
    /// As [`Registry::replace_key`], together with all others that are written at the same time, and
    /// no faster than the registry takes them, unless clients wait for it.
    /// The table's record may have changed meanwhile by records of other keys, and by nothing else.
    ///
    /// # Errors
    /// The store's; `ValidationException` for a number.
    pub async fn replace(
        &self,
        registry: &Registry,
        table: &Record,
        from: Option<&KeyRecord>,
        to: &KeyRecord,
    ) -> Result<Option<(Record, KeyRecord)>, Error> {
        let write = KeyWrite { table: table.clone(), from: from.cloned(), to: to.clone() };
        self.pace.wait(&**registry.env(), Urgency::of(from)).await;
        let serve = |writes: Vec<KeyWrite>| self.serve(registry, writes).boxed();
        self.together.ask(write, MOST_KEYS, serve).await
    }

    /// What a key that has reserved its shards has to know of its table, by reads that were sent
    /// after this was called.
    ///
    /// # Errors
    /// The store's; a record that cannot be read.
    pub async fn facts(&self, registry: &Registry, table: &Record) -> Result<Arc<TableFacts>, Error> {
        let serve = |callers: Vec<()>| {
            let read = async move {
                let records = registry.key_records(&table.id).await?;
                let expires = registry.time_to_live(&table.name).await?;
                let marks = registry.streams_old_images(&table.name).await?;
                // One for all of them.
                let facts = Arc::new(TableFacts { records, expires, marks });
                Ok(callers.iter().map(|()| Arc::clone(&facts)).collect())
            };
            read.boxed()
        };
        self.surveys.ask((), usize::MAX, serve).await
    }

    /// As [`Registry::all_key_records`], by a read that was sent after this was called.
    ///
    /// # Errors
    /// As [`Registry::all_key_records`].
    pub async fn all(&self, registry: &Registry, table: &Record) -> Result<Arc<KeyRecords>, Error> {
        let serve = |tables: Vec<Record>| {
            let read = async move {
                let Some(newest) = tables.iter().max_by_key(|table| table.version) else {
                    return Ok(Vec::new());
                };
                let records = Arc::new(KeyRecords::from(registry.all_key_records(newest).await?));
                Ok(tables.iter().map(|_| Arc::clone(&records)).collect())
            };
            read.boxed()
        };
        self.checked.ask(table.clone(), usize::MAX, serve).await
    }

    async fn serve(&self, registry: &Registry, writes: Vec<KeyWrite>) -> Result<Vec<Written>, Error> {
        let known = self.newest.lock().unwrap_or_else(PoisonError::into_inner).take();
        let tables = writes.iter().map(|write| &write.table).chain(&known);
        let Some(mut table) = tables.max_by_key(|table| table.version).cloned() else {
            return Ok(Vec::new());
        };
        let mut answers: Vec<Written> = vec![None; writes.len()];
        let fit = writes.iter().enumerate().filter(|(_, write)| write.table.says_as(&table));
        let fit: Vec<(usize, &KeyWrite)> = fit.collect();
        let mut most = self.room.0.load(Ordering::Relaxed);
        let mut left = &fit[..];
        while !left.is_empty() {
            let (now, later) = left.split_at(most.min(left.len()));
            let keys: Vec<_> = now.iter().map(|(_, write)| (write.from.as_ref(), &write.to)).collect();
            self.pace.spend(&**registry.env(), now.len());
            let written = match registry.replace_keys(&table, &keys).await {
                Err(error) if error.code == Code::ValidationException => match fewer(now.len()) {
                    Some(fewer) => {
                        most = fewer;
                        continue;
                    }
                    None => return Err(error),
                },
                written => written?,
            };
            self.room.0.store(most, Ordering::Relaxed);
            let newest = written.iter().flatten().map(|(table, _)| table).max_by_key(|table| table.version);
            // Where none was written, each writer looks for itself at what has changed.
            let Some(newest) = newest.cloned() else { return Ok(answers) };
            table = newest;
            for ((at, _), written) in now.iter().zip(written) {
                answers[*at] = written;
            }
            left = later;
        }
        *self.newest.lock().unwrap_or_else(PoisonError::into_inner) = Some(table);
        Ok(answers)
    }
}
