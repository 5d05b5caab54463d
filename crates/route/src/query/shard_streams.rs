//! Where each shard of a Query starts: without a cursor, after a base table's, after an index's.

use std::sync::Arc;

use bytes::Bytes;
use heatsink_dynamo::KeyValue;
use heatsink_dynamo::json::Object;
use heatsink_layout::{Layout, Slot, Table};

use super::request::Query;
use crate::collection::keys::{Key, physical};
use crate::collection::position::{Part, Position};
use crate::collection::range::{Condition, Expressed, Range};
use crate::cursor::Cursor;
use crate::refusal::Unplanned;

/// One shard's part of a Query.
#[derive(Clone, Debug)]
pub(crate) struct ShardStream {
    pub(crate) slot: Slot,
    pub(crate) partition: Key,
    /// The values of the other partition key attributes, where they differ from stream to stream.
    pub(crate) others: Vec<Key>,
    /// What is left to read of it, in order; nothing that is wanted can be elsewhere.
    pub(crate) parts: Vec<Part>,
    /// The raw physical key to go on after, in the first part.
    pub(crate) start: Option<Bytes>,
    /// What nothing in it comes before, if that is known.
    pub(crate) from: Position,
}

impl ShardStream {
    /// All that conditions match in one slot.
    pub(crate) fn new(slot: Slot, partition: Key, conditions: &[Condition]) -> Self {
        ShardStream {
            slot,
            partition,
            others: Vec::new(),
            parts: vec![Part::of(conditions)],
            start: None,
            from: Position::default(),
        }
    }

    /// The same stream of what lies between two bounds, among which there may be none.
    pub(crate) fn within(mut self, range: Range) -> Option<Self> {
        let Expressed { condition, dropped } = range.express()?;
        self.parts = vec![Part::dropping(condition, dropped)];
        Some(self)
    }

    /// Whether all that the store finds for what is left of it is wanted.
    pub(crate) fn shows_its_part(&self) -> bool {
        matches!(&*self.parts, [part] if !part.has_dropped())
    }

    /// A stream that is no shard's.
    pub(crate) fn nowhere() -> Self {
        ShardStream::new(Slot::default(), KeyValue::S("".into()), &[])
    }

    /// Whether nothing is left to read.
    pub(crate) fn is_closed(&self) -> bool {
        self.parts.is_empty()
    }

    /// Goes on after a page that ends at the raw key `last`. Without one the next part follows.
    pub(crate) fn read_to(&mut self, last: Option<Bytes>) {
        if last.is_none() && !self.parts.is_empty() {
            self.parts.remove(0);
        }
        self.start = last;
    }

    /// Goes on behind a cursor of an index whose item lies in another slot, `home`, at the position
    /// `at`: those before it in the order of ties have given all rows of that position, those
    /// behind it none.
    pub(crate) fn resume(&mut self, home: Slot, at: &Position, descending: bool) {
        let before = if descending { self.slot > home } else { self.slot < home };
        if at.first().is_some() {
            self.go_on(at, !before, descending);
        } else if before {
            self.parts.clear();
        }
    }

    /// Goes on behind the last sort key that the condition includes, where a store takes no cursor:
    /// nothing is left, but the store sees the request.
    pub(crate) fn behind_end(&mut self, end: &Key) {
        self.parts = vec![Part::behind(end)];
    }

    /// Goes on from a position on, the rows there included or not.
    pub(crate) fn go_on(&mut self, at: &Position, included: bool, descending: bool) {
        let conditions = self.parts.first().map(|part| part.conditions.as_slice()).unwrap_or_default();
        self.parts = Part::rest(conditions, at, included, descending);
        self.from = at.clone();
    }
}

/// What the streams of a Query on the table, or on an index whose partition key is the table's,
/// have in common.
#[derive(Debug)]
pub(crate) struct ShardStreams {
    table: Arc<Table>,
    layout: Arc<Layout>,
    logical: Key,
    conditions: Vec<Condition>,
    descending: bool,
    after: After,
    /// Where no shard takes a cursor ([`Query::end`]).
    end: Option<Key>,
}

