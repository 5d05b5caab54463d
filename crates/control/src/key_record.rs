//! The record of one logical key: how its items are laid out, whatever the table's rules say. Keys
//! have records one by one, so that one hot key of a table is sharded while all others stay as they
//! are, without a rule and without reading the table.
//!
//! A record says which physical keys its key once had, so it stays after the key has come back. It
//! goes when nothing of its table is to be sharded any more (`forget`). Not here: the table's own
//! record (`record`), and what a record means for requests (`heatsink_layout::KeyLayouts`).

mod forget;
mod form;
mod pace;
#[cfg(test)]
mod tests;
mod writes;

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use heatsink_dynamo::{Code, Error, KeyType, Operation, Outcome};
use heatsink_layout::{InForce, KeyLayouts, Moving, Phase, RecordedKey};
use serde_json::{Value as Json, json};

use self::form::SORT;
pub use self::form::{KeyRecord, Move};
pub(crate) use self::writes::FEW_KEYS;
pub use self::writes::{KeyRecords, KeyWrites, TableFacts, settled_layouts};
use crate::record::{ChangedAt, Record};
use crate::registry::Registry;
use crate::tally::{Found, Tally};
use crate::transact::{LONGEST_OF_WRITES, PATIENCE, Written, transact};

/// How often records of keys are read that seem to be too few, and the first pause between.
const LOOKS: u32 = 4;
const LOOK: Duration = Duration::from_millis(20);

/// How many keys of one table can be on record. Every gateway holds all of them in memory.
pub const MAX_KEY_RECORDS: usize = 10_000;

impl KeyRecord {
    /// Whether items lie, and go, where they do according to another record of the key. None go
    /// before PREPARE, nor where a counter gets more fragments or fewer, or buckets without items get
    /// another number of shards.
    fn lies_as(&self, other: &KeyRecord) -> bool {
        let to = |record: &KeyRecord| {
            let moves = record.moves.as_ref().filter(|moves| moves.phase > Phase::Reserve);
            moves.map(|moves| moves.to.clone()).filter(|to| !Moving::leaves_items(&record.layout, to))
        };
        self.layout.places_as(&other.layout) && to(self) == to(other)
    }

    fn recorded(self) -> (Vec<u8>, RecordedKey) {
        let from = Arc::new(self.layout);
        let in_force = match self.moves {
            None => InForce::Stable(from),
            Some(Move { to, phase, expires, marks, high_water, .. }) => {
                let (to, expires) = (Arc::new(to), expires.map(Arc::from));
                Moving { from, to, phase, expires, marks, high_water }.in_force()
            }
        };
        let (reserved, since, settled) = (self.reserved, self.since, self.settled);
        (self.key, RecordedKey { in_force, reserved, since, settled })
    }
}

/// The layouts of the keys of a table with that record, by the records of all of them.
pub(crate) fn layouts(record: &Record, keys: Vec<KeyRecord>) -> KeyLayouts {
    // Without a key on record positions of before are refused anyway.
    let forgotten = if record.keys == 0 { 0 } else { record.forgotten };
    KeyLayouts::new(record.keys, keys.into_iter().map(KeyRecord::recorded)).forgotten(forgotten)
}

/// The tally of these records, which are all of a table.
pub(crate) fn tally(records: &[KeyRecord]) -> Result<Tally, Error> {
    records.iter().try_fold(Tally::NONE, |tally, one| {
        Ok(tally.with(&KeyRecord::place(&one.key, one.key_type)?.sort, one.version))
    })
}

impl Registry {
    /// The record of one key; `None` if it has none. Strongly consistent.
    ///
    /// # Errors
    /// The store's; a record that cannot be read; `ValidationException` for a number.
    pub async fn key_record(
        &self,
        id: &str,
        key: &[u8],
        key_type: KeyType,
    ) -> Result<Option<KeyRecord>, Error> {
        let sort = KeyRecord::place(key, key_type)?.sort;
        let key = json!({ "pk": { "S": id }, "sk": { "S": sort } });
        let body = json!({ "TableName": self.name(), "Key": key, "ConsistentRead": true });
        let answer = self.call_patiently(Operation::GetItem, body).await;
        let answer = answer.map_err(|error| self.failed(error))?;
        answer.get("Item").map(KeyRecord::read).transpose()
    }

    /// The records of all keys of a table, by key. Strongly consistent.
    ///
    /// # Errors
    /// The store's; a record that cannot be read.
    pub fn key_records<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Vec<KeyRecord>, Error>> {
        self.key_records_at("begins_with(sk, :s)", (SORT, None), id).boxed()
    }

