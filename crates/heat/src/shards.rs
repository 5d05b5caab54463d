//! How many shards a key needs for a write rate, how likely it still throttles, and what reads over
//! them cost.

use heatsink_dynamo::capacity::write_units;
use serde::Serialize;

use crate::crowding::{at_least, some_partition_holds};
use crate::{PARTITION_READS, PARTITION_WRITES};

/// A new on-demand table has as many (docs/explain/partitions.md#how-much-a-table-may-take).
const FEWEST_PARTITIONS: u32 = 4;
/// The most shards that a rule may ask for.
const MOST_SHARDS: u16 = 1000;
/// DynamoDB counts reads in steps of 4 KB, and half of one for eventually consistent reads
/// (docs/explain/partitions.md#sources).
const READ_STEP: f64 = 4096.0;

/// The default for the accepted probability that some partition is overloaded at the peak. Every
/// command that recommends a shard count uses it, so that equal rates get equal counts everywhere.
pub const DEFAULT_RISK: f64 = 0.01;

/// The load of a key, and its table.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Asked {
    /// Sustained writes of the key a second.
    pub writes: f64,
    /// Writes a second at its peak.
    pub peak: f64,
    /// Reads of its newest or highest items a second, each of `page` items.
    pub reads: f64,
    /// Bytes of an item.
    pub item_bytes: u32,
    /// Items of such a read.
    pub page: u32,
    /// The table's partitions, where known. They are assumed to be of equal size. This is true of a
    /// new or grown table; a split for heat leaves smaller partitions, which hold a shard less
    /// often than computed.
    pub partitions: Option<u32>,
    /// How likely it may be, at most, that some partition exceeds its ceiling at the peak; from 0
    /// to 1.
    pub risk: f64,
}

/// The ceiling of a partition that a load reaches first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ceiling {
    /// 1,000 write units a second.
    Writes,
    /// 3,000 read units a second.
    Reads,
}

/// Why the recommended shard count is what it is, or why there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// One partition carries the key.
    OnePartition,
    /// With one shard less, writes overload some partition more often than the risk allows.
    Writes,
    /// The same, of reads.
    Reads,
    /// There is none: all partitions of the table together accept less than the peak.
    TableTooSmall,
    /// There is none: the largest shard count of a rule accepts less than the peak, even with each
    /// shard on its own partition.
    MostShards,
    /// There is none: a read costs at least half a unit in every shard, and that is more than a
    /// partition accepts.
    EveryRead,
    /// There is none: every count overloads some partition more often than the risk allows.
    Risk,
}

/// One shard count, and what to expect of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The shard count.
    pub shards: u16,
    /// Write units a second of each shard: sustained, and at the peak.
    pub units: f64,
    /// At the peak.
    pub peak_units: f64,
    /// The number of shards that reach a partition's ceiling at the peak, if they share it.
    pub too_many_together: u32,
    /// The ceiling that they reach.
    pub ceiling: Ceiling,
    /// The share of all key names with which some partition reaches its ceiling at the peak; from 0
    /// to 1.
    pub risk: f64,
    /// What reads cost over that many shards.
    pub costs: Costs,
}

/// Read units, eventually consistent.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Costs {
    /// One read of `page` items in order, over all shards.
    pub page: f64,
    /// The same from one key.
    pub page_unsharded: f64,
    /// The read units of one shard a second, at the rate asked for; a partition takes 3,000.
    pub page_per_shard: f64,
    /// 1 MB of the key in order, over all shards; 128 from one key.
    pub full_read_per_mb: f64,
    /// The sum of a counter over as many shards: one batch.
    pub counter: f64,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Advice {
    /// What was asked.
    pub asked: Asked,
    /// The partitions that the figures assume: those given, or those of a table that carries four
    /// times this key.
    pub partitions: u32,
    /// Write units of one write: 1 KB each, rounded up.
    pub units_per_write: f64,
    /// The smallest shard count within the risk; `None` if there is none up to 1,000.
    pub recommended: Option<Row>,
    /// Why that many, or why none.
    pub cause: Cause,
    /// The count before the recommended one, which is too few; `None` where that is 1, and where
    /// none is recommended.
    pub one_less: Option<Row>,
    /// The shard count of the accounts' formula: peak units divided by 1,000, rounded up.
    pub simple: Row,
    /// The same with a fifth more for headroom, as the accounts add.
    pub simple_with_headroom: Row,
    /// Some counts around the recommended one, for comparison.
    pub around: Vec<Row>,
}

/// Write units of one write of an item of that many bytes.
pub fn units_per_write(item_bytes: u32) -> f64 {
    write_units(0, usize::try_from(item_bytes).unwrap_or(usize::MAX))
}

