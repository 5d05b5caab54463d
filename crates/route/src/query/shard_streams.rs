//! Where each shard of a Query starts: without a cursor, after a base table's, after an index's.

use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;
use heatsink_dynamo::KeyValue;
use heatsink_dynamo::json::Object;
use heatsink_layout::{Layout, Slot, Table};

use super::request::Query;
use crate::collection::keys::{Key, physical};
use crate::collection::range::{Condition, Range};
use crate::cursor::Cursor;
use crate::refusal::Unplanned;

/// One shard's part of a Query.
#[derive(Clone, Debug)]
pub(crate) struct ShardStream {
    pub(crate) slot: Slot,
    pub(crate) partition: Key,
    pub(crate) condition: Option<Condition>,
    /// Sort keys that the condition matches though they are not wanted.
    pub(crate) dropped: Vec<Key>,
    /// The raw physical key to go on after.
    pub(crate) start: Option<Bytes>,
    /// Nothing that is wanted can be in it.
    pub(crate) closed: bool,
}

impl ShardStream {
    /// A stream that is no shard's.
    pub(crate) fn nowhere() -> Self {
        let partition = KeyValue::S("".into());
        let slot = Slot::default();
        ShardStream { slot, partition, condition: None, dropped: Vec::new(), start: None, closed: false }
    }

    /// Goes on behind a cursor of an index whose item lies in another slot, `home`, under the index sort key `at`: those before it in
    /// the order of ties have given all rows of that key, those behind it none.
    pub(crate) fn resume(&mut self, home: Slot, at: Option<&Key>, descending: bool) {
        let before = if descending { self.slot > home } else { self.slot < home };
        let Some(at) = at.cloned() else {
            self.closed = before;
            return;
        };
        self.from(if before { Bound::Excluded(at) } else { Bound::Included(at) }, descending);
    }

    /// Goes on behind the last sort key that the condition includes, where a store takes no cursor: nothing is left, but the store sees the
    /// request.
    pub(crate) fn behind_end(&mut self, end: &Key) {
        self.condition = Some(Condition::Eq(end.clone()));
        self.dropped = vec![end.clone()];
    }

    /// Goes on from a sort key on.
    fn from(&mut self, bound: Bound<Key>, descending: bool) {
        match Range::of(self.condition.as_ref()).from(bound, descending).express() {
            Some(expressed) => (self.condition, self.dropped) = (expressed.condition, expressed.dropped),
            None => self.closed = true,
        }
    }
}

/// What the streams of a Query on the table, or on an index whose partition key is the table's, have in common.
#[derive(Debug)]
pub(crate) struct ShardStreams {
    table: Arc<Table>,
    layout: Arc<Layout>,
    logical: Key,
    condition: Option<Condition>,
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
    /// On a base table whose shards are externally assigned, where it is not known which holds the cursor's item: all from its sort key on. What has that
    /// sort key is left out of the answer ([`Query::passed`]).
    Anywhere(Key),
    /// On an index, or where shards are externally assigned: only the slot that holds the cursor's item goes on after it; the others
    /// [`resume`](ShardStream::resume).
    IndexKey { home: Slot, at: Option<Key>, attributes: Vec<(String, Vec<u8>)> },
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
            condition: query.condition.clone(),
            descending: query.descending,
            after,
            end: query.end().cloned(),
        })
    }

    /// The stream of one slot. `None` where the key is too long for it: then it was refused to every write.
    pub(crate) fn stream(&self, slot: Slot) -> Option<ShardStream> {
        let partition = physical(&self.table, &self.layout, &self.logical, slot).ok()?;
        let mut stream = ShardStream {
            slot,
            partition,
            condition: self.condition.clone(),
            dropped: Vec::new(),
            start: None,
            closed: false,
        };
        match &self.after {
            After::Nothing => {}
            After::SortKey(attributes) => stream.start = Some(start(attributes, &stream.partition)),
            After::IndexKey { home, at: Some(at), .. } if slot == *home && self.end.as_ref() == Some(at) => {
                stream.behind_end(at);
            }
            After::IndexKey { home, attributes, .. } if slot == *home => {
                stream.start = Some(start(attributes, &stream.partition));
            }
            After::IndexKey { home, at, .. } => stream.resume(*home, at.as_ref(), self.descending),
            After::Anywhere(at) => stream.from(Bound::Included(at.clone()), self.descending),
        }
        Some(stream)
    }
}

/// The streams of a layout without buckets, in the order that breaks ties: by shard, descending with the rest.
pub(crate) fn streams(query: &Query<'_>, layout: &Arc<Layout>) -> Result<Vec<ShardStream>, Unplanned> {
    let common = ShardStreams::new(query, layout)?;
    let mut streams: Vec<ShardStream> =
        (0..layout.shards).filter_map(|shard| common.stream(Slot::shard(shard))).collect();
    if streams.is_empty() {
        // Says why.
        physical(query.schema, layout, &query.partition, Slot::default())?;
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
    let find = |name: &str| query.value_of(cursor, name);
    let at = query.key().sort.as_ref().and_then(|sort| find(&sort.name));
    let range = Range::of(query.condition.as_ref());
    if at.is_some_and(|at| !range.contains(at)) {
        return Err(Unplanned::Invalid);
    }
    Ok(match (query.home, at) {
        (Some(home), _) => After::IndexKey { home, at: at.cloned(), attributes: raw },
        (None, Some(at)) => After::Anywhere(at.clone()),
        (None, None) => return Err(Unplanned::Invalid),
    })
}
