//! Looks at the physical keys that a key will use: what lies there, and should not. And at those
//! that it leaves: up to where they hold items.

use std::future::ready;
use std::time::Duration;

use futures::stream::{self, StreamExt, TryStreamExt};
use heatsink_control::claim::Claim;
use heatsink_control::registry::Registry;
use heatsink_control::reshard_intent::key_text;
use heatsink_control::{KeyRecord, TableFacts};
use heatsink_dynamo::Operation;
use heatsink_layout::codec::split_shard_of;
use heatsink_layout::{Bucket, Layout, Moving};
use serde_json::{Value as Json, json};

use crate::error::WorkerError;
use crate::key::logical_key::{Key, Sort};
use crate::key::steps::newest_item;

/// How long writers are kept waiting for the high water.
pub(crate) const HIGH_WATER_WITHIN: Duration = Duration::from_millis(100);
/// How many old slots are read at once for their highest sort key.
const AT_ONCE: usize = 32;

/// What was found there.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// What stands in the way: items that clients have put under a name which only looks like a
    /// shard's, and others that cannot be decided about.
    pub foreign: u64,
    /// Items of this key that an earlier layout left there, each with the item that counts: their
    /// primary keys.
    pub orphans: Vec<(Json, Json)>,
    /// The first thing in the way, and what to do about it.
    pub named: Option<String>,
    /// Whether only another key that moves is in the way: later there is nothing.
    pub passing: bool,
    /// The attribute by which items of the table expire.
    pub expires: Option<String>,
    /// Whether the table's stream shows what was deleted.
    pub marks: bool,
    /// The highest sort key in the old slots, as it was read when none of them got an item any
    /// more.
    pub high_water: Option<Sort>,
}

impl Found {
    fn in_the_way(&mut self, what: impl FnOnce() -> String) {
        self.foreign += 1;
        self.named.get_or_insert_with(what);
    }
}

/// Reads them all. `reserved`: slots below this number were this key's before. All below the highest
/// new one become its own, also those that no shard gets.
///
/// # Errors
/// The store's.
pub(crate) async fn survey(
    registry: &Registry,
    key: &Key,
    from: &Layout,
    to: &Layout,
    reserved: u16,
) -> Result<Found, WorkerError> {
    let mut found = Found::default();
    // What a counter has already are its fragments.
    let first = if Moving::widens(from, to) { from.shards } else { 0 };
    let new = (reserved.max(1)..to.slot_bound()).filter(|slot| to.shard_in(*slot).is_none());
    let between = stream::iter(new.map(|slot| first_of(registry, key, to, slot)));
    let mut between = between.buffered(AT_ONCE);
    while let Some(held) = between.try_next().await? {
        if let Some(physical) = held {
            found.in_the_way(|| taken(&physical));
        }
    }
    for slot in to.slot_numbers().filter(|slot| *slot >= first) {
        // Where all items of the key lie, or the same as before, none can be elsewhere.
        if from.shards == 1 && from.shard_in(slot).is_some() || from.keeps_slot(to, slot) {
            continue;
        }
        let physical = key.physical(to, slot)?;
        let mut start = None;
        loop {
            let page = key.page(registry, &physical, start.as_ref(), None).await?;
            for item in &page.items {
                let lies = key.slot_of(from, item)?;
                if slot >= reserved.max(1) {
                    found.in_the_way(|| taken(&physical));
                } else if lies != slot {
                    let orphan = key.primary(&physical, item);
                    let home = key.primary(&key.physical(from, lies)?, item);
                    let body = json!({ "TableName": key.table.name, "Key": home, "ConsistentRead": true });
                    let answer = registry.call_patiently(Operation::GetItem, body).await?;
                    match answer.get("Item") {
                        Some(_) => found.orphans.push((orphan, home)),
                        None => found.in_the_way(|| {
                            format!(
                                "the item {orphan} lies where the key's layout does not put it, and nowhere else. `heatsink verify --repair` brings it \
                                 to its place"
                            )
                        }),
                    }
                }
            }
            // One is enough to refuse the move.
            start = page.more.filter(|_| found.foreign == 0);
            if start.is_none() {
                break;
            }
        }
    }
    Ok(found)
}

/// The physical key of a slot, if an item lies there.
async fn first_of(
    registry: &Registry,
    key: &Key,
    layout: &Layout,
    slot: u16,
) -> Result<Option<Json>, WorkerError> {
    let physical = key.physical(layout, slot)?;
    let page = key.page(registry, &physical, None, Some(1)).await?;
    Ok((!page.items.is_empty()).then_some(physical))
}

