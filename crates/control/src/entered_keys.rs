//! The keys that were entered while a table's layouts change, in the directory: those to which a
//! client wrote that had no record.
//!
//! Not here: the rows that requests write (`route`), when a key is entered
//! (`heatsink_reshard::first_write`).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures::future::{BoxFuture, FutureExt, try_join_all};
use heatsink_dynamo::{Error, Operation};
use heatsink_layout::{DIRECTORY, ENTERED_PARTS, entered_part};
use serde_json::{Value as Json, json};

use crate::record::Record;
use crate::registry::Registry;

/// How many rows one request removes.
const AT_ONCE: usize = 25;

impl Registry {
    /// The keys that were entered for a change, in no order. Strongly consistent.
    ///
    /// # Errors
    /// The store's; a row that cannot be read.
    pub fn entered_keys<'a>(
        &'a self,
        record: &'a Record,
        run: u64,
    ) -> BoxFuture<'a, Result<Vec<Vec<u8>>, Error>> {
        async move {
            let rows = self.entered_rows(record, run).await?;
            let key = |row: &Json| {
                let key = row["key"]["B"].as_str().and_then(|text| STANDARD.decode(text).ok());
                key.ok_or_else(|| {
                    Error::internal(format!("A row of {DIRECTORY} is damaged: it names no key"))
                })
            };
            rows.iter().map(key).collect()
        }
        .boxed()
    }

    /// Removes what was entered for a change that is over.
    ///
    /// # Errors
    /// The store's.
    pub fn forget_entered<'a>(&'a self, record: &'a Record, run: u64) -> BoxFuture<'a, Result<(), Error>> {
        async move {
            let rows = self.entered_rows(record, run).await?;
            for some in rows.chunks(AT_ONCE) {
                let delete =
                    |row: &Json| json!({ "DeleteRequest": { "Key": { "pk": row["pk"], "sk": row["sk"] } } });
                let mut asked = json!(some.iter().map(delete).collect::<Vec<_>>());
                while asked.as_array().is_some_and(|asked| !asked.is_empty()) {
                    let body = json!({ "RequestItems": { DIRECTORY: asked } });
                    let mut answer = self.call_patiently(Operation::BatchWriteItem, body).await?;
                    asked = answer["UnprocessedItems"][DIRECTORY].take();
                }
            }
            Ok(())
        }
        .boxed()
    }

    async fn entered_rows(&self, record: &Record, run: u64) -> Result<Vec<Json>, Error> {
        let parts = (0..ENTERED_PARTS).map(|part| self.rows_of(entered_part(&record.id, run, part)));
        Ok(try_join_all(parts).await?.concat())
    }

    async fn rows_of(&self, pk: String) -> Result<Vec<Json>, Error> {
        let (mut rows, mut start) = (Vec::new(), Json::Null);
        loop {
            let mut body = json!({
                "TableName": DIRECTORY, "ConsistentRead": true, "KeyConditionExpression": "pk = :p",
                "ExpressionAttributeValues": { ":p": { "S": pk } },
            });
            if !start.is_null() {
                body["ExclusiveStartKey"] = start;
            }
            let mut page = self.call_patiently(Operation::Query, body).await?;
            if let Json::Array(found) = page["Items"].take() {
                rows.extend(found);
            }
            start = page["LastEvaluatedKey"].take();
            if start.is_null() {
                return Ok(rows);
            }
        }
    }
}
