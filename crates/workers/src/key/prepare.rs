//! Whether a key can move, and what it would take. Changes nothing.

use std::sync::Arc;
use std::time::Duration;

use heatsink_control::registry::Registry;
use heatsink_control::reshard_intent::WantedLayout;
use heatsink_control::{Announcer, Control, Record, Rules as Configured, TableLayouts};
use heatsink_dynamo::Operation;
use heatsink_env::{Env, MonotonicInstant};
use heatsink_layout::{Bucket, Layout, Moving, Phase, SplitPoints};
use heatsink_reshard::{Change, Coordinator, Do, Rules, Seen, State};
use heatsink_store::Store;
use serde::Serialize;
use serde_json::json;

use crate::error::WorkerError;
use crate::key::batch::UNITS;
use crate::key::estimate::{as_count, dollars, kilobytes, moving_of, write_units};
use crate::key::logical_key::Key;
use crate::key::protocol;
use crate::key::reshard::Reshard;
use crate::key::shares::Shares;
use crate::key::spare::Spare;
use crate::key::steps::{self, NewestStep};
use crate::key::survey::HIGH_WATER_WITHIN;
use crate::key::table_context::TableContext;
use crate::key::wanted::same;

/// The most capacity units a second that a mover takes of the old shards, unless it is told
/// otherwise: a partition's write units (docs/explain/partitions.md).
pub const DEFAULT_RATE: u32 = 1_000;

/// How a reshard is run.
#[derive(Clone, Copy, Debug)]
pub struct ReshardOptions {
    /// Whether no other process uses the store, so that there are no gateways to wait for.
    pub exclusive: bool,
    /// Capacity units a second that the mover may take of the old shards.
    pub rate: u32,
}

/// What a reshard would do, or does.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Plan {
    /// The table.
    pub table: String,
    /// The logical key.
    pub key: String,
    /// How many shards it has.
    pub from: u16,
    /// How many it gets.
    pub to: u16,
    /// The slots by name that it has; empty where shard k has slot k.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub from_slots: Vec<u16>,
    /// The slots by name that it gets.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub to_slots: Vec<u16>,
    /// Where the ranges begin that it gets, if its shards are to be ranges of the sort key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub split_at: Option<SplitPoints>,
    /// The numbers that are summed over the shards, for a counter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counter: Option<Vec<String>>,
    /// Where an interrupted reshard stands; none for one that begins.
    pub phase: Option<Phase>,
    /// How many items the key has. Those in buckets are not counted, since none moves.
    pub items: u64,
    /// How many of them move, as far as the hash tells before they are read: all that its new
    /// shards are expected to take.
    pub to_move: u64,
    /// About how many bytes move.
    pub bytes_to_move: u64,
    /// Write units that the move takes: two transactions for each item.
    pub write_units: u64,
    /// Read units that the mover's walk over the old shards takes.
    pub read_units: u64,
    /// What these units cost in US dollars, on demand in us-east-1.
    pub dollars: f64,
    /// About how long moving the items takes where clients leave the given rate, in seconds.
    pub seconds: u64,
    /// How long writes of the key wait, in milliseconds, while all gateways answer all their calls.
    pub stall_millis: u64,
    /// The longest that they wait where a gateway was killed or calls were not answered, in
    /// milliseconds.
    pub longest_stall_millis: u64,
    /// The most read units that a page of a Query of the key takes while its items move.
    pub page_units: u64,
    /// The phases, in order.
    pub phases: Vec<String>,
    /// From which bucket on it holds, where its buckets get another number of shards. Buckets
    /// before it keep theirs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<NewestStep>,
    /// From which phase on a cancel is a second reshard.
    pub point_of_no_return: &'static str,
    /// The attribute by which items of the table expire, if it has time to live. Puts of items with
    /// it take from the old shards until their item has moved, and wait in CHECK.
    pub time_to_live: Option<String>,
    /// What an operator has to know before it.
    pub warnings: Vec<String>,
    /// What to do next.
    pub next_steps: Vec<String>,
}

