//! The records of keys as a gateway knows them: of those on record it reads again what may have
//! changed since.
//!
//! While many keys of a table move, every step of theirs is a new version of its record. A gateway
//! that read all of them again each time would read their square. Not here: where they may have
//! changed (`touched`), how one learns that there is a new version (`fence`).

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound::Included;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use heatsink_dynamo::Error;

use heatsink_layout::KeyLayouts;

use crate::key_record::{KeyRecord, layouts, tally};
use crate::record::Record;
use crate::registry::Registry;
use crate::tally::{Found, Tally};

/// All records of keys of a table, as of one version of its record.
#[derive(Debug)]
struct KnownKeys {
    id: String,
    version: u64,
    tally: Tally,
    by_place: BTreeMap<String, KeyRecord>,
}

fn by_place(records: &[KeyRecord]) -> Result<BTreeMap<String, KeyRecord>, Error> {
    let placed = |one: &KeyRecord| Ok((KeyRecord::place(&one.key, one.key_type)?.sort, one.clone()));
    records.iter().map(placed).collect()
}

impl KnownKeys {
    /// With these records between two places, and no others there.
    fn replace(&mut self, (first, last): (&str, &str), now: BTreeMap<String, KeyRecord>) {
        let range = (Included(first), Included(last));
        let before: Vec<String> =
            self.by_place.range::<str, _>(range).map(|(place, _)| place.clone()).collect();
        for place in before {
            if let Some(gone) = self.by_place.remove(&place) {
                self.tally = self.tally.without(&place, gone.version);
            }
        }
        for (place, one) in now {
            self.tally = self.tally.with(&place, one.version);
            self.by_place.insert(place, one);
        }
    }
}

/// The records of the keys of tables as they were last read, by the tables' names.
#[derive(Debug, Default)]
pub(crate) struct KnownTables(Mutex<HashMap<String, KnownKeys>>);

impl KnownTables {
    /// Forgets all of it: changes may have been missed, or the registry be another one.
    pub fn forget(&self) {
        self.known().clear();
    }

    fn known(&self) -> MutexGuard<'_, HashMap<String, KnownKeys>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Registry {
    /// As [`key_layouts`](Self::key_layouts), by what is known of the records of keys.
    ///
    /// # Errors
    /// As [`all_key_records`](Self::all_key_records).
    pub(crate) async fn key_layouts_anew(
        &self,
        record: &Record,
        known: Option<Arc<KeyLayouts>>,
        tables: &KnownTables,
    ) -> Result<Arc<KeyLayouts>, Error> {
        match known {
            Some(known) if known.version() == record.keys => Ok(known),
            _ => Ok(Arc::new(layouts(record, self.key_records_anew(record, tables).await?))),
        }
    }

    /// As [`all_key_records`](Self::all_key_records), of which it reads those again that may have
    /// changed since it was last called for the table.
    ///
    /// # Errors
    /// As [`all_key_records`](Self::all_key_records).
    async fn key_records_anew(&self, record: &Record, tables: &KnownTables) -> Result<Vec<KeyRecord>, Error> {
        let before = tables.known().remove(&record.name);
        if let Some(known) = before
            && known.id == record.id
            && let Some(known) = self.brought_up_to(known, record).await?
        {
            let records = known.by_place.values().cloned().collect();
            tables.known().insert(record.name.clone(), known);
            return Ok(records);
        }
        let records = self.all_key_records(record).await?;
        let tally = tally(&records)?;
        // They may be of a later version.
        if record.tally().sum.is_some() && record.tally() == tally {
            let (id, version) = (record.id.clone(), record.keys);
            let known = KnownKeys { id, version, tally, by_place: by_place(&records)? };
            tables.known().insert(record.name.clone(), known);
        }
        Ok(records)
    }

    /// What is known, as of this record; `None` where that takes a read of all.
    async fn brought_up_to(&self, mut known: KnownKeys, record: &Record) -> Result<Option<KnownKeys>, Error> {
        let Some(ranges) = record.touched.since(known.version, record.keys) else { return Ok(None) };
        for between in ranges {
            let found = self.key_records_at("sk BETWEEN :s AND :e", (between.0, Some(between.1)), &record.id);
            known.replace(between, by_place(&found.await?)?);
        }
        known.version = record.keys;
        let is_all = record.tally().sum.is_some() && record.tally().compare(known.tally) == Found::These;
        Ok(Some(known).filter(|_| is_all))
    }
}
