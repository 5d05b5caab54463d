//! One physical answer to a Query, read for the merge: its items as spans with the keys that they
//! are ordered by.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use heatsink_dynamo::{AttributeDefinition, Error, KeyValue, json};
use heatsink_layout::{Layout, Table};

use crate::capacity::Capacity;
use crate::collection::keys::{Key, with_sort};
use crate::collection::page;
use crate::collection::position::Position;
use crate::key::KeyText;

/// How to read the answers of one plan.
#[derive(Debug)]
pub(crate) struct Reader {
    /// The table's partition key, whose values are physical.
    pub(crate) partition: AttributeDefinition,
    /// What rows are merged by; without any they stay in the order in which they come.
    pub(crate) sort: Vec<AttributeDefinition>,
    /// The index that is queried.
    pub(crate) index: Option<String>,
    pub(crate) consistent: bool,
    /// Leaves out what does not lie where it should, while a key moves.
    pub(crate) homes: Option<Homes>,
}

/// Where the items of a key lie under one layout. While the key moves, other copies lie in the same
/// physical keys.
#[derive(Debug)]
pub(crate) struct Homes {
    pub(crate) table: Arc<Table>,
    pub(crate) layout: Arc<Layout>,
}

impl Homes {
    /// Whether a raw item with that raw physical key lies where the layout puts it.
    fn holds(&self, partition: Option<&[u8]>, item: &[u8]) -> bool {
        let key = &self.table.key;
        let sort: Option<Key> = key.sort.as_ref().and_then(|sort| {
            let raw = json::member(item, &sort.name).ok()??;
            Some(KeyValue::read(raw, sort).ok()?.into_owned())
        });
        let partition = partition.and_then(|raw| KeyText::read(raw, key.partition.key_type));
        let Some(partition) = partition else { return false };
        let (_, slot) = self.table.decode(&partition.bytes);
        with_sort(sort.as_ref(), |sort| self.layout.slot_of(sort).is_ok_and(|home| slot == Some(home)))
    }
}

/// An item: where it stands in which page, and where its partition key stands in it.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) page: usize,
    pub(crate) item: Range<usize>,
    pub(crate) partition: Range<usize>,
    /// Its size in bytes, estimated so that it is not too large.
    pub(crate) size: f64,
}

/// A page, read.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) rows: Vec<(Position, Row)>,
    /// The raw `LastEvaluatedKey` and its position.
    pub(crate) more: Option<(Position, Bytes)>,
    pub(crate) capacity: Option<Capacity>,
    /// What the page weighs in bytes, as near as is known.
    pub(crate) bytes: f64,
}

/// A page gathered from all shards.
#[derive(Debug, Default)]
pub(crate) struct Collected {
    pub(crate) pages: Vec<Bytes>,
    pub(crate) rows: Vec<Row>,
    /// Where it ends, if that is not its last row.
    pub(crate) end: Option<Row>,
    /// Whether more follows.
    pub(crate) more: bool,
    /// Whether other shards hold the sort key of the last row.
    pub(crate) tied: bool,
    pub(crate) capacity: Option<Capacity>,
}

impl Collected {
    /// The bytes of a row's item, as the store gave them.
    pub(crate) fn item(&self, row: usize) -> Option<&[u8]> {
        let row = self.rows.get(row)?;
        self.pages.get(row.page)?.get(row.item.clone())
    }
}

/// DynamoDB counts reads in steps of 4 KB (AWS, "Read and write operations").
const STEP: f64 = 4096.0;

impl Reader {
    /// Reads the answer that becomes page `number`.
    pub(crate) fn read(&self, number: usize, body: &Bytes) -> Result<Page, Error> {
        let unreadable = |_| Error::internal("The store's answer to Query could not be read");
        let sort = self.sort.first().unwrap_or(&self.partition);
        let page = page::Page::read(body, [&self.partition.name, &sort.name]).map_err(unreadable)?.whole()?;
        let (items, capacity) = (&page.items, page.capacity());
        let (bytes, least) = self.weigh(capacity.as_ref(), items.iter().map(|item| item.raw.len()).sum());
        let size = least / count(items.len().max(1));
        let mut rows = Vec::with_capacity(items.len());
        for item in items {
            let [partition, key] = item.members;
            if self.homes.as_ref().is_some_and(|homes| !homes.holds(partition, item.raw)) {
                continue;
            }
            let partition = partition.and_then(|partition| span(body, partition)).unwrap_or_default();
            let place = span(body, item.raw).ok_or_else(|| unreadable(json::Malformed))?;
            rows.push((self.position(key, item.raw)?, Row { page: number, item: place, partition, size }));
        }
        let more = match page.last {
            None => None,
            Some(last) => {
                let key = json::member(last, &sort.name).map_err(unreadable)?;
                Some((self.position(key, last)?, Bytes::copy_from_slice(last)))
            }
        };
        Ok(Page { rows, more, capacity, bytes })
    }