impl Reshard {
    /// Checks whether a key of a table can get that layout, or so many shards, now. `key` is the
    /// logical key's bytes; `streams_confirmed`: the table may have a stream, whose readers will
    /// see the items move. Changes nothing.
    ///
    /// # Errors
    /// [`WorkerError::Usage`] with the reason why not, and what to do.
    pub async fn prepare(
        store: Arc<dyn Store>,
        env: Arc<dyn Env>,
        rules: &Configured,
        table: &str,
        key: &[u8],
        wanted: impl Into<WantedLayout>,
        streams_confirmed: bool,
    ) -> Result<Self, WorkerError> {
        let context = TableContext::read(store, env, rules, table, streams_confirmed).await?;
        context.reshard(key, &wanted.into())
    }

    /// The same reshard, carried out within a gateway: it waits for the other ones as that gateway
    /// does.
    #[must_use]
    pub fn within(self, control: &Control) -> Self {
        let writes = control.key_writes(&self.described.schema.id);
        Reshard { announcer: Announcer::Gateway(control.clone()), writes, ..self }
    }

    /// The same, whose mover shares with these.
    #[must_use]
    pub(crate) fn sharing(self, shares: &Arc<Shares>) -> Self {
        Reshard { shares: Arc::clone(shares), ..self }
    }

    /// Whether its buckets get another number of shards.
    pub fn has_buckets(&self) -> bool {
        self.from.time().is_some()
    }

    /// Whether it is a counter that gets fewer shards, or becomes a whole key.
    pub fn narrows(&self) -> bool {
        self.change() == Change::Narrow
    }

    /// Whether its shards have slots by name, or get some.
    pub fn has_slots_by_name(&self) -> bool {
        [&self.from, &self.to].into_iter().any(|layout| !layout.slots().is_empty())
    }

    /// Whether the key is on the way already.
    pub fn is_begun(&self) -> bool {
        self.record.as_ref().is_some_and(|record| record.moves.is_some())
    }

    /// Counts about how many items will move, with a pause between two pages, so that the count
    /// takes little of what clients need.
    pub fn counting(&self, pause: Duration) -> impl Future<Output = Result<u64, WorkerError>> + Send + use<> {
        let (registry, key) = (self.registry.clone(), self.key.clone());
        let (from, to) = (self.from.clone(), self.to.clone());
        let change = self.change();
        async move {
            let mut items = 0;
            for slot in from.slot_numbers().filter(|slot| protocol::is_left(change, &from, &to, *slot)) {
                items += count(&registry, &key, &from, slot, Some(pause)).await?.items;
            }
            Ok(if change == Change::Narrow { items } else { moving_of(items, &from, &to) })
        }
    }

    /// Whether the key is laid out so already, and nothing is left to do.
    pub fn is_done(&self) -> bool {
        let settled = self.record.as_ref().is_none_or(|record| record.settled && record.moves.is_none());
        settled && same(&self.from, &self.to)
    }

