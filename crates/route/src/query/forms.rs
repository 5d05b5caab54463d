//! The streams of a Query of an index several of whose key attributes are stored with shard
//! suffixes: one for each combination of stored values.
//!
//! Not here: how their rows are put in order (`locally_sorted`).

use heatsink_dynamo::key::KeyPart;
use heatsink_dynamo::{AttributeDefinition, Error};
use heatsink_layout::{Slot, Table};

use super::index::values;
use super::request::Query;
use super::shard_streams::ShardStream;
use crate::collection::keys::{Key, physical, stable};
use crate::collection::range::Condition;
use crate::context::PlanContext;
use crate::refusal::Unplanned;

/// The stream of one shard of a logical key that is tested with `=`, as the sort attribute `own`:
/// there its physical key is.
pub(super) fn of_shard(whole: &ShardStream, own: usize, slot: Slot, key: &Key) -> ShardStream {
    let mut stream = ShardStream { slot, ..whole.clone() };
    for part in &mut stream.parts {
        if let Some(condition) = part.conditions.get_mut(own) {
            *condition = Condition::Eq(key.clone());
        }
    }
    stream
}

/// Each of those streams under each combination of values that the attributes of the index's
/// partition key are stored as; and the streams by when they are read. While an attribute migrates
/// some are read twice, so that items which change their form meanwhile are met, whichever way they
/// go.
pub(super) fn in_all_forms(
    query: &Query<'_>,
    in_shards: &[ShardStream],
    context: &PlanContext<'_>,
) -> Result<(Vec<ShardStream>, Vec<Vec<usize>>), Unplanned> {
    let schema = query.schema;
    // Each value of an attribute has a stage. Items that are rewritten only go to later ones, so
    // the sum of its stages says when a combination is read.
    let mut combinations = vec![(Vec::new(), 0)];
    let fixed = query.fixed.iter().map(|(attribute, value)| (*attribute, value));
    for (attribute, logical) in std::iter::once((query.spread, &query.partition)).chain(fixed) {
        let forms = forms(schema, attribute, logical, context)?;
        let with = |(values, stages): &(Vec<Key>, usize)| {
            let longer = |(form, stage): &(Key, usize)| {
                ([values.as_slice(), std::slice::from_ref(form)].concat(), stages + stage)
            };
            forms.iter().map(longer).collect::<Vec<_>>()
        };
        combinations = combinations.iter().flat_map(with).collect();
    }
    let mut streams = Vec::new();
    let last = combinations.iter().map(|(_, stage)| *stage).max().unwrap_or(0);
    let mut stages = vec![Vec::new(); last + 1];
    for (values, stage) in combinations {
        let Some(((partition, others), stage)) = values.split_first().zip(stages.get_mut(stage)) else {
            continue;
        };
        for stream in in_shards {
            stage.push(streams.len());
            let stream = stream.clone();
            streams.push(ShardStream { partition: partition.clone(), others: others.to_vec(), ..stream });
        }
    }
    stages.retain(|stage| !stage.is_empty());
    there_and_back(&mut streams, &mut stages);
    Ok((streams, stages))
}

/// Has all stages but one read again in the opposite order: before it, or after it, whichever is
/// fewer streams. Rewriting takes items from the first stage to the last. But gateways write either
/// form: two that are one step apart, or that know of a migration which was turned round.
fn there_and_back(streams: &mut Vec<ShardStream>, stages: &mut Vec<Vec<usize>>) {
    let read = |stage: Option<&Vec<usize>>| stage.map_or(0, Vec::len);
    if read(stages.first()) > read(stages.last()) {
        stages.reverse();
    }
    for stage in (0..stages.len().saturating_sub(1)).rev() {
        let again: Vec<ShardStream> =
            stages.get(stage).into_iter().flatten().filter_map(|id| streams.get(*id).cloned()).collect();
        stages.push((streams.len()..streams.len() + again.len()).collect());
        streams.extend(again);
    }
}

/// What a value of a partition key attribute is stored as, and of each form its stage.
fn forms(
    schema: &Table,
    attribute: &AttributeDefinition,
    logical: &Key,
    context: &PlanContext<'_>,
) -> Result<Vec<(Key, usize)>, Unplanned> {
    if let Some(key) = schema.index_key(&attribute.name) {
        let bytes = logical.canonical_bytes();
        // What is too long for a shard was refused to every write.
        let fits = |form: &Key| form.check(KeyPart::Partition, &attribute.name).is_ok();
        let forms = (0..).zip(values(key, logical)).filter(|(shard, form)| *shard == 0 || fits(form));
        return Ok(forms.map(|(shard, form)| (form, key.stage(&bytes, shard))).collect());
    }
    if !schema.is_suffixed(&attribute.name) {
        return Ok(vec![(logical.clone(), 0)]);
    }
    let layout = stable(context, schema, logical);
    if layout.time().is_some() {
        return Err(Unplanned::Refused(Error::gateway_rejection(format!(
            "The index has {} in its partition key, which is stored in buckets, beside an attribute that a rule spreads: reading it is not \
             supported. Nothing was read",
            attribute.name
        ))));
    }
    let slots = context.slots(schema, &logical.canonical_bytes(), &layout).into_iter();
    let forms = slots.filter_map(|slot| physical(schema, &layout, logical, slot).ok());
    Ok(forms.map(|form| (form, 0)).collect())
}

#[cfg(test)]
mod tests {
    use heatsink_dynamo::KeyValue;

    use super::*;

    /// Which shards are read in each stage.
    fn read(stages: &[&[u16]]) -> Vec<Vec<u16>> {
        let stream = |shard: &u16| ShardStream::new(Slot::shard(*shard), KeyValue::S("a".into()), &[]);
        let mut streams: Vec<ShardStream> = stages.concat().iter().map(stream).collect();
        let mut ids = 0..;
        let mut stages = stages.iter().map(|stage| ids.by_ref().take(stage.len()).collect()).collect();
        there_and_back(&mut streams, &mut stages);
        // Each is a stream of its own.
        assert_eq!(stages.concat().len(), streams.len());
        stages.iter().map(|stage| stage.iter().map(|id| streams[*id].slot.shard).collect()).collect()
    }

    #[test]
    fn all_stages_but_the_longer_end_are_read_there_and_back() {
        assert_eq!(read(&[&[0]]), [[0]]);
        assert_eq!(read(&[&[0], &[1, 2]]), [vec![0], vec![1, 2], vec![0]]);
        assert_eq!(read(&[&[0, 1], &[2]]), [vec![2], vec![0, 1], vec![2]]);
        assert_eq!(read(&[&[0], &[1], &[2, 3]]), [vec![0], vec![1], vec![2, 3], vec![1], vec![0]]);
    }
}