/// That clients use a name which would become the key's own.
fn taken(physical: &Json) -> String {
    format!(
        "items of clients lie under {physical}, a name that its shards would have. Move or delete them, or choose fewer shards, or slots below"
    )
}

/// Looks into the buckets that are to have another number of shards, in all shards that any bucket
/// of the key ever had.
///
/// # Errors
/// The store's.
pub(crate) async fn buckets(
    registry: &Registry,
    key: &Key,
    from: &Layout,
    first: Bucket,
    shards: u16,
) -> Result<Found, WorkerError> {
    let mut found = Found::default();
    if let Some(bucket) = newest_item(registry, key, from, shards, first).await? {
        // The next run begins behind it.
        found.passing = true;
        found.in_the_way(|| {
            format!("its bucket {bucket} holds items, which were written when the change began: a later one is chosen next time")
        });
    }
    Ok(found)
}

/// Looks for what may have come since the move was prepared: keys on record under the names of its
/// shards, the key itself under the name of another's, and time to live. Of two such keys that come
/// at the same time each finds the other, for both are on record by now. `facts` were read after the
/// key's own record was written, and known to every gateway. From RESERVE on none turns that on or
/// off, so what is found here holds for the move.
pub(crate) fn names(facts: &TableFacts, key: &Key, to: &Layout, found: &mut Found) {
    let records = &facts.records;
    // In a table with buckets every name of a shard's form is escaped.
    let bound = if to.time().is_some() { 1 } else { to.slot_bound() };
    let text = |record: &KeyRecord| key_text(&record.key, key.key_type());
    let is_name = |record: &&KeyRecord| {
        split_shard_of(&record.key, key.key_type())
            .is_some_and(|(base, slot)| base == key.bytes && slot < bound)
    };
    for record in records.iter().filter(is_name) {
        found.in_the_way(|| {
            format!("{:?}, a name that its shards would have, is itself a key on record", text(record))
        });
    }
    let is_shard_of = |record: &&KeyRecord| {
        let of = split_shard_of(&key.bytes, key.key_type()).filter(|(logical, _)| *logical == &*record.key);
        of.is_some_and(|(_, shard)| shard < record.reserved)
    };
    if let Some(owner) = records.iter().find(is_shard_of) {
        found.in_the_way(|| {
            format!("it is the physical key of a shard of {:?}, which is on record", text(owner))
        });
    }
    found.expires.clone_from(&facts.expires);
    found.marks = facts.marks;
    if found.expires.is_some() && (key.table.has_counters() || to.counter_attributes().is_some()) {
        found.passing = false;
        found.in_the_way(|| "the table has counters, and time to live would delete them in parts".to_owned());
    }
}

/// The highest sort key in any of the old slots that items leave; `None` where they hold nothing, or
/// the items have no sort keys. One read of each, once: who waits for it holds up writers.
///
/// # Errors
/// The store's.
pub(crate) async fn high_water(
    registry: &Registry,
    key: &Key,
    from: &Layout,
    to: &Layout,
) -> Result<Option<Sort>, WorkerError> {
    if key.table.key.sort.is_none() {
        return Ok(None);
    }
    let highest = |slot| async move {
        let last = key.last(registry, &key.physical(from, slot)?).await?;
        last.map(|item| key.sort(&item)).transpose()
    };
    let left = from.slot_numbers().filter(|slot| !from.keeps_slot(to, *slot));
    let found = stream::iter(left.map(highest)).buffer_unordered(AT_ONCE);
    Ok(found.try_fold(None, |most, one| ready(Ok(most.max(one)))).await?)
}

/// Deletes what an earlier layout left, where the item that counts is still there.
///
/// # Errors
/// The store's; another worker that has taken over.
pub(crate) async fn clear(claim: &Claim, key: &Key, orphans: &[(Json, Json)]) -> Result<(), WorkerError> {
    let names = json!({ "#p": key.table.key.partition.name });
    for (orphan, home) in orphans {
        let check = json!({
            "TableName": key.table.name, "Key": home, "ConditionExpression": "attribute_exists(#p)", "ExpressionAttributeNames": names,
        });
        let delete = json!({ "TableName": key.table.name, "Key": orphan });
        // Where it is gone by now, the next survey decides.
        claim.write(vec![json!({ "ConditionCheck": check }), json!({ "Delete": delete })]).await?;
    }
    Ok(())
}
