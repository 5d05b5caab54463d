//! The keys that a Scan reads by themselves: those that move, or have changed where they lie since
//! it began. Each is read as a Query of the table reads it, in both places while it moves,
//! consistently, one key after the other once the store's items are through.
//!
//! An item of such a key may have been shown before it changed, and is shown again then. None is
//! missing: what is left out where the Scan meets it is shown here.
//!
//! Of a Scan of an index these items come from the table, those that the index would hold and what
//! it would hold of them.

use std::sync::Arc;

use bytes::Bytes;
use heatsink_dynamo::expression::Projection;
use heatsink_dynamo::json::{self, Malformed, Object};
use heatsink_dynamo::size::scan_item;
use heatsink_dynamo::{AttributeDefinition, Error, IndexSchema, Operation};
use heatsink_layout::{LayoutSource, Table};

use crate::answer::unreadable;
use crate::capacity::Capacity;
use crate::collection::keys::cursor_attributes;
use crate::collection::page::{MOST_BYTES, Page};
use crate::key::{KeyText, literal};
use crate::layout_cursor::mark::{Apart, Mark, anything};
use crate::request::Request;
use crate::shared::Shared;
use crate::{Calls, projection};

/// How many Queries one page of a Scan is gathered from at most. Keys without items would make it
/// long.
const MOST_QUERIES: usize = 16;

/// What the store would give of an item where the Scan meets it.
#[derive(Debug)]
pub(super) struct Image {
    /// The key attributes of the index that is scanned: it holds no items without them.
    key: Vec<AttributeDefinition>,
    /// The attributes; `None` is all.
    attributes: Option<Projection>,
}

impl Image {
    /// What is given of items of a table or an index by a store that is asked for `wanted`.
    /// `whole`: it adds what the index does not hold.
    pub(super) fn of(
        table: &Table,
        index: Option<&IndexSchema>,
        wanted: Option<Projection>,
        whole: bool,
    ) -> Self {
        let held = index.filter(|index| !whole && !index.projects_all).map(|index| {
            let mut held = Projection::default();
            let keys = cursor_attributes(table, Some(index)).into_iter().map(|key| key.name.as_str());
            keys.chain(index.included.iter().map(String::as_str)).for_each(|name| {
                held.add_root(name);
            });
            held
        });
        let attributes = match (wanted, held) {
            (Some(mut wanted), Some(held)) => {
                wanted.paths.retain(|path| held.covers(&path.root));
                Some(wanted)
            }
            (wanted, held) => wanted.or(held),
        };
        let key = index.map(|index| index.key.attributes().all().cloned().collect()).unwrap_or_default();
        Image { key, attributes }
    }

    /// What is given of an item; `None` if the index does not hold it.
    fn show(&self, item: Bytes) -> Result<Option<Bytes>, Malformed> {
        for attribute in &self.key {
            let value = json::member(&item, &attribute.name)?;
            if value.and_then(|value| KeyText::read(value, attribute.key_type)).is_none() {
                return Ok(None);
            }
        }
        let Some(attributes) = &self.attributes else { return Ok(Some(item)) };
        let mut shown = Vec::new();
        projection::project(attributes, &item, &mut shown)?;
        Ok(Some(Bytes::from(shown)))
    }
}

/// Where the reading of these keys stands: at a key, and behind a raw sort key of it.
pub(super) type At = (Vec<u8>, Option<Vec<u8>>);

/// These keys of one Scan.
pub(super) struct KeysApart {
    pub(super) shared: Shared,
    pub(super) layouts: Arc<dyn LayoutSource>,
    pub(super) table: Arc<Table>,
    /// The segment and their count, of a parallel Scan.
    pub(super) segment: Option<(u64, u64)>,
    /// `ReturnConsumedCapacity`, raw.
    pub(super) report: Option<Vec<u8>>,
    pub(super) image: Image,
    /// The attributes of a cursor that are no keys of the table.
    pub(super) index: Vec<AttributeDefinition>,
}

/// What was read of them for one page.
#[derive(Default)]
pub(super) struct Read {
    pub(super) items: Vec<Bytes>,
    pub(super) capacity: Option<Capacity>,
    /// The raw cursor of the next page.
    pub(super) last: Option<Bytes>,
}

