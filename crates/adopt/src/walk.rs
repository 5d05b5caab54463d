//! Reads every item of a table once, page by page, strongly consistent.

use heatsink_control::registry::Registry;
use heatsink_dynamo::{Error, Operation};
use serde_json::{Value as Json, json};

use crate::item::Attributes;

/// A full read of a table in progress.
pub(crate) struct Walk<'a> {
    registry: &'a Registry,
    table: &'a str,
    start: Option<Json>,
}

impl<'a> Walk<'a> {
    pub fn new(registry: &'a Registry, table: &'a str) -> Self {
        Walk { registry, table, start: Some(Json::Null) }
    }

    /// The next page; `None` after the last. Items that are added behind the reader, as adoption does, may appear; items that are not moved appear
    /// exactly once.
    pub async fn page(&mut self) -> Result<Option<Vec<Attributes>>, Error> {
        let Some(start) = self.start.take() else { return Ok(None) };
        let mut body = json!({ "TableName": self.table, "ConsistentRead": true });
        if !start.is_null() {
            body["ExclusiveStartKey"] = start;
        }
        let mut page = self.registry.call_patiently(Operation::Scan, body).await?;
        let next = page["LastEvaluatedKey"].take();
        self.start = (!next.is_null()).then_some(next);
        let Json::Array(items) = page["Items"].take() else {
            return Err(Error::internal("The store's Scan has no Items"));
        };
        let items = items.into_iter().map(|item| match item {
            Json::Object(item) => Ok(item),
            _ => Err(Error::internal("The store's Scan holds an item that is none")),
        });
        items.collect::<Result<Vec<_>, _>>().map(Some)
    }
}