    /// Those of the records whose places fulfil that condition on `:s`, and on `:e`.
    pub(crate) async fn key_records_at(
        &self,
        condition: &str,
        (first, last): (&str, Option<&str>),
        id: &str,
    ) -> Result<Vec<KeyRecord>, Error> {
        let mut values = json!({ ":p": { "S": id }, ":s": { "S": first } });
        if let Some(last) = last {
            values[":e"] = json!({ "S": last });
        }
        let condition = format!("pk = :p AND {condition}");
        let mut found = Vec::new();
        let mut start = Json::Null;
        loop {
            let mut body = json!({
                "TableName": self.name(), "ConsistentRead": true, "KeyConditionExpression": condition, "ExpressionAttributeValues": values,
            });
            if !start.is_null() {
                body["ExclusiveStartKey"] = start;
            }
            let page = self.call_patiently(Operation::Query, body).await;
            let mut page = page.map_err(|error| self.failed(error))?;
            for item in page["Items"].as_array().into_iter().flatten() {
                found.push(KeyRecord::read(item)?);
            }
            start = page["LastEvaluatedKey"].take();
            if start.is_null() {
                return Ok(found);
            }
        }
    }

    /// Whether any key of a table has a record, readable or not.
    ///
    /// # Errors
    /// The store's.
    pub(crate) async fn has_key_records(&self, id: &str) -> Result<bool, Error> {
        let body = json!({
            "TableName": self.name(), "ConsistentRead": true, "Limit": 1, "KeyConditionExpression": "pk = :p AND begins_with(sk, :s)",
            "ExpressionAttributeValues": { ":p": { "S": id }, ":s": { "S": SORT } },
        });
        let page = self.call_patiently(Operation::Query, body).await.map_err(|error| self.failed(error))?;
        Ok(page["Count"].as_u64().is_some_and(|count| count > 0))
    }

    /// The records of the keys of a table with that record, which says how many there are, and
    /// which version each has.
    ///
    /// # Errors
    /// As [`key_records`](Self::key_records); retryable where they are not those of the record. A
    /// key whose record is lost or older would be taken for one that lies otherwise, and a part of
    /// its items be found.
    pub fn all_key_records<'a>(&'a self, record: &'a Record) -> BoxFuture<'a, Result<Vec<KeyRecord>, Error>> {
        async move {
            let mut newest = record.clone();
            for look in 1..=LOOKS {
                let found = self.key_records(&record.id).await?;
                let verdict = newest.tally().compare(tally(&found)?);
                if verdict == Found::These {
                    return Ok(found);
                }
                if look < LOOKS {
                    self.env().sleep(LOOK * look).await;
                }
                // The transaction that writes both may have been read in its middle, or the table's
                // record have been written since.
                let now = self.read(&record.id).await?.filter(|now| now.version != newest.version);
                match now {
                    Some(now) => newest = now,
                    None if look < LOOKS => {}
                    None => return Err(self.others_than_recorded(&newest, verdict, &found)),
                }
                if look == LOOKS {
                    // It is written all the time. Each of these writes is made known, and looked at.
                    return Ok(found);
                }
            }
            Ok(Vec::new())
        }
        .boxed()
    }

    /// The error for records of keys that are not those which their table's record speaks of.
    fn others_than_recorded(&self, record: &Record, verdict: Found, found: &[KeyRecord]) -> Error {
        let (registry, table, count) = (self.name(), &record.name, record.tally().count);
        let is_older = |key: &KeyRecord| key.since != u64::MAX && key.since > record.version;
        let what = if verdict == Found::TooFew {
            format!("has lost records of keys of table {table}: its record says that there are {count}")
        } else if u64::try_from(found.len()).is_ok_and(|found| found > count) || found.iter().any(is_older) {
            format!("has a record of table {table} that is older than the records of its keys")
        } else {
            format!(
                "has records of keys of table {table} that are not those of its record: one of them is older"
            )
        };
        Error::unavailable(
            format!(
                "The registry {registry} {what}. Nothing is sent until all its items are restored from one moment (docs/how-to/recover.md)"
            ),
            Outcome::NotDone,
        )
    }

    /// The layouts of a table's recorded keys: `known`, where the table's record says that they
    /// have not changed since.
    ///
    /// # Errors
    /// As [`all_key_records`](Self::all_key_records).
    pub async fn key_layouts(
        &self,
        record: &Record,
        known: Option<Arc<KeyLayouts>>,
    ) -> Result<Arc<KeyLayouts>, Error> {
        match known {
            Some(known) if known.version() == record.keys => Ok(known),
            _ => Ok(Arc::new(layouts(record, self.all_key_records(record).await?))),
        }
    }

