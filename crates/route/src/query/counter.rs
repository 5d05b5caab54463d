//! A Query for a counter's key on the table. Shard 0 holds the base fragment of every item, so it
//! alone decides what the page holds; the other shards are then asked for the same range of sort
//! keys, and what they hold is added.
//!
//! A gather of all shards would ask for as much: each may hold a fragment of every item.

use heatsink_dynamo::expression::{Bindings, Fresh};
use heatsink_layout::{Layout, Slot};

use super::request::Query;
use crate::collection::keys::physical;
use crate::collection::template::{Expressions, Template};
use crate::counter::pages::Fold;
use crate::refusal::Unplanned;

/// What completes the items of such a Query; `None` where none of the counters is shown or tested,
/// or one fragment holds all of them.
pub(super) fn fold(query: &Query<'_>, layout: &Layout) -> Result<Option<Fold>, Unplanned> {
    let asked = query.expressions.wanted(query.schema, query.index);
    let shown = |name: &&String| asked.as_ref().is_none_or(|asked| asked.covers(name));
    let counters: Vec<String> =
        layout.counter_attributes().unwrap_or_default().iter().filter(shown).cloned().collect();
    if counters.is_empty() || layout.shards <= 1 {
        return Ok(None);
    }
    if query.schema.key_layouts().any_narrows() {
        return Ok(Fold::by_keys(query.schema, query.request, true, |name| {
            counters.iter().any(|shown| shown == name)
        }));
    }
    let others = (1..layout.shards).map(Slot::shard);
    let others = others.map(|slot| physical(query.schema, layout, &query.partition, slot));
    let partitions = others.collect::<Result<_, _>>()?;
    let key = &query.schema.key;
    let mut members = vec![("ReturnConsumedCapacity", &b"\"INDEXES\""[..])];
    members.extend(query.kept.iter().filter(|(name, _)| ["TableName", "ConsistentRead"].contains(name)));
    let attributes = Some(key.names().map(str::to_owned).chain(counters.iter().cloned()).collect());
    let expressions = Expressions { members, filter: None, projection: None, attributes };
    let bindings = Bindings::default();
    let fresh = Fresh::avoiding(&bindings);
    let template = Template::new(key.into(), &expressions, &bindings, fresh);
    Ok(Some(Fold::by_range(query.schema, counters, template, partitions)))
}
