//! The registry: one table in the store itself that says how stored data is laid out. One record per table, keyed by the
//! store's own id of the table, so that a table dropped and made again has no record.
//!
//! Not here: when a table is recorded (`resolve`), what a record means for requests (`control`).

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use heatsink_dynamo::{Code, Error, Operation, Outcome};
use heatsink_env::Env;
use heatsink_layout::{Bucket, DIRECTORY, Table, TableLayouts, directory_key};
use heatsink_store::Store;
use serde_json::{Value as Json, json};

use crate::describe::{self, Described};
use crate::record::{Record, SORT};

/// The registry's table name. Clients never see it.
pub const REGISTRY: &str = "heatsink.registry";

/// How long to wait for the registry's table to become active, in steps of [`POLL`].
const PATIENCE: u32 = 300;
const POLL: Duration = Duration::from_millis(200);

/// How often a throttled request of adoption is sent again: some three minutes.
const THROTTLES: u32 = 100;

/// The store, as the registry and adoption use it.
#[derive(Clone)]
pub(crate) struct Registry {
    store: Arc<dyn Store>,
    env: Arc<dyn Env>,
}

impl Registry {
    pub fn new(store: Arc<dyn Store>, env: Arc<dyn Env>) -> Self {
        Registry { store, env }
    }

    pub fn env(&self) -> &Arc<dyn Env> {
        &self.env
    }

    /// One request to the store.
    pub async fn call(&self, operation: Operation, body: Json) -> Result<Json, Error> {
        let answer = self.store.call(operation, Bytes::from(body.to_string())).await?;
        serde_json::from_slice(&answer).map_err(|error| {
            Error::internal(format!("The store's answer to {} is not JSON: {error}", operation.name()))
        })
    }

    /// One request to the store, sent again with jittered backoff while the store throttles it.
    pub async fn call_patiently(&self, operation: Operation, body: Json) -> Result<Json, Error> {
        let mut pause = Duration::from_millis(50);
        for _ in 0..THROTTLES {
            match self.call(operation, body.clone()).await {
                Err(Error {
                    code:
                        Code::ProvisionedThroughputExceededException
                        | Code::ThrottlingException
                        | Code::RequestLimitExceeded,
                    outcome: Outcome::NotDone,
                    ..
                }) => {
                    let jitter = self.env.random() % 1_000;
                    self.env.sleep(pause / 2 + pause * u32::try_from(jitter).unwrap_or(0) / 2_000).await;
                    pause = (pause * 2).min(Duration::from_secs(2));
                }
                answer => return answer,
            }
        }
        self.call(operation, body).await
    }

