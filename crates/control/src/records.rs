//! Records of tables and entries of names, as the registry holds them: read, written and removed,
//! each on condition that it is unchanged.
//!
//! Not here: the first record of a table (`put_on_record`), what a record says (`record`), and an
//! entry (`name`); the requests themselves (`registry`).

use futures::FutureExt;
use futures::future::BoxFuture;
use heatsink_dynamo::{Code, Error, KeyType, Operation, Outcome};
use heatsink_layout::TableLayouts;
use serde_json::{Value as Json, json};

use crate::behind_head;
use crate::describe::Described;
use crate::name::{Holder, NameEntry};
use crate::record::{ChangedAt, Record, SORT, State};
use crate::registry::Registry;
use crate::unread_keys::UnreadKeys;

impl Registry {
    /// The version of a first record or entry: random, so that a record that is removed and created
    /// again differs from the former one.
    pub(crate) fn first_version(&self) -> u64 {
        self.env().random() >> 16
    }

    /// The first record of a table, ACTIVE. `adopted`: whether the table may hold items.
    pub fn first_record(&self, described: &Described, layouts: TableLayouts, adopted: bool) -> Record {
        let of_numbers = described.schema.key.partition.key_type == KeyType::N;
        let numbers = of_numbers && layouts.iter().any(|one| one.index().is_none());
        Record {
            id: described.schema.id.clone(),
            name: described.schema.name.clone(),
            layouts,
            state: State::Active,
            version: self.first_version(),
            created: self.env().unix_millis(),
            changed: ChangedAt(self.env().unix_millis()),
            made: described.made,
            adopted,
            keys: 0,
            tally: None,
            touched: Default::default(),
            forgotten: 0,
            values: Vec::new(),
            numbers,
        }
    }

    /// The record of a table; `None` if it has none, or if there is no registry yet.
    ///
    /// # Errors
    /// The store's; a record that cannot be read, or is older than the head of the registry says.
    pub fn read<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Option<Record>, Error>> {
        async move {
            let Some(record) = self.read_as_it_is(id).await? else { return Ok(None) };
            // Who reads it by itself may not follow the head.
            self.head().await?;
            behind_head::checked(self, record, None).await.map(Some)
        }
        .boxed()
    }

    /// As [`read`](Self::read), whatever the head says.
    pub(crate) fn read_as_it_is<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Option<Record>, Error>> {
        async move {
            let body = json!({ "TableName": self.name(), "Key": key(id), "ConsistentRead": true });
            match self.call(Operation::GetItem, body).await {
                Ok(answer) => answer.get("Item").map(Record::read).transpose(),
                Err(error) if error.code == Code::ResourceNotFoundException => self.absent(None),
                Err(error) => Err(self.failed(error)),
            }
        }
        .boxed()
    }

    /// Every record but those of tables that were deleted through Heatsink; none where there is no
    /// registry. Strongly consistent.
    ///
    /// # Errors
    /// The store's; a record that cannot be read.
    pub async fn all(&self) -> Result<Vec<Record>, Error> {
        let records: Result<Vec<Record>, Error> =
            self.record_items().await?.iter().map(Record::read).collect();
        let mut records = records?;
        records.retain(|record| record.state != State::Gone);
        Ok(records)
    }

    /// The names of the tables that have records, readable or not. Those of deleted ones are among
    /// them.
    pub(crate) async fn recorded_names(&self) -> Result<Vec<String>, Error> {
        let items = self.record_items().await?;
        Ok(items.iter().filter_map(|item| item["name"]["S"].as_str()).map(str::to_owned).collect())
    }

