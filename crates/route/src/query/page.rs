//! One physical answer: its items as spans, where it goes on, what it cost.

use std::collections::BTreeMap;
use std::ops::Range;

use bytes::Bytes;
use heatsink_dynamo::{AttributeDefinition, Error, KeyValue, json};
use serde::Deserialize;

use super::Key;

/// How to read the answers of one plan.
#[derive(Debug)]
pub(crate) struct Reader {
    /// The table's partition key, whose values are physical.
    pub(crate) partition: AttributeDefinition,
    /// What rows are merged by; without it they stay in the order in which they come.
    pub(crate) sort: Option<AttributeDefinition>,
    /// The index that is queried.
    pub(crate) index: Option<String>,
    pub(crate) consistent: bool,
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
    pub(crate) rows: Vec<(Option<Key>, Row)>,
    /// The raw `LastEvaluatedKey` and the key of [`rows`](Self::rows) in it.
    pub(crate) more: Option<(Option<Key>, Bytes)>,
    pub(crate) capacity: Option<Capacity>,
    /// What the page weighs in bytes, as near as is known.
    pub(crate) bytes: f64,
}

/// `ConsumedCapacity`, of one call or summed over many.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(crate) struct Capacity {
    pub(crate) table_name: String,
    pub(crate) capacity_units: f64,
    pub(crate) table: Option<Units>,
    pub(crate) local_secondary_indexes: BTreeMap<String, Units>,
    pub(crate) global_secondary_indexes: BTreeMap<String, Units>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(crate) struct Units {
    pub(crate) capacity_units: f64,
}

impl Capacity {
    pub(crate) fn add(&mut self, other: &Capacity) {
        self.table_name.clone_from(&other.table_name);
        self.capacity_units += other.capacity_units;
        if let Some(table) = other.table {
            self.table.get_or_insert_default().capacity_units += table.capacity_units;
        }
        let pairs = [
            (&mut self.local_secondary_indexes, &other.local_secondary_indexes),
            (&mut self.global_secondary_indexes, &other.global_secondary_indexes),
        ];
        for (sum, added) in pairs {
            for (name, units) in added {
                sum.entry(name.clone()).or_default().capacity_units += units.capacity_units;
            }
        }
    }
}

/// DynamoDB counts reads in steps of 4 KB (AWS, "Read and write operations").
const STEP: f64 = 4096.0;

impl Reader {
    /// Reads the answer that becomes page `number`.
    pub(crate) fn read(&self, number: usize, body: &Bytes) -> Result<Page, Error> {
        let unreadable = |_| Error::internal("The store's answer to Query could not be read");
        let [items, scanned, last, capacity] =
            json::attributes_of(body, ["Items", "ScannedCount", "LastEvaluatedKey", "ConsumedCapacity"])
                .map_err(unreadable)?;
        let sort = self.sort.as_ref().map_or(&self.partition, |sort| sort);
        let items = json::attributes_of_each(items.unwrap_or(b"[]"), [&self.partition.name, &sort.name])
            .map_err(unreadable)?;
        let scanned = scanned.and_then(|raw| std::str::from_utf8(raw).ok()?.parse::<usize>().ok());
        // A store may count the item that did not fit into the page (the embedded engine does).
        let more = last.is_some_and(|last| last != b"null");
        let expected = items.len()..=items.len() + usize::from(more);
        if scanned.is_some_and(|scanned| !expected.contains(&scanned)) {
            return Err(Error::internal(
                "The store held items back from a Query whose filter is evaluated by Heatsink",
            ));
        }
        let capacity: Option<Capacity> = capacity.and_then(|raw| serde_json::from_slice(raw).ok());
        let (bytes, least) = self.weigh(capacity.as_ref(), items.iter().map(|item| item.raw.len()).sum());
        let size = least / count(items.len().max(1));
        let mut rows = Vec::with_capacity(items.len());
        for item in &items {
            let [partition, key] = item.members;
            let partition = partition.and_then(|partition| span(body, partition)).unwrap_or_default();
            let place = span(body, item.raw).ok_or_else(|| unreadable(json::Malformed))?;
            rows.push((self.key(key)?, Row { page: number, item: place, partition, size }));
        }
        let more = match last.filter(|last| *last != b"null") {
            None => None,
            Some(last) => {
                let key = json::member(last, &sort.name).map_err(unreadable)?;
                Some((self.key(key)?, Bytes::copy_from_slice(last)))
            }
        };
        Ok(Page { rows, more, capacity, bytes })
    }

    fn key(&self, raw: Option<&[u8]>) -> Result<Option<Key>, Error> {
        let Some(sort) = &self.sort else { return Ok(None) };
        let key = raw.and_then(|raw| KeyValue::read(raw, sort).ok());
        key.map(|key| Some(key.into_owned())).ok_or_else(|| {
            Error::internal(format!("The store's answer to Query has an item without the key {}", sort.name))
        })
    }

    /// What a page weighs, and at least weighs, by what it cost; by its JSON where the store does not say.
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
pub(super) fn span(whole: &[u8], part: &[u8]) -> Option<Range<usize>> {
    let start = (part.as_ptr() as usize).checked_sub(whole.as_ptr() as usize)?;
    (start + part.len() <= whole.len()).then_some(start..start + part.len())
}
