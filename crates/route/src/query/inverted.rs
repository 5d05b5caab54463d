//! A Query on a global index whose sort key is the table's partition key.
//!
//! The index is ordered by physical keys, the client thinks in logical ones, and a suffix moves a key past its
//! neighbours. So the whole collection of the index key is read for every page, put in logical order, tested, and cut
//! here; with `=` on the sort key only that key's shards. Correct first: the cost is that of the collection.

use std::sync::Arc;

use bytes::Bytes;
use heatsink_dynamo::{Error, KeyValue, Operation, json};
use heatsink_layout::{LayoutSource, Slot, Table};

use super::index::values;
use super::lanes::{Lane, physical};
use super::page::{Capacity, Row};
use super::range::{Condition, Range};
use super::request::{Query, Unplanned};
use super::scatter::Collected;
use super::shape::Gathering;
use super::share::PAGE_BYTES;
use super::template::Ask;
use super::{Key, stable};
use crate::{Execution, PhysicalCall, Step};

/// The order of rows: the logical partition key, then the table's sort key.
type Place = (Key, Option<Key>);

/// Such a Query under way.
pub(crate) struct Inverted {
    gathering: Gathering,
    schema: Arc<Table>,
    lanes: Vec<Lane>,
    range: Range,
    after: Option<Place>,
    descending: bool,
    limit: Option<usize>,
    /// What the page will hold, as far as was read; in no order until cut.
    rows: Vec<(Place, Row)>,
    pages: Vec<Bytes>,
    /// Whether rows were left out because the page is full.
    more: bool,
    capacity: Option<Capacity>,
    failed: Option<Error>,
}

impl Inverted {
    pub(crate) fn new(
        query: &Query<'_>,
        gathering: Gathering,
        layouts: &dyn LayoutSource,
    ) -> Result<Self, Unplanned> {
        let lane = |slot, partition: &Key, condition| Lane {
            slot,
            partition: partition.clone(),
            condition,
            dropped: Vec::new(),
            start: None,
            closed: false,
        };
        let partitions = match query.schema.index_key(&query.key().partition.name) {
            Some(key) => values(key, &query.partition),
            None => vec![query.partition.clone()],
        };
        let in_each = |slot, condition: Option<Condition>| {
            let lanes = partitions.iter().map(move |partition| lane(slot, partition, condition.clone()));
            lanes.collect::<Vec<_>>()
        };
        let lanes = match &query.condition {
            Some(Condition::Eq(logical)) if stable(layouts, query.schema, logical).time().is_none() => {
                let layout = stable(layouts, query.schema, logical);
                let keys = (0..layout.shards).filter_map(|shard| {
                    let slot = Slot::shard(shard);
                    Some((slot, physical(query.schema, &layout, logical, slot).ok()?))
                });
                keys.flat_map(|(slot, key)| in_each(slot, Some(Condition::Eq(key)))).collect()
            }
            _ => in_each(Slot::default(), None),
        };
        let range = Range::of(query.condition.as_ref());
        let after = match query.cursor()? {
            None => None,
            Some(cursor) => Some(place(query, &cursor, &range)?),
        };
        Ok(Inverted {
            gathering,
            schema: Arc::clone(query.schema),
            lanes,
            range,
            after,
            descending: query.descending,
            limit: query.limit,
            rows: Vec::new(),
            pages: Vec::new(),
            more: false,
            capacity: None,
            failed: None,
        })
    }

    /// The calls that read on.
    pub(crate) fn calls(&self) -> Vec<PhysicalCall> {
        let open = self.lanes.iter().enumerate().filter(|(_, lane)| !lane.closed);
        open.map(|(id, lane)| {
            let body = self.gathering.template.body(Ask {
                partition: &lane.partition,
                condition: lane.condition.as_ref(),
                start: lane.start.as_deref(),
                limit: None,
            });
            PhysicalCall { id, operation: Operation::Query, body, retry_throttled: true }
        })
        .collect()
    }

