//! Another number of shards for the buckets of a key: from which bucket on, and that nothing lies
//! there.
//!
//! A bucket keeps its number for ever. So a change begins with a bucket that nobody has written to,
//! and it is made before anybody would. Not here: what requests do meanwhile
//! (`heatsink_layout::Stepping`).

use std::time::Duration;

use heatsink_control::Bounds;
use heatsink_control::registry::Registry;
use heatsink_dynamo::Operation;
use heatsink_layout::{Bucket, DIRECTORY, Layout, MAX_STEPS, Slot, directory_key};
use serde::Serialize;
use serde_json::{Value as Json, json};

use crate::error::{WorkerError, usage};
use crate::key::logical_key::Key;

/// How far the clocks of writers may be ahead of this one.
const AHEAD: Duration = Duration::from_secs(5 * 60);

/// Behind buckets that begin so soon after the first possible one a change begins later: writers
/// use local times, up to 14 hours ahead.
const ZONES: Duration = Duration::from_secs(24 * 60 * 60);

/// From when on the buckets of a key have another number of shards.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NewestStep {
    /// The first bucket that has it, as text.
    pub bucket: String,
    /// When that begins, as the table's sort keys write times.
    pub begins: String,
    /// The same in seconds since 1970.
    pub begins_unix: i64,
    /// How many shards the bucket before has, and keeps.
    pub before: u16,
}

impl NewestStep {
    /// That of a layout; `None` where all buckets have the same number of shards.
    pub fn of(layout: &Layout) -> Option<Self> {
        let (from, before) = (layout.newest_from()?, layout.steps().last()?.shards);
        Some(NewestStep {
            bucket: from.to_string(),
            begins: from.begins(),
            begins_unix: from.start(),
            before,
        })
    }
}

impl std::fmt::Display for NewestStep {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let NewestStep { bucket, begins, before, .. } = self;
        write!(
            f,
            "from the bucket {bucket} on, which begins at {begins}; the buckets before keep their {before}"
        )
    }
}

/// How long before it begins a bucket has to be chosen: two steps of the fence, each with a gateway
/// that has died and calls without an answer, and [`AHEAD`] besides.
pub(crate) fn margin(bounds: Bounds) -> Duration {
    AHEAD + (bounds.lease + bounds.straggler) * 2
}

/// Whether writers may reach that bucket soon.
pub(crate) fn is_due(bucket: Bucket, now: u64) -> bool {
    let soon = now.saturating_add(millis(AHEAD)) / 1_000;
    i64::try_from(soon).is_ok_and(|soon| bucket.start() <= soon)
}

/// The first bucket that begins after the margin.
fn first(layout: &Layout, now: u64, margin: Duration) -> Option<Bucket> {
    let seconds = i64::try_from(now.saturating_add(millis(margin)) / 1_000).ok()?;
    Some(Bucket::at(seconds, layout.time()?.granularity)?.next())
}

/// The layout with so many shards in all buckets from one on that begins after the margin, as far
/// as the clock tells.
///
/// # Errors
/// [`WorkerError::Usage`] where the key's number has changed too often.
pub(crate) fn by_the_clock(
    layout: &Layout,
    shards: u16,
    now: u64,
    margin: Duration,
) -> Result<Layout, WorkerError> {
    match first(layout, now, margin) {
        Some(first) => stepped(layout, first, shards),
        None => usage("The clock is beyond the years that buckets have"),
    }
}

/// The same, behind the buckets that hold items already.
///
/// # Errors
/// The store's; [`WorkerError::Usage`] where items lie so far in the future that no clock or zone
/// explains them.
pub(crate) async fn behind_items(
    registry: &Registry,
    key: &Key,
    layout: &Layout,
    shards: u16,
    margin: Duration,
) -> Result<Layout, WorkerError> {
    let Some(first) = first(layout, registry.env().unix_millis(), margin) else {
        return usage("The clock is beyond the years that buckets have");
    };
    let newest = newest_item(registry, key, layout, layout.most_shards(), first).await?;
    let Some(newest) = newest else { return stepped(layout, first, shards) };
    let zones = i64::try_from(ZONES.as_secs()).unwrap_or(i64::MAX);
    if newest.start() > first.start().saturating_add(zones) {
        return usage(format!(
            "The bucket {newest} of the key {:?} of table {} holds items already, and begins at {} only: a bucket keeps its shards, and so do those before \
             it that are still to come. Delete these items, or give later ones another key",
            key.text(),
            key.table.name,
            newest.begins()
        ));
    }
    stepped(layout, newest.next(), shards)
}