    /// Writes the record of a key, if it still equals `from` (`None`: if there is none), and with
    /// it the table's record, if that still equals `table`. Returns both as they are then, of which
    /// the table's has to be published; `None` when either had changed: then neither was written.
    ///
    /// # Errors
    /// The store's; `ValidationException` for a number.
    pub fn replace_key<'a>(
        &'a self,
        table: &'a Record,
        from: Option<&'a KeyRecord>,
        to: &'a KeyRecord,
    ) -> BoxFuture<'a, Result<Option<(Record, KeyRecord)>, Error>> {
        async move {
            let written = self.replace_keys(table, &[(from, to)]).await?;
            Ok(written.into_iter().next().flatten())
        }
        .boxed()
    }

    /// Which keys of a table have records. Reads them where an older build has written the table's
    /// record.
    async fn tally(&self, table: &Record) -> Result<Tally, Error> {
        match table.tally().sum {
            Some(_) => Ok(table.tally()),
            None => tally(&self.key_records(&table.id).await?),
        }
    }

    /// Writes the records of several keys, each if it still equals what is given with it, and with
    /// them the table's record, all or none. Returns what [`replace_key`](Self::replace_key) would
    /// of each.
    ///
    /// # Errors
    /// The store's; `ValidationException` for a number, and for more than the store takes at once.
    pub(crate) async fn replace_keys(
        &self,
        table: &Record,
        keys: &[(Option<&KeyRecord>, &KeyRecord)],
    ) -> Result<Vec<Option<(Record, KeyRecord)>>, Error> {
        let version = table.version + 1;
        let changed = ChangedAt(self.env().unix_millis());
        let mut tally = self.tally(table).await?;
        let mut places = Vec::with_capacity(keys.len());
        for (from, to) in keys {
            let place = KeyRecord::place(&to.key, to.key_type)?.sort;
            tally = match from {
                Some(from) => tally.replacing(&place, from.version, to.version),
                None => tally.with(&place, to.version),
            };
            places.push(place);
        }
        let touched = table.touched.with(table.keys, version, places.iter().map(String::as_str));
        let next = Record { version, changed, keys: version, tally: Some(tally), touched, ..table.clone() };
        let unchanged = |version: u64| {
            json!({
                "ConditionExpression": "#v = :v", "ExpressionAttributeNames": { "#v": "version" },
                "ExpressionAttributeValues": { ":v": { "N": version.to_string() } },
            })
        };
        let put = |item: Json, mut put: Json| {
            put["TableName"] = json!(self.name());
            put["Item"] = item;
            json!({ "Put": put })
        };
        let mut actions = vec![put(next.item(), unchanged(table.version))];
        let mut written = Vec::with_capacity(keys.len());
        for (from, to) in keys {
            let since = match from {
                Some(from) if from.lies_as(to) => from.since,
                // It lies as it always did.
                None if to.moves.as_ref().is_some_and(|moves| moves.phase == Phase::Reserve) => 0,
                _ => version,
            };
            let to = KeyRecord { since, ..(*to).clone() };
            let of_key = match from {
                Some(from) => unchanged(from.version),
                None => json!({ "ConditionExpression": "attribute_not_exists(pk)" }),
            };
            actions.push(put(to.item(table)?, of_key));
            written.push(to);
        }
        let error = match transact(self, actions, None, (LONGEST_OF_WRITES, PATIENCE)).await {
            Ok(Written::Done) => {
                return Ok(written.into_iter().map(|to| Some((next.clone(), to))).collect());
            }
            Ok(Written::Refused(_)) => None,
            Err(error)
                if error.code == Code::TransactionCanceledException || error.outcome == Outcome::Unknown =>
            {
                None
            }
            Err(error) => Some(error),
        };
        match error {
            // There may be more actions than the store takes.
            Some(error) if error.code == Code::ValidationException => Err(error),
            Some(error) => Err(self.failed(error)),
            None => self.as_written(table, version, &places, written).await,
        }
    }

    /// Which of these records are on record, and the table's as it is now: this process may have
    /// written them, and the answer was lost. A later change of another key would hide that: the
    /// keys' records tell.
    async fn as_written(
        &self,
        table: &Record,
        version: u64,
        places: &[String],
        written: Vec<KeyRecord>,
    ) -> Result<Vec<Option<(Record, KeyRecord)>>, Error> {
        let (Some(first), Some(last)) = (places.iter().min(), places.iter().max()) else {
            return Ok(Vec::new());
        };
        let found = self.key_records_at("sk BETWEEN :s AND :e", (first, Some(last)), &table.id).await?;
        let now = self.read(&table.id).await?.filter(|now| now.keys >= version);
        // Whoever did it may have known a later record of the table: since when the key lies so is
        // what is on record.
        let done = |to: KeyRecord| {
            let found = found.iter().find(|found| found.key == to.key)?;
            let done = *found == KeyRecord { since: found.since, ..to };
            done.then(|| Some((now.clone()?, found.clone()))).flatten()
        };
        Ok(written.into_iter().map(done).collect())
    }
}