    fn take(&mut self, number: usize, body: Bytes) -> Result<(), Error> {
        let page = self.gathering.reader.read(self.pages.len(), &body)?;
        let Some(lane) = self.lanes.get_mut(number) else { return Ok(()) };
        lane.closed = page.more.is_none();
        lane.start = page.more.map(|(_, start)| start);
        if let Some(capacity) = &page.capacity {
            self.capacity.get_or_insert_default().add(capacity);
        }
        for (_, row) in page.rows {
            let place = self.place_of(body.get(row.item.clone()).unwrap_or_default())?;
            let behind = self
                .after
                .as_ref()
                .is_none_or(|after| if self.descending { place < *after } else { place > *after });
            if behind && self.range.contains(&place.0) {
                self.rows.push((place, row));
            }
        }
        self.pages.push(body);
        self.cut();
        Ok(())
    }

    fn place_of(&self, item: &[u8]) -> Result<Place, Error> {
        let unreadable =
            || Error::internal("The store's answer to Query has an item without the table's key");
        let key = &self.schema.key;
        let sort = key.sort.as_ref().unwrap_or(&key.partition);
        let [partition, sort_value] =
            json::attributes_of(item, [&key.partition.name, &sort.name]).map_err(|_| unreadable())?;
        let stored = KeyValue::read(partition.ok_or_else(unreadable)?, &key.partition)?.into_owned();
        let logical = match stored {
            Key::S(text) => {
                let length = self.schema.decode(text.as_bytes()).0;
                Key::S(text.get(..length).unwrap_or(&text).to_owned().into())
            }
            Key::B(bytes) => Key::B(self.schema.logical(&bytes).to_vec().into()),
            Key::N(number) => Key::N(number),
        };
        let sort = match &key.sort {
            None => None,
            Some(sort) => Some(KeyValue::read(sort_value.ok_or_else(unreadable)?, sort)?.into_owned()),
        };
        Ok((logical, sort))
    }

    /// Keeps what the page can hold, in order, and forgets the rest.
    fn cut(&mut self) {
        let descending = self.descending;
        self.rows.sort_by(|(a, _), (b, _)| if descending { b.cmp(a) } else { a.cmp(b) });
        let mut bytes = 0.0;
        let fits = self.rows.iter().take(self.limit.unwrap_or(usize::MAX)).take_while(|(_, row)| {
            let room = bytes < PAGE_BYTES;
            bytes += row.size;
            room
        });
        let fits = fits.count();
        self.more |= fits < self.rows.len();
        self.rows.truncate(fits);
        let mut used = vec![false; self.pages.len()];
        for (_, row) in &self.rows {
            if let Some(used) = used.get_mut(row.page) {
                *used = true;
            }
        }
        for (page, used) in self.pages.iter_mut().zip(used) {
            if !used {
                *page = Bytes::new();
            }
        }
    }
}

/// The place of a cursor.
fn place(query: &Query<'_>, cursor: &[(Key, &[u8])], range: &Range) -> Result<Place, Unplanned> {
    let attributes = query.cursor_attributes();
    let find = |name: &str| {
        let at = attributes.iter().position(|attribute| attribute.name == name)?;
        cursor.get(at).map(|(value, _)| value.clone())
    };
    let key = &query.schema.key;
    let partition =
        find(&key.partition.name).filter(|partition| range.contains(partition)).ok_or(Unplanned::Invalid)?;
    if find(&query.key().partition.name).as_ref() != Some(&query.partition) {
        return Err(Unplanned::Invalid);
    }
    Ok((partition, key.sort.as_ref().and_then(|sort| find(&sort.name))))
}

impl Execution for Inverted {
    fn step(&mut self) -> Step {
        if let Some(error) = self.failed.take() {
            return Step::Done(Err(error));
        }
        let calls = self.calls();
        if !calls.is_empty() {
            return Step::Call(calls);
        }
        let rows: Vec<Row> = self.rows.drain(..).map(|(_, row)| row).collect();
        let more = self.more || self.limit.is_some_and(|limit| rows.len() >= limit);
        let (pages, capacity) = (std::mem::take(&mut self.pages), self.capacity.take());
        Step::Done(self.gathering.shape.answer(&Collected { pages, rows, more, capacity }, None))
    }

    fn answer(&mut self, id: usize, answer: Result<Bytes, Error>) {
        if let Err(error) = answer.and_then(|body| self.take(id, body)) {
            self.failed.get_or_insert(error);
        }
    }
}