    /// What it would do, at a rate of so many units a second. Counts the key's items, which costs
    /// what reading them does.
    ///
    /// # Errors
    /// The store's.
    pub async fn plan(&self, rate: u32) -> Result<Plan, WorkerError> {
        let change = self.change();
        let stays = change != Change::Move;
        let (mut items, mut units) = (0, 0.0);
        // Of the slots that items may leave, or whose fragments are folded.
        let (mut leaving, mut walked) = (0, 0.0);
        for (shard, slot) in self.from.slot_numbers().enumerate() {
            let is_left = protocol::is_left(change, &self.from, &self.to, slot);
            // Each item of a counter has its base fragment in the first.
            let has_items = !stays || shard == 0;
            if !is_left && !has_items {
                continue;
            }
            let counted = count(&self.registry, &self.key, &self.from, slot, None).await?;
            if has_items {
                items += counted.items;
                units += counted.units;
            }
            if is_left {
                leaving += counted.items;
                walked += counted.units;
            }
        }
        let to_move = match change {
            Change::Move => moving_of(leaving, &self.from, &self.to),
            Change::Narrow => leaving,
            Change::Widen | Change::Step => 0,
        };
        // A read that may be out of date takes half a unit for each 4 KB.
        let bytes = as_count(units * 8.0 * 1024.0);
        let bytes_to_move = bytes.checked_div(items).unwrap_or(0) * to_move;
        // Of a fold an update of the item, and the deletion of a fragment, which has its key and
        // numbers alone.
        let of_item = bytes.checked_div(items).unwrap_or(0);
        let kilobytes = kilobytes(of_item);
        let write_units = match change {
            Change::Narrow => to_move * (2 * kilobytes + 4),
            Change::Move | Change::Widen | Change::Step => write_units(to_move, of_item),
        };
        let read_units = as_count(walked * 4.0);
        let bounds = self.announcer.bounds();
        let to = self.chosen().await?;
        Ok(Plan {
            table: self.key.table.name.clone(),
            key: self.key.text(),
            from: self.from.shards,
            to: self.to.shards,
            from_slots: self.from.slots().to_vec(),
            to_slots: self.to.slots().to_vec(),
            split_at: self.to.split_points().cloned(),
            counter: self.to.counter_attributes().or(self.from.counter_attributes()).map(<[String]>::to_vec),
            phase: self.record.as_ref().and_then(|record| record.moves.as_ref()).map(|moves| moves.phase),
            items,
            to_move,
            bytes_to_move,
            write_units,
            read_units,
            dollars: dollars(write_units, read_units),
            seconds: Spare::seconds(to_move * kilobytes * u64::from(UNITS), rate),
            stall_millis: if stays { 0 } else { millis(bounds.poll / 5) },
            longest_stall_millis: match stays {
                true => 0,
                false => millis(bounds.short_lease() + bounds.straggler + HIGH_WATER_WITHIN),
            },
            page_units: if stays { 0 } else { page_units(bytes, self.from.shards, self.to.shards) },
            step: NewestStep::of(&to).filter(|_| !self.is_done()),
            phases: phases(protocol::read(self.record.as_ref()), self.change()),
            point_of_no_return: match self.change() {
                Change::Widen => "STABLE",
                Change::Step => "PREPARE",
                Change::Narrow => "MOVE",
                Change::Move => "CHECK, or MOVE where there is none",
            },
            time_to_live: self.expires.clone(),
            warnings: Vec::new(),
            next_steps: Vec::new(),
        })
    }

    /// What becomes of the key.
    pub(crate) fn change(&self) -> Change {
        if Moving::widens(&self.from, &self.to) {
            Change::Widen
        } else if Moving::narrows(&self.from, &self.to) {
            Change::Narrow
        } else if Moving::steps(&self.from, &self.to).is_some() {
            Change::Step
        } else {
            Change::Move
        }
    }

    /// The layout that the key gets: of one with buckets, whose change has not begun, from the
    /// first bucket on that can have it.
    ///
    /// # Errors
    /// As [`chosen_anew`](Self::chosen_anew).
    pub(crate) async fn chosen(&self) -> Result<Layout, WorkerError> {
        if self.is_begun() { Ok(self.to.clone()) } else { self.chosen_anew().await }
    }

    /// The same where no change is on record any more: the one that was found there has gone back,
    /// because its first bucket came too near.
    ///
    /// # Errors
    /// The store's; [`WorkerError::Usage`] where items lie too far in the future.
    pub(crate) async fn chosen_anew(&self) -> Result<Layout, WorkerError> {
        if Moving::steps(&self.from, &self.to).is_none() {
            return Ok(self.to.clone());
        }
        let margin = steps::margin(self.announcer.bounds());
        steps::behind_items(&self.registry, &self.key, &self.from, self.to.shards, margin).await
    }

    /// Whether it can begin, as far as that takes reads of the store.
    ///
    /// # Errors
    /// As [`plan`](Self::plan).
    pub async fn can_begin(&self) -> Result<(), WorkerError> {
        self.chosen().await.map(drop)
    }