fn stepped(layout: &Layout, from: Bucket, shards: u16) -> Result<Layout, WorkerError> {
    match layout.stepped(from, shards) {
        Some(stepped) => Ok(stepped),
        None => usage(format!(
            "The shards of the key's buckets have changed {MAX_STEPS} times, which is the most that its record holds"
        )),
    }
}

/// The newest bucket from `from` on that holds an item of the key, in any of so many shards.
/// Strongly consistent. A bucket without a row in the directory holds none.
///
/// # Errors
/// The store's.
pub(crate) async fn newest_item(
    registry: &Registry,
    key: &Key,
    layout: &Layout,
    shards: u16,
    from: Bucket,
) -> Result<Option<Bucket>, WorkerError> {
    let granularity = from.granularity();
    let mut start = Json::Null;
    loop {
        let mut body = json!({
            "TableName": DIRECTORY, "ConsistentRead": true, "ScanIndexForward": false,
            "KeyConditionExpression": "pk = :k AND sk >= :b",
            "ExpressionAttributeValues": { ":k": { "S": directory_key(&key.table, &key.bytes) }, ":b": { "S": from.to_string() } },
        });
        if !start.is_null() {
            body["ExclusiveStartKey"] = start;
        }
        let mut page = registry.call_patiently(Operation::Query, body).await?;
        for row in page["Items"].as_array().into_iter().flatten() {
            let text = row["sk"]["S"].as_str().unwrap_or_default();
            // A row of another length is of another rule that the key once had.
            let read = Bucket::read(text.as_bytes(), granularity, granularity.format());
            let Some(bucket) = read.filter(|bucket| *bucket >= from) else { continue };
            for shard in 0..shards.max(1) {
                let physical = key.in_slot(layout, Slot { bucket: Some(bucket), shard })?;
                if !key.page(registry, &physical, None, Some(1)).await?.items.is_empty() {
                    return Ok(Some(bucket));
                }
            }
        }
        start = page["LastEvaluatedKey"].take();
        if start.is_null() {
            return Ok(None);
        }
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use heatsink_layout::{By, Epoch, Granularity, Hash, Strategy, Time};

    use super::*;

    fn layout(granularity: Granularity) -> Layout {
        let time = Time { granularity, prefix: String::new(), epoch: Epoch::Seconds };
        let strategy = Strategy::Bucket { time, by: By::SortKey, earlier: Vec::new() };
        Layout { strategy, shards: 1, hash: Hash::JumpXxh3, version: 1 }
    }

    #[test]
    fn a_change_begins_with_the_first_bucket_behind_the_margin() {
        let margin = Duration::from_secs(8 * 60);
        let begins = |granularity, at: &str| {
            let hour = Bucket::read(&at.as_bytes()[..13], Granularity::Hour, "%Y-%m-%dT%H").unwrap();
            let minutes: u64 = at[14..16].parse().unwrap();
            let now = u64::try_from(hour.start()).unwrap() * 1_000 + minutes * 60_000;
            let stepped = by_the_clock(&layout(granularity), 4, now, margin).unwrap();
            NewestStep::of(&stepped).unwrap().begins
        };
        assert_eq!(begins(Granularity::Hour, "2026-06-22T09:10"), "2026-06-22T10:00:00Z");
        assert_eq!(begins(Granularity::Hour, "2026-06-22T09:52"), "2026-06-22T11:00:00Z", "the next but one");
        assert_eq!(begins(Granularity::Hour, "2026-06-22T09:51"), "2026-06-22T10:00:00Z");
        assert_eq!(begins(Granularity::Day, "2026-06-22T09:10"), "2026-06-23T00:00:00Z");
        assert_eq!(begins(Granularity::Week, "2026-06-22T09:10"), "2026-06-29T00:00:00Z");
        assert_eq!(begins(Granularity::Month, "2026-06-30T23:55"), "2026-08-01T00:00:00Z");
    }

    #[test]
    fn a_bucket_is_due_when_a_fast_clock_may_reach_it() {
        let bucket = Bucket::at(3_600, Granularity::Hour).unwrap();
        assert!(!is_due(bucket, 3_299_999) && is_due(bucket, 3_300_000) && is_due(bucket, 9_999_999));
    }
}