    async fn record_items(&self) -> Result<Vec<Json>, Error> {
        let mut found = Vec::new();
        let mut start = Json::Null;
        loop {
            let mut body = json!({ "TableName": self.name(), "ConsistentRead": true });
            if !start.is_null() {
                body["ExclusiveStartKey"] = start;
            }
            let mut page = match self.call(Operation::Scan, body).await {
                Ok(page) => page,
                Err(error) if error.code == Code::ResourceNotFoundException => return self.absent(found),
                Err(error) => return Err(self.failed(error)),
            };
            let items = page["Items"].as_array_mut().map(std::mem::take).unwrap_or_default();
            found.extend(items.into_iter().filter(|item| item["sk"]["S"] == SORT));
            start = page["LastEvaluatedKey"].take();
            if start.is_null() {
                return Ok(found);
            }
        }
    }

    /// The records that name this table, or have this id.
    pub async fn named(&self, name_or_id: &str) -> Result<Vec<Record>, Error> {
        let mut found = self.all().await?;
        found.retain(|record| record.name == name_or_id || record.id == name_or_id);
        Ok(found)
    }

    /// The registry's data of a table: the entry of its name, and the record under its id. One
    /// strongly consistent request. Both are missing if there is no registry yet.
    pub(crate) async fn look_up(
        &self,
        name: &str,
        id: &str,
    ) -> Result<(Option<NameEntry>, Option<Record>), Error> {
        let mut keys = vec![NameEntry::key(name), key(id)];
        let (mut entry, mut record) = (None, None);
        let mut unread = UnreadKeys::default();
        while !keys.is_empty() {
            unread.pause(self, &format!("what the registry says of table {name}")).await?;
            let body = json!({ "RequestItems": { self.name(): { "Keys": keys, "ConsistentRead": true } } });
            let answer = match self.call_patiently(Operation::BatchGetItem, body).await {
                Err(error) if error.code == Code::ResourceNotFoundException => {
                    return self.absent((None, None));
                }
                answer => answer.map_err(|error| self.failed(error))?,
            };
            for item in answer["Responses"][self.name()].as_array().into_iter().flatten() {
                if item["sk"]["S"] == SORT {
                    self.note_recorded(id);
                    record = Some(Record::read(item)?);
                } else {
                    entry = Some(NameEntry::read(item)?);
                }
            }
            let left = &answer["UnprocessedKeys"][self.name()]["Keys"];
            keys = left.as_array().cloned().unwrap_or_default();
        }
        Ok((entry, record))
    }

    /// The entry of a name; `None` if it has none, or if there is no registry yet.
    pub async fn entry(&self, name: &str) -> Result<Option<NameEntry>, Error> {
        let body = json!({ "TableName": self.name(), "Key": NameEntry::key(name), "ConsistentRead": true });
        match self.call_patiently(Operation::GetItem, body).await {
            Ok(answer) => answer.get("Item").map(NameEntry::read).transpose(),
            Err(error) if error.code == Code::ResourceNotFoundException => self.absent(None),
            Err(error) => Err(self.failed(error)),
        }
    }

    /// The next entry of a name after `before`, with another holder; `None` for a name without an
    /// entry.
    pub(crate) fn entry_after(&self, before: Option<&NameEntry>, name: &str, holder: Holder) -> NameEntry {
        match before {
            Some(before) => before.held(holder),
            None => NameEntry { name: name.to_owned(), holder, version: self.first_version() },
        }
    }

    /// Writes the entry of a name, if it still equals `from` (`None`: if there is none). `false`
    /// when it does not.
    pub(crate) async fn enter(&self, from: Option<&NameEntry>, to: &NameEntry) -> Result<bool, Error> {
        let mut body = json!({ "TableName": self.name(), "Item": to.item() });
        unchanged(&mut body, from);
        match self.call_patiently(Operation::PutItem, body).await {
            Ok(_) => Ok(true),
            Err(error)
                if error.code == Code::ConditionalCheckFailedException
                    || error.outcome == Outcome::Unknown =>
            {
                Ok(self.entry(&to.name).await?.as_ref() == Some(to))
            }
            Err(error) => Err(self.failed(error)),
        }
    }