/// Where a cursor stands.
#[derive(Debug)]
enum After {
    /// There is none.
    Nothing,
    /// On the base table: the store resumes after a sort key that the shard does not hold.
    SortKey(Vec<(String, Vec<u8>)>),
    /// On a base table whose shards are externally assigned, where it is not known which holds the
    /// cursor's item: all from its sort key on. What has that sort key is left out of the answer
    /// ([`Query::passed`]).
    Anywhere(Position),
    /// On an index, or where shards are externally assigned: only the slot that holds the cursor's
    /// item goes on after it; the others [`resume`](ShardStream::resume).
    IndexKey { home: Slot, at: Position, attributes: Vec<(String, Vec<u8>)> },
}

impl ShardStreams {
    pub(crate) fn new(query: &Query<'_>, layout: &Arc<Layout>) -> Result<Self, Unplanned> {
        let after = match query.cursor()? {
            None => After::Nothing,
            Some(cursor) => after(query, &cursor)?,
        };
        Ok(ShardStreams {
            table: Arc::clone(query.schema),
            layout: Arc::clone(layout),
            logical: query.partition.clone(),
            conditions: query.conditions.clone(),
            descending: query.descending,
            after,
            end: query.end().cloned(),
        })
    }

    /// The stream of one slot. `None` where the key is too long for it: then it was refused to
    /// every write.
    pub(crate) fn stream(&self, slot: Slot) -> Option<ShardStream> {
        let partition = physical(&self.table, &self.layout, &self.logical, slot).ok()?;
        let mut stream = ShardStream::new(slot, partition, &self.conditions);
        match &self.after {
            After::Nothing => {}
            After::SortKey(attributes) => stream.start = Some(start(attributes, &stream.partition)),
            After::IndexKey { home, at, attributes } if slot == *home => match &self.end {
                Some(end) if at.first() == Some(end) => stream.behind_end(end),
                _ => stream.start = Some(start(attributes, &stream.partition)),
            },
            After::IndexKey { home, at, .. } => stream.resume(*home, at, self.descending),
            After::Anywhere(at) => stream.go_on(at, true, self.descending),
        }
        Some(stream)
    }
}

/// The streams of a layout without buckets, in the order that breaks ties: by slot, descending with
/// the rest.
pub(crate) fn streams(query: &Query<'_>, layout: &Arc<Layout>) -> Result<Vec<ShardStream>, Unplanned> {
    let common = ShardStreams::new(query, layout)?;
    let mut streams: Vec<ShardStream> =
        layout.slot_numbers().filter_map(|number| common.stream(Slot::shard(number))).collect();
    if !layout.slots().is_empty() {
        streams.sort_unstable_by_key(|stream| stream.slot);
    }
    if streams.is_empty() {
        // Says why.
        physical(query.schema, layout, &query.partition, Slot::shard(layout.slot_number(0)))?;
    }
    if query.descending {
        streams.reverse();
    }
    Ok(streams)
}

/// The attributes of a cursor, raw, the partition key first.
pub(crate) fn attributes(query: &Query<'_>, cursor: &Cursor<'_>) -> Vec<(String, Vec<u8>)> {
    let named = query.cursor_attributes().into_iter().zip(cursor);
    named.map(|(attribute, (_, raw))| (attribute.name.clone(), raw.to_vec())).collect()
}

/// The raw physical key of a cursor in one shard.
pub(crate) fn start(attributes: &[(String, Vec<u8>)], partition: &Key) -> Bytes {
    let mut key = Object::new();
    for (at, (name, raw)) in attributes.iter().enumerate() {
        if at == 0 {
            partition.write(key.name(name));
        } else {
            key.raw(name, raw);
        }
    }
    Bytes::from(key.finish())
}

fn after(query: &Query<'_>, cursor: &Cursor<'_>) -> Result<After, Unplanned> {
    if cursor.first().is_none_or(|(partition, _)| *partition != query.partition) {
        return Err(Unplanned::Invalid);
    }
    let raw = attributes(query, cursor);
    if query.index.is_none() && !query.assigned {
        return Ok(After::SortKey(raw));
    }
    let at = query.position_of(cursor);
    if !at.matches(&query.conditions) {
        return Err(Unplanned::Invalid);
    }
    match query.home {
        Some(home) => Ok(After::IndexKey { home, at, attributes: raw }),
        None if at.first().is_some() => Ok(After::Anywhere(at)),
        None => Err(Unplanned::Invalid),
    }
}