impl KeysApart {
    /// Where a raw cursor stands.
    pub(super) fn at(&self, apart: Apart, cursor: &[u8]) -> Result<At, Malformed> {
        let key = &self.table.key;
        let partition = json::member(cursor, &key.partition.name)?.ok_or(Malformed)?;
        let partition = KeyText::read(partition, key.partition.key_type).ok_or(Malformed)?;
        let sort = match &key.sort {
            Some(sort) if apart == Apart::Behind => {
                let sort = json::member(cursor, &sort.name)?.ok_or(Malformed)?;
                Some(sort.to_vec())
            }
            _ => None,
        };
        Ok((partition.bytes.into_owned(), sort))
    }

    /// Reads the first keys of them, or goes on at `at`: at most `room` items, of a page that holds
    /// so many `bytes` already.
    pub(super) async fn read(
        &self,
        mark: &Mark,
        at: Option<At>,
        room: Option<usize>,
        mut bytes: usize,
        calls: &mut dyn Calls,
    ) -> Result<Read, Error> {
        let keys = self.table.key_layouts();
        let next =
            |after: Option<&[u8]>| keys.next_apart(mark.since, after, self.segment).map(<[u8]>::to_vec);
        let mut read = Read::default();
        let mut queries = 0;
        let mut at = at.or_else(|| Some((next(None)?, None)));
        while let Some((key, behind)) = at {
            let left = room.map(|room| room.saturating_sub(read.items.len()));
            if left == Some(0) || bytes >= MOST_BYTES || queries >= MOST_QUERIES {
                read.last = Some(self.cursor(mark, &key, behind.as_deref()));
                break;
            }
            queries += 1;
            let body = self.query(&key, behind.as_deref(), left);
            let request = Request::read(&body)?;
            let (plan, _) =
                self.shared.plan_at(Operation::Query, &request, &self.table, &*self.layouts, None)?;
            let answer = plan.run(calls).await?.body;
            let broken = |Malformed| unreadable(Operation::Query);
            let sort = self.table.key.sort.as_ref().unwrap_or(&self.table.key.partition);
            let page = Page::read(&answer, [&sort.name]).map_err(broken)?;
            if let Some(capacity) = page.capacity() {
                read.capacity.get_or_insert_default().add(&capacity);
            }
            let mut behind = behind;
            for item in &page.items {
                let size = scan_item(item.raw, []).map_err(broken)?.bytes;
                if bytes > 0 && bytes + size > MOST_BYTES {
                    read.last = Some(self.cursor(mark, &key, behind.as_deref()));
                    return Ok(read);
                }
                bytes += size;
                behind = item.members[0].map(<[u8]>::to_vec);
                read.items.extend(self.image.show(answer.slice_ref(item.raw)).map_err(broken)?);
            }
            at = match page.last {
                Some(last) => Some(self.at(Apart::Behind, last).map_err(broken)?),
                None => next(Some(&key)).map(|key| (key, None)),
            };
        }
        Ok(read)
    }

    /// The Query of a key.
    fn query(&self, key: &[u8], behind: Option<&[u8]>, limit: Option<usize>) -> Bytes {
        let partition = &self.table.key.partition;
        let mut names = Object::new();
        names.string("#p", &partition.name);
        let mut values = Object::new();
        values.raw(":p", &literal(partition.key_type, key).to_json());
        let mut body = Object::new();
        body.string("TableName", &self.table.name)
            .raw("ConsistentRead", b"true")
            .string("KeyConditionExpression", "#p = :p")
            .raw("ExpressionAttributeNames", &names.finish())
            .raw("ExpressionAttributeValues", &values.finish());
        if let Some(limit) = limit {
            body.raw("Limit", limit.to_string().as_bytes());
        }
        if let Some(report) = &self.report {
            body.raw("ReturnConsumedCapacity", report);
        }
        if let Some(behind) = behind {
            body.raw("ExclusiveStartKey", &self.key(key, Some(behind)));
        }
        Bytes::from(body.finish())
    }

    fn cursor(&self, mark: &Mark, key: &[u8], behind: Option<&[u8]>) -> Bytes {
        let apart = if behind.is_some() { Apart::Behind } else { Apart::Before };
        mark.apart(apart, &self.key(key, behind), &self.index)
    }

    /// A raw key of the table.
    fn key(&self, partition: &[u8], sort: Option<&[u8]>) -> Vec<u8> {
        let key = &self.table.key;
        let mut raw = Object::new();
        raw.raw(&key.partition.name, &literal(key.partition.key_type, partition).to_json());
        if let Some(attribute) = &key.sort {
            raw.raw(&attribute.name, sort.unwrap_or(anything(attribute).as_bytes()));
        }
        raw.finish()
    }
}