    /// Rewrites records of the previous form, so that builds without the fence cannot read them any
    /// more.
    pub(crate) async fn upgrade(&self) -> Result<(), Error> {
        for record in self.all().await? {
            let next = Record { version: record.version + 1, ..record.clone() };
            self.replace(&record, &next).await?;
        }
        Ok(())
    }

    /// Replaces a record, if it still equals `from`. `false` when it does not.
    pub fn replace<'a>(&'a self, from: &'a Record, to: &'a Record) -> BoxFuture<'a, Result<bool, Error>> {
        async move {
            let to = Record { changed: ChangedAt(self.env().unix_millis()), ..to.clone() };
            let body = json!({
                "TableName": self.name(), "Item": to.item(), "ConditionExpression": "#v = :v",
                "ExpressionAttributeNames": { "#v": "version" }, "ExpressionAttributeValues": { ":v": { "N": from.version.to_string() } },
            });
            match self.call_patiently(Operation::PutItem, body).await {
                Ok(_) => Ok(true),
                Err(error)
                    if error.code == Code::ConditionalCheckFailedException
                        || error.outcome == Outcome::Unknown =>
                {
                    match self.read(&to.id).await? {
                        Some(found) => Ok(found == to),
                        None => Ok(false),
                    }
                }
                Err(error) => Err(self.failed(error)),
            }
        }
        .boxed()
    }

    /// Removes a record, if it still equals `record`. `false` when it changed meanwhile; a missing
    /// record counts as removed.
    pub fn remove<'a>(&'a self, record: &'a Record) -> BoxFuture<'a, Result<bool, Error>> {
        async move {
            let body = json!({
                "TableName": self.name(), "Key": key(&record.id), "ConditionExpression": "attribute_not_exists(pk) OR #v = :v",
                "ExpressionAttributeNames": { "#v": "version" }, "ExpressionAttributeValues": { ":v": { "N": record.version.to_string() } },
            });
            match self.call(Operation::DeleteItem, body).await {
                Ok(_) => Ok(true),
                Err(error) if error.code == Code::ConditionalCheckFailedException => Ok(false),
                Err(error) => Err(self.failed(error)),
            }
        }
        .boxed()
    }

    /// Removes a record, if it still equals `record`, and writes the entry of its name, if that
    /// still equals `from`, in one transaction. `false` when either changed meanwhile: then neither
    /// was done.
    pub async fn remove_with_name(
        &self,
        record: &Record,
        from: &NameEntry,
        to: &NameEntry,
    ) -> Result<bool, Error> {
        let mut named = json!({ "TableName": self.name(), "Item": to.item() });
        unchanged(&mut named, Some(from));
        let delete = json!({
            "TableName": self.name(), "Key": key(&record.id), "ConditionExpression": "#v = :v",
            "ExpressionAttributeNames": { "#v": "version" }, "ExpressionAttributeValues": { ":v": { "N": record.version.to_string() } },
        });
        let body = json!({ "TransactItems": [{ "Delete": delete }, { "Put": named }] });
        match self.call_patiently(Operation::TransactWriteItems, body).await {
            Ok(_) => Ok(true),
            // Or this process did it, and the answer was lost.
            Err(error)
                if error.code == Code::TransactionCanceledException || error.outcome == Outcome::Unknown =>
            {
                Ok(self.read(&record.id).await?.is_none())
            }
            Err(error) => Err(self.failed(error)),
        }
    }
}

/// Makes a put conditional on an entry that is unchanged since it was read; `None` for no entry.
pub(crate) fn unchanged(put: &mut Json, entry: Option<&NameEntry>) {
    put["ConditionExpression"] = json!("attribute_not_exists(pk)");
    if let Some(entry) = entry {
        put["ConditionExpression"] = json!("#v = :v");
        put["ExpressionAttributeNames"] = json!({ "#v": "version" });
        put["ExpressionAttributeValues"] = json!({ ":v": { "N": entry.version.to_string() } });
    }
}

fn key(id: &str) -> Json {
    json!({ "pk": { "S": id }, "sk": { "S": SORT } })
}
