//! A Query on a global index whose partition key is spread: one stream for each of the values that
//! a logical one is stored as.
//!
//! The cursor is DynamoDB's own, with logical keys: the stream of its item follows from the primary
//! key in it.

use heatsink_dynamo::KeyValue;
use heatsink_dynamo::key::KeyPart;
use heatsink_layout::{IndexKey, Slot};

use super::request::Query;
use super::shard_streams::ShardStream;
use crate::collection::keys::Key;
use crate::context::PlanContext;
use crate::key::place;
use crate::refusal::Unplanned;
use crate::splice::Splice;

/// What a logical value of an index's spread key is stored as, by shard.
pub(crate) fn values(key: &IndexKey, logical: &Key) -> Vec<Key> {
    let stored = |shard| match logical {
        KeyValue::S(text) => {
            let bytes = key.physical(text.as_bytes(), shard);
            KeyValue::S(String::from_utf8_lossy(&bytes).into_owned().into())
        }
        KeyValue::B(bytes) => KeyValue::B(key.physical(bytes, shard).into()),
        KeyValue::N(number) => KeyValue::N(*number),
    };
    (0..key.shards(&logical.canonical_bytes())).map(stored).collect()
}

/// The streams, in the order that breaks ties: by shard, descending with the rest.
pub(crate) fn streams(
    query: &Query<'_>,
    key: &IndexKey,
    context: &PlanContext<'_>,
) -> Result<Vec<ShardStream>, Unplanned> {
    let mut streams: Vec<ShardStream> = Vec::new();
    for (shard, partition) in (0..).zip(values(key, &query.partition)) {
        // What is too long for a shard was refused to every write.
        if shard == 0 || partition.check(KeyPart::Partition, &key.attribute().name).is_ok() {
            streams.push(ShardStream::new(Slot::shard(shard), partition, &query.conditions));
        }
    }
    if query.descending {
        streams.reverse();
    }
    let (Some(cursor), Some(raw)) = (query.cursor()?, query.start) else { return Ok(streams) };
    let at = query.position_of(&cursor);
    if !at.matches(&query.conditions)
        || query.value_of(&cursor, &key.attribute().name) != Some(&query.partition)
    {
        return Err(Unplanned::Invalid);
    }
    let mut start = Splice::new(raw);
    let located = place(query.schema, context, raw, &mut start)?;
    let primary = located.primary().ok_or(Unplanned::Invalid)?;
    let home = Slot::shard(key.shard_of(&query.partition.canonical_bytes(), primary));
    let start = start.finish(&query.request.body.slice_ref(raw));
    for stream in &mut streams {
        if stream.slot == home {
            stream.start = Some(start.clone());
        } else {
            stream.resume(home, &at, query.descending);
        }
    }
    Ok(streams)
}
