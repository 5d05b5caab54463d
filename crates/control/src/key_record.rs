//! The record of one logical key: how its items are laid out, whatever the table's rules say. Keys
//! have records one by one, so that one hot key of a table is sharded while all others stay as they
//! are, without a rule and without reading the table.
//!
//! A record is never removed: it goes on to say which physical keys its key once had. Not here: the
//! table's own record (`record`), and what a record means for requests
//! (`heatsink_layout::KeyLayouts`).

mod form;
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
pub use self::writes::KeyWrites;
use crate::record::{ChangedAt, Record};
use crate::registry::Registry;

/// How often records of keys are read that seem to be too few, and the first pause between.
const LOOKS: u32 = 4;
const LOOK: Duration = Duration::from_millis(20);

/// How many keys of one table can be on record. Every gateway holds all of them in memory.
pub const MAX_KEY_RECORDS: usize = 10_000;

impl KeyRecord {
    /// Whether items lie, and go, where they do according to another record of the key. None go
    /// before PREPARE, nor where a counter widens, or buckets without items get another number of
    /// shards.
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
            Some(Move { to, phase, expires, high_water, .. }) => {
                let (to, expires) = (Arc::new(to), expires.map(Arc::from));
                Moving { from, to, phase, expires, high_water }.in_force()
            }
        };
        let (reserved, since, settled) = (self.reserved, self.since, self.settled);
        (self.key, RecordedKey { in_force, reserved, since, settled })
    }
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
        async move {
            let mut found = Vec::new();
            let mut start = Json::Null;
            loop {
                let mut body = json!({
                    "TableName": self.name(), "ConsistentRead": true, "KeyConditionExpression": "pk = :p AND begins_with(sk, :s)",
                    "ExpressionAttributeValues": { ":p": { "S": id }, ":s": { "S": SORT } },
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
        .boxed()
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

    /// The records of the keys of a table with that record, which says how many there are at least.
    ///
    /// # Errors
    /// As [`key_records`](Self::key_records); retryable where some are missing. A key whose record
    /// is lost would be taken for a whole one, and a part of its items be found.
    pub fn all_key_records<'a>(&'a self, record: &'a Record) -> BoxFuture<'a, Result<Vec<KeyRecord>, Error>> {
        async move {
            if record.keys == 0 {
                return Ok(Vec::new());
            }
            let least = record.key_count.unwrap_or(1);
            for look in 1..=LOOKS {
                let found = self.key_records(&record.id).await?;
                if u64::try_from(found.len()).is_ok_and(|found| found >= least) {
                    return Ok(found);
                }
                // The transaction that writes both may have been read in its middle.
                if look < LOOKS {
                    self.env().sleep(LOOK * look).await;
                }
            }
            Err(Error::unavailable(
                format!(
                    "The registry {} has lost records of keys of table {}: its record says that there are {least}. Nothing is sent until they are restored \
                     from a backup (docs/how-to/recover.md)",
                    self.name(),
                    record.name
                ),
                Outcome::NotDone,
            ))
        }
        .boxed()
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
            _ if record.keys == 0 => Ok(Arc::default()),
            Some(known) if known.version() == record.keys => Ok(known),
            _ => {
                let records = self.all_key_records(record).await?;
                let keys = records.into_iter().map(KeyRecord::recorded);
                Ok(Arc::new(KeyLayouts::new(record.keys, keys)))
            }
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

    /// How many keys of a table have records. Counts them where an older build has written the
    /// table's record.
    async fn key_count(&self, table: &Record) -> Result<u64, Error> {
        match (table.keys, table.key_count) {
            (0, _) => Ok(0),
            (_, Some(count)) => Ok(count),
            (_, None) => Ok(u64::try_from(self.key_records(&table.id).await?.len()).unwrap_or(0)),
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
        let new = keys.iter().filter(|(from, _)| from.is_none()).count();
        let key_count = self.key_count(table).await? + u64::try_from(new).unwrap_or(0);
        let next = Record { version, changed, keys: version, key_count: Some(key_count), ..table.clone() };
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
        match self.call_patiently(Operation::TransactWriteItems, json!({ "TransactItems": actions })).await {
            Ok(_) => Ok(written.into_iter().map(|to| Some((next.clone(), to))).collect()),
            Err(error)
                if error.code == Code::TransactionCanceledException || error.outcome == Outcome::Unknown =>
            {
                // This process may have done it, and the answer was lost. A later change of another
                // key would hide that: the keys' records tell.
                let found = self.key_records(&table.id).await?;
                let now = self.read(&table.id).await?.filter(|now| now.keys >= version);
                // Whoever did it may have known a later record of the table: since when the key lies
                // so is what is on record.
                let done = |to: KeyRecord| {
                    let found = found.iter().find(|found| found.key == to.key)?;
                    let done = *found == KeyRecord { since: found.since, ..to };
                    done.then(|| Some((now.clone()?, found.clone()))).flatten()
                };
                Ok(written.into_iter().map(done).collect())
            }
            Err(error) => Err(self.failed(error)),
        }
    }
}