    /// The position of an item or a cursor, whose first sort attribute is `raw`.
    fn position(&self, raw: Option<&[u8]>, object: &[u8]) -> Result<Position, Error> {
        let value = |raw: Option<&[u8]>, sort: &AttributeDefinition| {
            let key = raw.and_then(|raw| KeyValue::read(raw, sort).ok()).map(KeyValue::into_owned);
            key.ok_or_else(|| {
                Error::internal(format!(
                    "The store's answer to Query has an item without the key {}",
                    sort.name
                ))
            })
        };
        match self.sort.as_slice() {
            [] => Ok(Position::default()),
            [sort] => Ok(Some(value(raw, sort)?).into()),
            several => several
                .iter()
                .map(|sort| value(json::member(object, &sort.name).ok().flatten(), sort))
                .collect(),
        }
    }

    /// What a page weighs, and at least weighs, by what it cost; by its JSON where the store does
    /// not say.
    fn weigh(&self, capacity: Option<&Capacity>, json: usize) -> (f64, f64) {
        let Some(capacity) = capacity else { return (count(json), count(json)) };
        let of_index = self.index.as_ref().and_then(|name| {
            capacity.local_secondary_indexes.get(name).or_else(|| capacity.global_secondary_indexes.get(name))
        });
        let units = of_index.map_or(capacity.capacity_units, |units| units.capacity_units);
        let steps = (units * if self.consistent { 1.0 } else { 2.0 }).round();
        (((steps - 0.5) * STEP).max(0.0), ((steps - 1.0) * STEP).max(0.0))
    }
}

#[allow(clippy::cast_precision_loss, reason = "sizes and counts of one page")]
pub(crate) fn count(count: usize) -> f64 {
    count as f64
}

/// Where `part`, a slice of `whole`, stands in it.
fn span(whole: &[u8], part: &[u8]) -> Option<Range<usize>> {
    let start = (part.as_ptr() as usize).checked_sub(whole.as_ptr() as usize)?;
    (start + part.len() <= whole.len()).then_some(start..start + part.len())
}

#[cfg(test)]
mod tests {
    use heatsink_dynamo::KeyType;

    use super::*;

    /// What a page with two items weighs, and each of them.
    fn weights(index: Option<&str>, consistent: bool, capacity: &str) -> (f64, f64) {
        let attribute = AttributeDefinition { name: "pk".to_owned(), key_type: KeyType::S };
        let reader = Reader {
            partition: attribute,
            sort: Vec::new(),
            index: index.map(str::to_owned),
            consistent,
            homes: None,
        };
        let items = r#"{"pk":{"S":"a"}},{"pk":{"S":"b"}}"#;
        let body = format!(r#"{{"Items":[{items}],"Count":2,"ScannedCount":2{capacity}}}"#);
        let page = reader.read(0, &Bytes::from(body)).unwrap();
        assert_eq!((page.rows.len(), page.rows[0].1.size), (2, page.rows[1].1.size));
        (page.bytes, page.rows[0].1.size)
    }

    #[test]
    fn a_page_weighs_what_it_cost_and_its_items_no_more_than_that() {
        let cost = r#","ConsumedCapacity":{"TableName":"t","CapacityUnits":3.0,"GlobalSecondaryIndexes":{"i":{"CapacityUnits":2.0}}}"#;
        // Six steps: five are full, the last is about half full.
        assert_eq!(weights(None, false, cost), (5.5 * STEP, 5.0 * STEP / 2.0));
        assert_eq!(weights(None, true, cost), (2.5 * STEP, 2.0 * STEP / 2.0));
        assert_eq!(weights(Some("i"), true, cost), (1.5 * STEP, STEP / 2.0));
        // Its JSON, where the store does not say.
        assert_eq!(weights(None, false, ""), (32.0, 16.0));
    }
}