    /// Describes a table; `None` if there is none of that name.
    pub async fn describe(&self, table: &str) -> Result<Option<Described>, Error> {
        match self
            .store
            .call(Operation::DescribeTable, Bytes::from(json!({ "TableName": table }).to_string()))
            .await
        {
            Ok(answer) => describe::answer(&answer).map(Some),
            Err(error) if error.code == Code::ResourceNotFoundException => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether the registry's table is there.
    pub async fn exists(&self) -> Result<bool, Error> {
        Ok(self.describe(REGISTRY).await?.is_some())
    }

    /// The record of a table; `None` if it has none, or if there is no registry yet.
    pub async fn read(&self, id: &str) -> Result<Option<Record>, Error> {
        let body = json!({ "TableName": REGISTRY, "Key": key(id), "ConsistentRead": true });
        match self.call(Operation::GetItem, body).await {
            Ok(answer) => answer.get("Item").map(Record::read).transpose(),
            Err(error) if error.code == Code::ResourceNotFoundException => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The names of all tables of the store.
    pub async fn tables(&self) -> Result<HashSet<String>, Error> {
        let mut found = HashSet::new();
        let mut start = Json::Null;
        loop {
            let body = if start.is_null() { json!({}) } else { json!({ "ExclusiveStartTableName": start }) };
            let mut page = self.call(Operation::ListTables, body).await?;
            let names = page["TableNames"].as_array().into_iter().flatten().filter_map(Json::as_str);
            found.extend(names.map(str::to_owned));
            start = page["LastEvaluatedTableName"].take();
            if start.is_null() {
                return Ok(found);
            }
        }
    }

    /// Every record, those of tables that are gone included.
    pub async fn all(&self) -> Result<Vec<Record>, Error> {
        let mut found = Vec::new();
        let mut start = Json::Null;
        loop {
            let mut body = json!({ "TableName": REGISTRY, "ConsistentRead": true });
            if !start.is_null() {
                body["ExclusiveStartKey"] = start;
            }
            let mut page = match self.call(Operation::Scan, body).await {
                Ok(page) => page,
                Err(error) if error.code == Code::ResourceNotFoundException => return Ok(found),
                Err(error) => return Err(error),
            };
            let records =
                page["Items"].as_array().into_iter().flatten().filter(|item| item["sk"]["S"] == SORT);
            for item in records {
                found.push(Record::read(item)?);
            }
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

    /// Writes a table's first record, and the registry's table if need be. Returns the record in force: this one, or the one
    /// that another writer put there first.
    pub async fn create(&self, record: &Record) -> Result<Record, Error> {
        let body = json!({ "TableName": REGISTRY, "Item": record.item(), "ConditionExpression": "attribute_not_exists(pk)" });
        let put = match self.call(Operation::PutItem, body.clone()).await {
            Err(error) if error.code == Code::ResourceNotFoundException => {
                self.make(REGISTRY).await?;
                self.call(Operation::PutItem, body).await
            }
            put => put,
        };
        match put {
            Ok(_) => Ok(record.clone()),
            // Somebody was first; or it was us, and the answer was lost. The record itself tells.
            Err(error)
                if error.code == Code::ConditionalCheckFailedException
                    || error.outcome == Outcome::Unknown =>
            {
                self.read(&record.id).await?.ok_or(error)
            }
            Err(error) => Err(error),
        }
    }

    /// Replaces a record, if it still is as `from`. `false` when it is not.
    pub async fn replace(&self, from: &Record, to: &Record) -> Result<bool, Error> {
        let body = json!({
            "TableName": REGISTRY, "Item": to.item(), "ConditionExpression": "#v = :v",
            "ExpressionAttributeNames": { "#v": "version" }, "ExpressionAttributeValues": { ":v": { "N": from.version.to_string() } },
        });
        match self.call(Operation::PutItem, body).await {
            Ok(_) => Ok(true),
            Err(error)
                if error.code == Code::ConditionalCheckFailedException
                    || error.outcome == Outcome::Unknown =>
            {
                match self.read(&to.id).await? {
                    Some(found) => Ok(found == *to),
                    None => Ok(false),
                }
            }
            Err(error) => Err(error),
        }
    }

    /// Removes a record, if it still is as `record`. `false` when it changed meanwhile; a record that is gone is removed.
    pub async fn remove(&self, record: &Record) -> Result<bool, Error> {
        let body = json!({
            "TableName": REGISTRY, "Key": key(&record.id), "ConditionExpression": "attribute_not_exists(pk) OR #v = :v",
            "ExpressionAttributeNames": { "#v": "version" }, "ExpressionAttributeValues": { ":v": { "N": record.version.to_string() } },
        });
        match self.call(Operation::DeleteItem, body).await {
            Ok(_) => Ok(true),
            Err(error) if error.code == Code::ConditionalCheckFailedException => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Removes the record of a table that was deleted. Without a registry there is nothing to do.
    pub async fn forget(&self, id: &str) -> Result<(), Error> {
        match self.call(Operation::DeleteItem, json!({ "TableName": REGISTRY, "Key": key(id) })).await {
            Ok(_) => Ok(()),
            Err(error) if error.code == Code::ResourceNotFoundException => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Whether a table holds no item, by a strongly consistent look.
    pub async fn is_empty(&self, table: &str) -> Result<bool, Error> {
        let mut start = Json::Null;
        loop {
            let mut body =
                json!({ "TableName": table, "Limit": 1, "ConsistentRead": true, "Select": "COUNT" });
            if !start.is_null() {
                body["ExclusiveStartKey"] = start;
            }
            let mut page = self.call(Operation::Scan, body).await?;
            if page["Count"].as_u64() != Some(0) {
                return Ok(false);
            }
            // A page may be empty and yet not the last.
            start = page["LastEvaluatedKey"].take();
            if start.is_null() {
                return Ok(true);
            }
        }
    }

    /// Makes the directory of buckets, if any of those layouts has buckets and it is not there yet.
    pub async fn make_directory(&self, layouts: &TableLayouts) -> Result<(), Error> {
        let needed = layouts.iter().any(|one| one.layout().time().is_some());
        if needed && self.describe(DIRECTORY).await?.is_none_or(|described| described.status != "ACTIVE") {
            self.make(DIRECTORY).await?;
        }
        Ok(())
    }

    /// Enters a bucket of a logical key in the directory. Patient with throttles.
    pub async fn enter_bucket(&self, table: &Table, logical: &[u8], bucket: Bucket) -> Result<(), Error> {
        let item = json!({ "pk": { "S": directory_key(table, logical) }, "sk": { "S": bucket.to_string() } });
        self.call_patiently(Operation::PutItem, json!({ "TableName": DIRECTORY, "Item": item })).await?;
        Ok(())
    }

    /// Makes a table of Heatsink's own and waits until it can be used.
    async fn make(&self, table: &str) -> Result<(), Error> {
        let body = json!({
            "TableName": table, "BillingMode": "PAY_PER_REQUEST",
            "AttributeDefinitions": [{ "AttributeName": "pk", "AttributeType": "S" }, { "AttributeName": "sk", "AttributeType": "S" }],
            "KeySchema": [{ "AttributeName": "pk", "KeyType": "HASH" }, { "AttributeName": "sk", "KeyType": "RANGE" }],
        });
        match self.call(Operation::CreateTable, body).await {
            Ok(_) => {}
            // Another gateway was first.
            Err(error) if error.code == Code::ResourceInUseException => {}
            Err(error) => return Err(error),
        }
        for _ in 0..PATIENCE {
            match self.describe(table).await? {
                Some(described) if described.status == "ACTIVE" => return Ok(()),
                _ => self.env.sleep(POLL).await,
            }
        }
        Err(Error::unavailable(
            format!("The table {table} did not become active within {} s", PATIENCE / 5),
            Outcome::NotDone,
        ))
    }
}

fn key(id: &str) -> Json {
    json!({ "pk": { "S": id }, "sk": { "S": SORT } })
}
