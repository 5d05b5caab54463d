//! Reads every item of a table once, page by page, strongly consistent; or what a Query of an index
//! finds, as the index has it.

use std::sync::atomic::{AtomicU64, Ordering};

use futures::{StreamExt, TryStreamExt, stream};
use heatsink_control::Record;
use heatsink_control::registry::Registry;
use heatsink_dynamo::{Error, Operation};
use heatsink_layout::Table;
use serde_json::{Value as Json, json};

use crate::error::WorkerError;
use crate::items::item::Attributes;
use crate::on_record::taken_over;
use crate::progress::Progress;

/// A full read of a table, or of what a Query finds, in progress.
pub(crate) struct Walk<'a> {
    registry: &'a Registry,
    table: &'a str,
    operation: Operation,
    request: Json,
    start: Option<Json>,
    units: f64,
}

impl<'a> Walk<'a> {
    pub fn new(registry: &'a Registry, table: &'a str) -> Self {
        let request = json!({ "TableName": table, "ConsistentRead": true });
        Walk { registry, table, operation: Operation::Scan, request, start: Some(Json::Null), units: 0.0 }
    }

    /// Of the partition keys of all items alone.
    pub fn of_keys(registry: &'a Registry, table: &'a Table) -> Self {
        let partition = &table.key.partition.name;
        let mut walk = Walk::new(registry, &table.name);
        walk.request["ReturnConsumedCapacity"] = json!("TOTAL");
        walk.request["ProjectionExpression"] = json!("#p");
        walk.request["ExpressionAttributeNames"] = json!({ "#p": partition });
        walk
    }

    /// Of what that Query of the table finds.
    pub fn of_query(registry: &'a Registry, table: &'a str, request: Json) -> Self {
        Walk { registry, table, operation: Operation::Query, request, start: Some(Json::Null), units: 0.0 }
    }

    /// Read units that it has taken, where it asks for them: a walk of keys does.
    pub fn units(&self) -> f64 {
        self.units
    }

    /// The next page; `None` after the last. Items that are added behind the reader, as adoption
    /// does, may appear; items that are not moved appear exactly once.
    pub async fn page(&mut self) -> Result<Option<Vec<Attributes>>, Error> {
        let Some(start) = self.start.take() else { return Ok(None) };
        let mut body = self.request.clone();
        if !start.is_null() {
            body["ExclusiveStartKey"] = start;
        }
        let mut page = self.registry.call_patiently(self.operation, body).await?;
        self.units += page["ConsumedCapacity"]["CapacityUnits"].as_f64().unwrap_or(0.0);
        let next = page["LastEvaluatedKey"].take();
        self.start = (!next.is_null()).then_some(next);
        let Json::Array(items) = page["Items"].take() else {
            return Err(Error::internal(format!("The store's {} has no Items", self.operation.name())));
        };
        let items = items.into_iter().map(|item| match item {
            Json::Object(item) => Ok(item),
            _ => Err(Error::internal(format!(
                "The store's {} holds an item that is none",
                self.operation.name()
            ))),
        });
        items.collect::<Result<Vec<_>, _>>().map(Some)
    }

    /// Gives every item to `change`, `concurrency` at once, which says whether it changed the item.
    /// Returns the number of changed items.
    ///
    /// # Errors
    /// The store's, the first of `change`, and that the record is not `record` any more: another
    /// process has taken over.
    pub async fn change_each<C>(
        mut self,
        record: &Record,
        concurrency: usize,
        progress: &dyn Progress,
        change: impl Fn(Attributes) -> C,
    ) -> Result<u64, WorkerError>
    where
        C: Future<Output = Result<bool, WorkerError>>,
    {
        let changed = AtomicU64::new(0);
        while let Some(page) = self.page().await? {
            if self.registry.read(&record.id).await?.as_ref() != Some(record) {
                return Err(taken_over(self.table));
            }
            stream::iter(page)
                .map(Ok::<Attributes, WorkerError>)
                .try_for_each_concurrent(concurrency.max(1), |item| {
                    let (changed, change) = (&changed, change(item));
                    async move {
                        changed.fetch_add(u64::from(change.await?), Ordering::Relaxed);
                        progress.passed(1);
                        Ok(())
                    }
                })
                .await?;
        }
        Ok(changed.into_inner())
    }
}