    /// Whether the key has any item.
    ///
    /// # Errors
    /// The store's.
    pub async fn has_items(&self) -> Result<bool, WorkerError> {
        if let Some(time) = self.from.time() {
            let most = self.from.most_shards();
            if let Some(oldest) = Bucket::at(0, time.granularity)
                && steps::newest_item(&self.registry, &self.key, &self.from, most, oldest).await?.is_some()
            {
                return Ok(true);
            }
        }
        // What has no time lies in no bucket.
        let shards = if self.from.time().is_some() { 1 } else { usize::from(self.from.shards) };
        for slot in self.from.slot_numbers().take(shards) {
            let physical = self.key.physical(&self.from, slot)?;
            if !self.key.page(&self.registry, &physical, None, Some(1)).await?.items.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The record of a table of which only single keys are laid out.
    pub(crate) fn first_record(&self) -> Record {
        self.registry.first_record(&self.described, TableLayouts::default(), true)
    }
}

/// The phases through which a coordinator takes a key with that record, as it says itself.
fn phases(record: heatsink_reshard::Record, change: Change) -> Vec<String> {
    let clean = walk(record, change, true);
    let name = |state: &State| match state {
        State::Moving { phase, .. } => format!("{phase:?}").to_uppercase(),
        State::Stable { .. } => "STABLE".to_owned(),
    };
    let named = |state: &State| match clean.contains(state) {
        true => name(state),
        false => format!("{} (only if some request was not answered)", name(state)),
    };
    walk(record, change, false).iter().map(named).collect()
}

/// The states that a coordinator publishes, if all acknowledgements are clean or none is.
fn walk(record: heatsink_reshard::Record, change: Change, clean: bool) -> Vec<State> {
    let (straggler, now) = (Duration::ZERO, MonotonicInstant(0));
    let begun = Coordinator::take_over(record, change, straggler, Rules::ALL)
        .or_else(|| Coordinator::begin(record, change, straggler, Rules::ALL));
    let Some(mut coordinator) = begun else { return Vec::new() };
    let mut states = Vec::new();
    loop {
        let seen = match coordinator.next() {
            Do::Write { record, publish, .. } => {
                if publish {
                    states.push(record.state);
                }
                Seen::Written
            }
            Do::Acknowledge { .. } => Seen::Acknowledged { clean },
            Do::Wait { .. } => Seen::Waited,
            Do::Survey => Seen::Surveyed { foreign: 0, orphans: 0 },
            Do::Clear => Seen::Cleared,
            Do::MarkHighWater => Seen::Marked,
            Do::Move => Seen::Moved { left: 0 },
            Do::EndClaims => Seen::ClaimsEnded,
            Do::Rest(_) => return states,
        };
        coordinator.seen(now, seen);
    }
}

/// A Query reads the new shards, the old ones, and the new ones again, consistently, and of each
/// shard a page of 1 MB at most.
fn page_units(bytes: u64, from: u16, to: u16) -> u64 {
    let read = |shards: u16| bytes.min(u64::from(shards) << 20);
    (read(to) + read(from) + read(to)).div_ceil(4096)
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// What was counted under a physical key.
struct Counted {
    items: u64,
    units: f64,
}

async fn count(
    registry: &Registry,
    key: &Key,
    layout: &Layout,
    slot: u16,
    pause: Option<Duration>,
) -> Result<Counted, WorkerError> {
    let physical = key.physical(layout, slot)?;
    let (mut counted, mut start) = (Counted { items: 0, units: 0.0 }, json!(null));
    loop {
        let mut body = json!({
            "TableName": key.table.name, "Select": "COUNT", "ReturnConsumedCapacity": "TOTAL", "KeyConditionExpression": "#p = :p",
            "ExpressionAttributeNames": { "#p": key.table.key.partition.name }, "ExpressionAttributeValues": { ":p": physical },
        });
        if !start.is_null() {
            body["ExclusiveStartKey"] = start;
        }
        let mut page = registry.call_patiently(Operation::Query, body).await?;
        counted.items += page["Count"].as_u64().unwrap_or(0);
        counted.units += page["ConsumedCapacity"]["CapacityUnits"].as_f64().unwrap_or(0.0);
        start = page["LastEvaluatedKey"].take();
        if start.is_null() {
            return Ok(counted);
        }
        if let Some(pause) = pause {
            registry.env().sleep(pause).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_meanwhile_costs_what_three_reads_do_of_a_megabyte_of_each_shard() {
        let mb = 1_u64 << 20;
        assert_eq!(page_units(0, 1, 10), 0);
        assert_eq!(page_units(4096, 1, 10), 3);
        assert_eq!(page_units(100 * mb, 1, 10), 21 * 256);
        assert_eq!(page_units(6 * mb, 10, 1), (6 + 2) * 256);
    }
}
