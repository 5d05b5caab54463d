//! What advice is about: what was seen of one key.

use serde::Serialize;

/// What was seen of one logical key of a table or a global index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Observed {
    /// Write units a second that were offered.
    pub writes: f64,
    /// The same in the busiest second.
    pub peak_writes: f64,
    /// Read units a second that were offered.
    pub reads: f64,
    /// By how much the write units may be less, where requests were drawn.
    pub write_error: f64,
    /// By how much the read units may be less.
    pub read_error: f64,
    /// Of the read units: those of requests for single items, which shards spread evenly.
    pub gets: f64,
    /// Queries a second, each of `page` items in order.
    pub queries: f64,
    /// Items of such a Query.
    pub page: u32,
    /// Which share of the requests the store throttled; from 0 to 1.
    pub throttled: f64,
    /// Which share of the writes a partition of the table refused, or of the index that it is a
    /// value of.
    pub writes_by_partition: f64,
    /// The same of the reads.
    pub reads_by_partition: f64,
    /// Which share of a table key's writes a partition of an index refused.
    pub by_index: f64,
    /// Units a second of other keys on the partition that refuses it, as far as they are known.
    pub beside: f64,
    /// How many of its shards burn while the others are cool.
    pub crowded: u16,
    /// Whether it is a value of a global index.
    pub of_index: bool,
    /// Bytes of an item.
    pub item_bytes: u32,
    /// Which share of the writes had a sort key above all before; from 0 to 1.
    pub growing: f64,
    /// Which share of the load went to one item; from 0 to 1.
    pub one_item: f64,
    /// Which share of the reads equalled the read before; from 0 to 1.
    pub same_page: f64,
    /// Whether enough different sort keys of its writes are known to divide them into ranges.
    pub divides: bool,
    /// How many shards the key has.
    pub shards: u16,
    /// Whether they are ranges of the sort key.
    pub in_ranges: bool,
    /// Whether the table has a sort key.
    pub sort_key: bool,
    /// Whether the table has a local index.
    pub local_index: bool,
    /// Items of the key, where known.
    pub items: Option<u64>,
    /// The table's partitions, where known.
    pub partitions: Option<u32>,
}
