//! Reads a table that existed before once, to learn how many bytes each partition holds.

use bytes::Bytes;
use heatsink_dynamo::json::{self, Object};
use heatsink_dynamo::{Error, Operation};

use super::catalogue::TableInfo;
use super::change::Change;
use super::image::Image;
use super::{Partitioned, broken, locate};
use crate::Store;

impl<S: Store> Partitioned<S> {
    /// Scans a table, page by page.
    ///
    /// # Errors
    /// The store's own.
    pub(super) async fn read_initial_sizes(&self, table: &str) -> Result<(), Error> {
        let Some(info) = self.gate.table(table) else { return Ok(()) };
        let mut after: Option<Vec<u8>> = None;
        loop {
            let mut request = Object::new();
            request.string("TableName", table);
            if let Some(key) = &after {
                request.raw("ExclusiveStartKey", key);
            }
            let answer = self.inner.call(Operation::Scan, Bytes::from(request.finish())).await?;
            let [items, last] =
                json::attributes_of(&answer, ["Items", "LastEvaluatedKey"]).map_err(|_| broken())?;
            let items = json::elements(items.unwrap_or(b"[]")).map_err(|_| broken())?;
            self.gate.add_stored(items.into_iter().filter_map(|item| there(&info, item)));
            match last.filter(|last| *last != b"null") {
                Some(last) => after = Some(last.to_vec()),
                None => return Ok(()),
            }
        }
    }
}

/// The bytes of an item, as if it were put now.
fn there(table: &TableInfo, item: &[u8]) -> Option<Change> {
    let image = Image::read(item)?;
    let place = locate::primary_key(Some(item), &table.key);
    Some(Change::of(table, place, None, Some(&image), 1))
}
