//! Where to divide a key's sort keys so that each range has as many of its items: from the items
//! themselves, before the key moves.
//!
//! All sort keys of the key are read, eventually consistent; of shards by a hash of the sort key one
//! is enough. A sample of them is kept: those with the lowest hashes, so it is the same each time.

use std::collections::BTreeMap;
use std::time::Duration;

use heatsink_control::reshard_intent::key_text;
use heatsink_dynamo::{KeyValue, Operation};
use heatsink_layout::{By, MOST_RANGES, SplitPoints, Strategy, shortest_between};
use serde_json::{Value as Json, json};
use xxhash_rust::xxh3::xxh3_64;

use crate::error::{WorkerError, usage};
use crate::key::logical_key::{Key, Sort};
use crate::key::table_context::TableContext;
use crate::key::wanted::count_flag;

/// So many sort keys are kept: of 64 ranges each then has what it should to within a fifth.
const KEPT: usize = 8_192;

/// The split points at which that many ranges have equally many items of a key. `rate`: the most
/// read units a second that the look takes.
///
/// # Errors
/// [`WorkerError::Usage`] for a key with too few items, or that is being moved; the store's.
pub async fn quantiles(
    context: &TableContext,
    key: &[u8],
    ranges: u16,
    rate: u32,
) -> Result<SplitPoints, WorkerError> {
    let table = context.table();
    let text = key_text(key, context.key_type());
    let Some(sort) = &table.key.sort else {
        return usage(format!("Table {} has no sort key, whose ranges a key could lie in", table.name));
    };
    if !(2..=MOST_RANGES).contains(&ranges) {
        return usage(format!("A key has 2 to {MOST_RANGES} ranges, and {ranges} were asked for"));
    }
    if let Some(moves) = context.record(key).and_then(|record| record.moves.as_ref()) {
        // A run that was killed goes on to where it was going.
        if let Some(points) = moves.to.split_points().filter(|points| points.ranges() == ranges) {
            return Ok(points.clone());
        }
        return usage(format!(
            "The key {text:?} of table {} is being moved to {}; let that end first: the same command with {} goes on with it",
            table.name,
            moves.to,
            count_flag(&moves.to)
        ));
    }
    let layout = context.laid_out(key);
    let by_hash = matches!(layout.strategy, Strategy::Calculated { by: By::SortKey, .. });
    let slots = layout.slot_numbers().take(if by_hash { 1 } else { usize::MAX });
    let owner = Key { table: std::sync::Arc::clone(table), bytes: key.to_vec() };
    let registry = context.registry();
    let mut kept: BTreeMap<u64, Sort> = BTreeMap::new();
    for slot in slots {
        let physical = owner.physical(&layout, slot)?;
        let mut start: Option<Json> = None;
        loop {
            let mut body = json!({
                "TableName": table.name, "KeyConditionExpression": "#p = :p", "ProjectionExpression": "#s", "ReturnConsumedCapacity": "TOTAL",
                "ExpressionAttributeNames": { "#p": table.key.partition.name, "#s": sort.name },
                "ExpressionAttributeValues": { ":p": physical },
            });
            if let Some(start) = start.take() {
                body["ExclusiveStartKey"] = start;
            }
            let mut page = registry.call_patiently(Operation::Query, body).await?;
            for item in page["Items"].as_array().into_iter().flatten() {
                let value = owner.sort(item)?;
                kept.insert(xxh3_64(&value.canonical_bytes()), value);
                if kept.len() > KEPT {
                    kept.pop_last();
                }
            }
            let units = page["ConsumedCapacity"]["CapacityUnits"].as_f64().unwrap_or(1.0);
            let last = page["LastEvaluatedKey"].take();
            if last.is_null() {
                break;
            }
            start = Some(last);
            registry.env().sleep(Duration::from_secs_f64((units / f64::from(rate.max(1))).min(10.0))).await;
        }
    }
    let mut sorts: Vec<Sort> = kept.into_values().collect();
    sorts.sort_unstable();
    match divided(&sorts, ranges) {
        Some(points) => Ok(points),
        None => usage(format!(
            "The key {text:?} of table {} has {} items, too few for {ranges} ranges: say where they begin with --split-at",
            table.name,
            sorts.len()
        )),
    }
}

/// The split points that divide sorted, different sort keys into that many parts of equal size, as
/// short as can be; `None` where there are fewer than two for each part.
pub(crate) fn divided(sorts: &[Sort], ranges: u16) -> Option<SplitPoints> {
    let parts = usize::from(ranges);
    if sorts.len() < 2 * parts {
        return None;
    }
    let point = |part: usize| -> Option<KeyValue<'static>> {
        let at = part * sorts.len() / parts;
        Some(shortest_between(sorts.get(at.checked_sub(1)?)?, sorts.get(at)?))
    };
    SplitPoints::new((1..parts).map(point).collect::<Option<_>>()?).ok()
}

#[cfg(test)]
mod tests {
    use heatsink_dynamo::Number;

    use super::*;

    #[test]
    fn sort_keys_are_divided_into_equal_parts() {
        let sorts: Vec<Sort> = (0..100_u64).map(|at| KeyValue::N(Number::from(at * at))).collect();
        let points = divided(&sorts, 4).unwrap();
        assert_eq!(points.to_string(), "625, 2500, 5625");
        let names: Vec<Sort> =
            ["anna", "annika", "bert", "berta", "carl", "dora"].map(|name| KeyValue::S(name.into())).to_vec();
        assert_eq!(divided(&names, 3).unwrap().to_string(), "\"b\", \"c\"");
        assert!(divided(&names, 4).is_none(), "one range would have one item");
    }
}
