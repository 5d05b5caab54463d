//! Where each shard of a Query starts: without a cursor, after a base table's, after an index's.

use std::ops::Bound;

use bytes::Bytes;
use heatsink_dynamo::KeyValue;
use heatsink_dynamo::json::Object;
use heatsink_layout::{Layout, Slot, Table, Unplaced};

use super::range::{Condition, Range};
use super::request::{Query, Unplanned};
use super::{Key, slot_of};

/// One shard's part of a Query.
#[derive(Clone, Debug)]
pub(crate) struct Lane {
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

/// The physical key of a logical key in a slot; numbers are never sharded.
pub(crate) fn physical(table: &Table, layout: &Layout, logical: &Key, slot: Slot) -> Result<Key, Unplaced> {
    let suffix = |bytes: &[u8]| table.suffix(bytes, layout, slot);
    Ok(match logical {
        KeyValue::S(text) => KeyValue::S(format!("{text}{}", suffix(text.as_bytes())?).into()),
        KeyValue::B(bytes) => KeyValue::B([bytes, suffix(bytes)?.as_bytes()].concat().into()),
        KeyValue::N(number) => KeyValue::N(*number),
    })
}

/// The lanes of a Query on the table or on an index whose partition key is the table's, in the order that breaks ties: by
/// shard, descending with the rest.
pub(crate) fn lanes(query: &Query<'_>, layout: &Layout) -> Result<Vec<Lane>, Unplanned> {
    let mut lanes = Vec::with_capacity(usize::from(layout.shards));
    let mut refused = None;
    for shard in 0..layout.shards {
        let slot = Slot::shard(shard);
        match physical(query.schema, layout, &query.partition, slot) {
            Ok(partition) => lanes.push(Lane {
                slot,
                partition,
                condition: query.condition.clone(),
                dropped: Vec::new(),
                start: None,
                closed: false,
            }),
            // A key that is too long for a shard was refused to every write.
            Err(error) => refused = Some(error),
        }
    }
    if let (true, Some(error)) = (lanes.is_empty(), refused) {
        return Err(error.into());
    }
    if query.descending {
        lanes.reverse();
    }
    let Some(cursor) = query.cursor()? else { return Ok(lanes) };
    if cursor.first().is_none_or(|(partition, _)| *partition != query.partition) {
        return Err(Unplanned::Invalid);
    }
    match query.index {
        // The store resumes after a sort key that the shard does not hold.
        None => lanes.iter_mut().for_each(|lane| lane.start = Some(start(query, &cursor, &lane.partition))),
        Some(_) => after_index_key(query, layout, &cursor, &mut lanes)?,
    }
    Ok(lanes)
}

/// The raw physical key of a cursor in one shard.
pub(crate) fn start(query: &Query<'_>, cursor: &[(Key, &[u8])], partition: &Key) -> Bytes {
    let mut key = Object::new();
    for (at, (attribute, (_, raw))) in query.cursor_attributes().into_iter().zip(cursor).enumerate() {
        if at == 0 {
            partition.write(key.name(&attribute.name));
        } else {
            key.raw(&attribute.name, raw);
        }
    }
    Bytes::from(key.finish())
}

/// Only the shard that holds the cursor's item goes on after it. Those before it in the order of ties have given all rows
/// of that index key, those behind it none.
fn after_index_key(
    query: &Query<'_>,
    layout: &Layout,
    cursor: &[(Key, &[u8])],
    lanes: &mut [Lane],
) -> Result<(), Unplanned> {
    let attributes = query.cursor_attributes();
    let find = |name: &str| {
        let at = attributes.iter().position(|attribute| attribute.name == name)?;
        cursor.get(at).map(|(value, _)| value)
    };
    let sort = query.schema.key.sort.as_ref().and_then(|sort| find(&sort.name));
    let home = slot_of(layout, sort)?;
    let home = lanes.iter().position(|lane| lane.slot == home).ok_or(Unplanned::Invalid)?;
    let at = query.key().sort.as_ref().and_then(|sort| find(&sort.name));
    let range = Range::of(query.condition.as_ref());
    if at.is_some_and(|at| !range.contains(at)) {
        return Err(Unplanned::Invalid);
    }
    for (number, lane) in lanes.iter_mut().enumerate() {
        if number == home {
            lane.start = Some(start(query, cursor, &lane.partition));
            continue;
        }
        let Some(at) = at.cloned() else {
            lane.closed = number < home;
            continue;
        };
        let bound = if number < home { Bound::Excluded(at) } else { Bound::Included(at) };
        match range.clone().from(bound, query.descending).express() {
            Some(expressed) => (lane.condition, lane.dropped) = (expressed.condition, expressed.dropped),
            None => lane.closed = true,
        }
    }
    Ok(())
}
