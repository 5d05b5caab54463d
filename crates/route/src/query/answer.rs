//! The client's answer out of merged rows: filtered, projected, counted, its keys logical.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use heatsink_dynamo::Error;
use heatsink_dynamo::expression::{Condition as Filter, Projection};
use heatsink_dynamo::json::{self, Malformed, Object};
use heatsink_dynamo::value::read_attributes;
use heatsink_layout::Table;
use serde_json::json;

use super::Key;
use super::page::{Capacity, Row, Units};
use super::request::Report;
use super::scatter::Collected;
use crate::cursor;
use crate::key::strip;
use crate::projection::project;
use crate::splice::Splice;

/// What the logical partition key of a row is.
#[derive(Debug)]
pub(crate) enum Logical {
    /// The same for all rows: this raw value.
    Fixed(Vec<u8>),
    /// To be read out of each row's own.
    Decoded,
}

/// When a cursor says in which shard its item lies, if that was drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Marks {
    /// None is drawn.
    Never,
    /// Where several shards hold the last sort key.
    Ties,
    /// On an index.
    Always,
}

/// What the client wants to see of the rows.
#[derive(Debug)]
pub(crate) struct Shape {
    pub(crate) filter: Option<Filter>,
    /// What to leave of each item; `None` leaves all.
    pub(crate) projection: Option<Projection>,
    pub(crate) count: bool,
    pub(crate) report: Report,
    pub(crate) table: Arc<Table>,
    pub(crate) logical: Logical,
    pub(crate) marks: Marks,
    /// The sort key of a cursor that said where its item lies.
    pub(crate) from: Option<Key>,
    /// The attributes of a cursor.
    pub(crate) cursor: Vec<String>,
    /// Where there is no cursor, unless another shard has that sort key too ([`super::request::Query::end`]).
    pub(crate) end: Option<Key>,
    /// Whether the key that is queried is all of the primary key: behind its item there is no cursor either.
    pub(crate) unique: bool,
}

impl Shape {
    /// The answer: the whole page, or only its first `rows`. If more follows it has a cursor, which stands at the last row.
    pub(crate) fn answer(&self, page: &Collected, rows: Option<usize>) -> Result<Bytes, Error> {
        let all = page.rows.as_slice();
        let shown = rows.and_then(|rows| all.get(..rows)).unwrap_or(all);
        let cut = shown.len() < all.len();
        let more = page.more || cut;
        // Of a cut page it is not known what other shards hold; a mark is right in any case.
        let marked = match self.marks {
            Marks::Never => false,
            Marks::Ties => page.tied || cut,
            Marks::Always => true,
        };
        self.write(&page.pages, shown, more.then_some(marked), page.capacity.as_ref())
            .map_err(|Malformed| Error::internal("The store's answer to Query could not be read"))
    }

    fn write(
        &self,
        pages: &[Bytes],
        rows: &[Row],
        more: Option<bool>,
        capacity: Option<&Capacity>,
    ) -> Result<Bytes, Malformed> {
        let roots: Option<BTreeSet<&str>> = self.filter.as_ref().map(Filter::roots);
        let mut items = vec![b'['];
        let mut shown = 0_usize;
        let mut scratch = Vec::new();
        for row in rows {
            scratch.clear();
            self.logical(pages, row, &mut scratch)?;
            if let (Some(filter), Some(roots)) = (&self.filter, &roots)
                && !filter.holds(&read_attributes(&scratch, roots).map_err(|_| Malformed)?)
            {
                continue;
            }
            shown += 1;
            if self.count {
                continue;
            }
            if shown > 1 {
                items.push(b',');
            }
            match &self.projection {
                None => items.extend_from_slice(&scratch),
                Some(projection) => project(projection, &scratch, &mut items)?,
            }
        }
        items.push(b']');
        let mut answer = Object::new();
        if !self.count {
            answer.raw("Items", &items);
        }
        answer
            .raw("Count", shown.to_string().as_bytes())
            .raw("ScannedCount", rows.len().to_string().as_bytes());
        if let (Some(marked), Some(last)) = (more, rows.last()) {
            answer.raw("LastEvaluatedKey", &self.cursor(pages, last, marked)?);
        }
        if let (Some(capacity), Report::Total | Report::Indexes) = (capacity, self.report) {
            answer.raw("ConsumedCapacity", self.capacity(capacity).to_string().as_bytes());
        }
        Ok(Bytes::from(answer.finish()))
    }

    /// Writes a row's item with its partition key made logical.
    fn logical(&self, pages: &[Bytes], row: &Row, out: &mut Vec<u8>) -> Result<(), Malformed> {
        let page = pages.get(row.page).ok_or(Malformed)?;
        match &self.logical {
            Logical::Fixed(key) if !row.partition.is_empty() => {
                out.extend_from_slice(page.get(row.item.start..row.partition.start).ok_or(Malformed)?);
                out.extend_from_slice(key);
                out.extend_from_slice(page.get(row.partition.end..row.item.end).ok_or(Malformed)?);
            }
            Logical::Fixed(_) => out.extend_from_slice(page.get(row.item.clone()).ok_or(Malformed)?),
            Logical::Decoded => {
                let item = page.slice(row.item.clone());
                let mut splice = Splice::new(&item);
                strip(&self.table, &item, &mut splice)?;
                out.extend_from_slice(&splice.finish(&item));
            }
        }
        Ok(())
    }

    /// The plain logical key at which a page that ended with `row` goes on; if it is to be marked, with the row's shard.
    fn cursor(&self, pages: &[Bytes], row: &Row, marked: bool) -> Result<Vec<u8>, Malformed> {
        let mut item = Vec::new();
        self.logical(pages, row, &mut item)?;
        let members = json::members(&item)?;
        let mut found = Object::new();
        for name in &self.cursor {
            let (_, value) = members.iter().find(|(known, _)| known == name).ok_or(Malformed)?;
            found.raw(name, value);
        }
        if marked {
            let partition = pages.get(row.page).and_then(|page| page.get(row.partition.clone()));
            if let Some(shard) = cursor::shard(&self.table, partition.ok_or(Malformed)?) {
                found.raw(cursor::SHARD, shard.as_bytes());
            }
        }
        Ok(found.finish())
    }

    fn capacity(&self, capacity: &Capacity) -> serde_json::Value {
        let units = |units: &Units| json!({ "CapacityUnits": units.capacity_units });
        let mut shown = json!({ "TableName": capacity.table_name, "CapacityUnits": capacity.capacity_units });
        if self.report == Report::Indexes {
            let all = |indexes: &BTreeMap<String, Units>| {
                indexes.iter().map(|(name, used)| (name.clone(), units(used))).collect()
            };
            let parts = [
                ("LocalSecondaryIndexes", &capacity.local_secondary_indexes),
                ("GlobalSecondaryIndexes", &capacity.global_secondary_indexes),
            ];
            if let (Some(table), Some(shown)) = (&capacity.table, shown.as_object_mut()) {
                shown.insert("Table".to_owned(), units(table));
            }
            for (name, indexes) in parts {
                if let (false, Some(shown)) = (indexes.is_empty(), shown.as_object_mut()) {
                    shown.insert(name.to_owned(), serde_json::Value::Object(all(indexes)));
                }
            }
        }
        shown
    }
}