/// Advises on a key.
pub fn advise(asked: Asked) -> Advice {
    let units = units_per_write(asked.item_bytes);
    let peak = asked.peak * units;
    let partitions = asked.partitions.unwrap_or_else(|| assumed_partitions(&asked)).max(1);
    let row = |shards: u16| row(&asked, units, partitions, shards.clamp(1, MOST_SHARDS));
    let simple = whole(peak / PARTITION_WRITES).max(1);
    let bound = |shards: &u16| {
        let (together, _) = full(&asked, peak, *shards, &costs(&asked, *shards));
        at_least(*shards, partitions, together) <= asked.risk
    };
    let recommended = (1..=MOST_SHARDS).filter(bound).map(row).find(|row| row.risk <= asked.risk);
    let one_less = recommended.as_ref().filter(|row| row.shards > 1).map(|best| row(best.shards - 1));
    let cause = match (&recommended, &one_less) {
        (Some(_), None) => Cause::OnePartition,
        (Some(_), Some(fewer)) if fewer.ceiling == Ceiling::Writes => Cause::Writes,
        (Some(_), Some(_)) => Cause::Reads,
        (None, _) => why_none(&asked, peak, partitions),
    };
    let middle = recommended.as_ref().map_or_else(|| simple.saturating_mul(4), |row| row.shards);
    let mut around: Vec<u16> = [1, 2, 3, 4, 6]
        .iter()
        .map(|part| u16::try_from(u32::from(middle) * part / 4).unwrap_or(MOST_SHARDS))
        .collect();
    around.dedup();
    Advice {
        asked,
        partitions,
        units_per_write: units,
        recommended,
        cause,
        one_less,
        simple: row(simple),
        simple_with_headroom: row(whole(f64::from(simple) * 1.2)),
        around: around.into_iter().filter(|shards| (1..=MOST_SHARDS).contains(shards)).map(row).collect(),
    }
}

/// What to expect of one shard count.
pub fn assess(asked: &Asked, shards: u16) -> Row {
    let units = units_per_write(asked.item_bytes);
    let partitions = asked.partitions.unwrap_or_else(|| assumed_partitions(asked)).max(1);
    row(asked, units, partitions, shards.clamp(1, MOST_SHARDS))
}

/// The bound that no shard count satisfies; the lower one if there are two.
fn why_none(asked: &Asked, peak: f64, partitions: u32) -> Cause {
    let (of_table, of_shards) =
        (f64::from(partitions) * PARTITION_WRITES, f64::from(MOST_SHARDS) * PARTITION_WRITES);
    if peak >= of_table.min(of_shards) {
        return if of_table <= of_shards { Cause::TableTooSmall } else { Cause::MostShards };
    }
    if asked.reads * 0.5 >= PARTITION_READS { Cause::EveryRead } else { Cause::Risk }
}

/// An unknown table is assumed to carry four times this key. It has the partitions of the formula
/// that AWS used to publish (docs/explain/partitions.md#how-much-a-table-may-take), at least those
/// of a new on-demand table.
pub(crate) fn assumed_partitions(asked: &Asked) -> u32 {
    let peak = asked.peak * units_per_write(asked.item_bytes);
    let reads = asked.reads * page_units(f64::from(asked.page), asked);
    u32::from(whole(4.0 * (peak / PARTITION_WRITES + reads / PARTITION_READS))).max(FEWEST_PARTITIONS)
}

fn row(asked: &Asked, units: f64, partitions: u32, shards: u16) -> Row {
    let each = f64::from(shards);
    let peak = asked.peak * units;
    let costs = costs(asked, shards);
    let (together, ceiling) = full(asked, peak, shards, &costs);
    Row {
        shards,
        units: asked.writes * units / each,
        peak_units: peak / each,
        too_many_together: together,
        ceiling,
        risk: some_partition_holds(shards, partitions, together),
        costs,
    }
}

/// How many shards on one partition reach its ceiling at a peak of so many write units a second,
/// and which ceiling that is.
fn full(asked: &Asked, peak: f64, shards: u16, costs: &Costs) -> (u32, Ceiling) {
    // Shares of a hash are even on average only, so a partition that is just full counts as too
    // full.
    let fill = |ceiling: f64, load: f64| if load > 0.0 { whole(ceiling / load).max(1) } else { u16::MAX };
    // Of the whole load, so that shares that fill a partition exactly do so in floating point too.
    let writes = fill(PARTITION_WRITES * f64::from(shards), peak);
    let reads = if asked.reads > 0.0 { fill(PARTITION_READS, costs.page_per_shard) } else { u16::MAX };
    if reads < writes { (u32::from(reads), Ceiling::Reads) } else { (u32::from(writes), Ceiling::Writes) }
}

fn costs(asked: &Asked, shards: u16) -> Costs {
    let each = f64::from(shards);
    let page = f64::from(asked.page);
    // Every shard is asked for its likely share: the mean and three standard deviations.
    let share = if shards == 1 {
        page
    } else {
        let mean = page / each;
        (mean + 3.0 * (mean * (1.0 - 1.0 / each)).sqrt()).ceil().min(page)
    };
    let of_share = page_units(share, asked);
    Costs {
        page: of_share * each,
        page_unsharded: page_units(page, asked),
        page_per_shard: of_share * asked.reads,
        // Every shard ends in a step of its own, half of which is used on average.
        full_read_per_mb: 128.0 + if shards == 1 { 0.0 } else { each * 0.25 },
        counter: each * 0.5,
    }
}

/// Read units of a Query of that many items: at least half a unit.
fn page_units(items: f64, asked: &Asked) -> f64 {
    (items * f64::from(asked.item_bytes) / READ_STEP).ceil().max(1.0) / 2.0
}

/// Rounded up.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "clamped to the range of the type"
)]
fn whole(number: f64) -> u16 {
    number.ceil().clamp(0.0, f64::from(u16::MAX)) as u16
}

#[cfg(test)]
mod tests;
