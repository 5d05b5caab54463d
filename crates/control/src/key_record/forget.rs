//! Takes records of keys off the registry whose keys lie as they would without them.
//!
//! The names of the slots that such a key once had are clients' again. Positions of Scans that began
//! while it had them are refused, because they name a change that nobody knows any more.
//!
//! Not here: whether a table is to forget its keys (`heatsink_workers::leave`).

use futures::FutureExt;
use futures::future::BoxFuture;
use heatsink_dynamo::{Code, Error, Outcome};
use serde_json::json;

use super::KeyRecord;
use super::pace::Pace;
use super::writes::{MOST_KEYS, fewer};
use crate::record::{ChangedAt, Record};
use crate::registry::Registry;
use crate::transact::{LONGEST_OF_WRITES, PATIENCE, Written, transact};

impl Registry {
    /// Takes the records of these keys off the registry, each if it still equals what is given, and
    /// with them writes the table's record, all or none; `keys` are as many as one transaction
    /// takes, or fewer. Returns the table's record as it is then, which has to be published; `None`
    /// where something had changed.
    ///
    /// # Errors
    /// The store's.
    async fn forget_some(&self, table: &Record, keys: &[KeyRecord]) -> Result<Option<Record>, Error> {
        let mut tally = self.tally(table).await?;
        let mut actions = Vec::with_capacity(keys.len() + 1);
        let mut places = Vec::with_capacity(keys.len());
        for key in keys {
            let sort = KeyRecord::place(&key.key, key.key_type)?.sort;
            places.push(sort.clone());
            tally = tally.without(&sort, key.version);
            actions.push(json!({ "Delete": {
                "TableName": self.name(), "Key": { "pk": { "S": table.id }, "sk": { "S": sort } }, "ConditionExpression": "#v = :v",
                "ExpressionAttributeNames": { "#v": "version" }, "ExpressionAttributeValues": { ":v": { "N": key.version.to_string() } },
            } }));
        }
        let version = table.version + 1;
        let (keys, tally) = if tally.count == 0 { (0, None) } else { (version, Some(tally)) };
        let changed = ChangedAt(self.env().unix_millis());
        let touched = table.touched.with(table.keys, version, places.iter().map(String::as_str));
        let next = Record { version, changed, keys, tally, touched, forgotten: version, ..table.clone() };
        actions.push(json!({ "Put": {
            "TableName": self.name(), "Item": next.item(), "ConditionExpression": "#v = :v",
            "ExpressionAttributeNames": { "#v": "version" }, "ExpressionAttributeValues": { ":v": { "N": table.version.to_string() } },
        } }));
        match transact(self, actions, None, (LONGEST_OF_WRITES, PATIENCE)).await {
            Ok(Written::Done) => Ok(Some(next)),
            Err(error) if error.code == Code::ValidationException => Err(error),
            Err(error)
                if error.code != Code::TransactionCanceledException && error.outcome != Outcome::Unknown =>
            {
                Err(self.failed(error))
            }
            // This process may have done it, and the answer was lost.
            Ok(Written::Refused(_)) | Err(_) => {
                Ok(self.read(&table.id).await?.filter(|found| *found == next))
            }
        }
    }

    /// Takes the records of all keys of a table off the registry. Killed in between, the table has
    /// the records that are left, and its record says so. Returns the table's record as it is then,
    /// which has to be published; `None` where another process changed something.
    ///
    /// # Errors
    /// The store's.
    pub fn forget_keys<'a>(
        &'a self,
        table: &'a Record,
        keys: &'a [KeyRecord],
    ) -> BoxFuture<'a, Result<Option<Record>, Error>> {
        async move {
            let mut table = table.clone();
            let (mut left, mut most) = (keys, MOST_KEYS);
            let pace = Pace::default();
            while !left.is_empty() {
                pace.wait_for_less(&**self.env()).await;
                let (now, later) = left.split_at(most.min(left.len()));
                table = match self.forget_some(&table, now).await {
                    // Older stores take fewer actions.
                    Err(error) if error.code == Code::ValidationException => match fewer(now.len()) {
                        Some(fewer) => {
                            most = fewer;
                            continue;
                        }
                        None => return Err(error),
                    },
                    Ok(None) => return Ok(None),
                    Ok(Some(next)) => {
                        pace.spend(&**self.env(), now.len());
                        next
                    }
                    Err(error) => return Err(error),
                };
                left = later;
            }
            Ok(Some(table))
        }
        .boxed()
    }

    /// Takes the record of a table off the registry that does not exist any more, with those of its
    /// keys: nobody reads them. `false` where another process changed something.
    ///
    /// # Errors
    /// The store's.
    pub async fn forget_table(&self, table: &Record) -> Result<bool, Error> {
        let keys = if table.keys > 0 { self.key_records(&table.id).await? } else { Vec::new() };
        match self.forget_keys(table, &keys).await? {
            Some(record) => self.remove(&record).await,
            None => Ok(false),
        }
    }
}
