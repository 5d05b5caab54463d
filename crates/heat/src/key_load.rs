//! What one gateway saw of one key within a second, and what several saw together.
//!
//! Not here: how it is counted, and what follows from it ([`advice`](crate::advice)).

use heatsink_dynamo::{KeyValue, Value};
use heatsink_layout::number_codec;
use serde::{Deserialize, Serialize};

use crate::advice::Observed;
use crate::client_load::{ClientLoads, ClientShare};
use crate::detect::{Drawn, KeyHeat, Kind, Refusals};

/// The most items of a page that are reckoned with.
const MOST_ITEMS: f64 = 1_000.0;

/// What became of a key's reads, or of its writes. Requests a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Refused {
    /// All of them.
    pub requests: f64,
    /// Those that the store throttled, for whatever reason; of these and the following as many as
    /// is certain.
    pub throttled: f64,
    /// Of these: because one partition of the table, or of the index that the load is of, was at
    /// its limit.
    pub by_partition: f64,
    /// Of these: because a partition of an index of the table was, and not one of the table.
    pub by_index: f64,
    /// Of these: because the table, its index or the account was at its limit. Older gateways do not
    /// tell it.
    #[serde(default)]
    pub by_limit: f64,
    /// How many were counted for the requests: of those that are drawn, one stands for many. 0
    /// where that is not known, as of older gateways.
    #[serde(default)]
    pub counted: f64,
}

impl Refused {
    /// Both together.
    #[must_use]
    pub fn plus(self, other: Refused) -> Refused {
        Refused {
            requests: self.requests + other.requests,
            throttled: self.throttled + other.throttled,
            by_partition: self.by_partition + other.by_partition,
            by_index: self.by_index + other.by_index,
            by_limit: self.by_limit + other.by_limit,
            counted: self.counted + other.counted,
        }
    }

    /// So many times.
    #[must_use]
    pub fn times(self, factor: f64) -> Refused {
        Refused {
            requests: self.requests * factor,
            throttled: self.throttled * factor,
            by_partition: self.by_partition * factor,
            by_index: self.by_index * factor,
            by_limit: self.by_limit * factor,
            counted: self.counted * factor,
        }
    }

    /// Which share of all a number of them is; 0 where there are none.
    pub fn share(self, of: f64) -> f64 {
        share(of, self.requests)
    }
}

/// What one slot of a key took, by the physical requests for it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SlotLoad {
    /// The slot: the number of its physical key.
    pub slot: u16,
    /// Capacity units a second.
    pub units: f64,
    /// Physical requests a second.
    pub requests: f64,
    /// Of these: throttled.
    pub throttled: f64,
    /// How many were counted for the requests; 0 where that is not known.
    #[serde(default)]
    pub counted: f64,
}

impl SlotLoad {
    fn times(&self, factor: f64) -> SlotLoad {
        SlotLoad {
            slot: self.slot,
            units: self.units * factor,
            requests: self.requests * factor,
            throttled: self.throttled * factor,
            counted: self.counted * factor,
        }
    }
}

/// Fewer different sort keys of writes say little of where they divide.
const LEAST_TO_DIVIDE: usize = 12;
/// So many sort keys of writes are kept of a key.
const MOST_WRITTEN: usize = 128;

/// The load of one logical key of a table, or of one value of an index, as a gateway saw it. Rates
/// are per second; shares are from 0 to 1.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KeyLoad {
    /// The table's name.
    pub table: String,
    /// The global index of whose partition key it is a value; `None` for a key of the table. Older
    /// gateways tell of keys of tables alone.
    #[serde(default)]
    pub index: Option<String>,
    /// The logical key's bytes: UTF-8 of a string, raw binary, a number as DynamoDB writes it.
    pub key: Vec<u8>,
    /// Whether the key is a number.
    #[serde(default)]
    pub is_number: bool,
    /// Whether these bytes are the first ones of a key that was too long to be kept: nothing can be
    /// done for it.
    #[serde(default)]
    pub is_cut: bool,
    /// Write units that were offered.
    pub writes: f64,
    /// Read units that were offered.
    pub reads: f64,
    /// What of the write units was drawn, and not counted. Of older gateways it is not known.
    #[serde(default)]
    pub writes_drawn: Drawn,
    /// The same of the read units.
    #[serde(default)]
    pub reads_drawn: Drawn,
    /// Requests.
    pub requests: f64,
    /// Requests that the store throttled, as many as is certain.
    pub throttled: f64,
    /// What became of the writes. Of older gateways it is not known.
    #[serde(default)]
    pub writes_refused: Refused,
    /// What became of the reads.
    #[serde(default)]
    pub reads_refused: Refused,
    /// Read units of requests for single items, which more shards spread; the others are Queries'.
    #[serde(default)]
    pub gets: f64,
    /// What its slots took, where that was measured; else empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slots: Vec<SlotLoad>,
    /// Queries.
    pub queries: f64,
    /// Items of a Query.
    pub page: u32,
    /// Bytes of the largest item seen.
    pub item_bytes: u32,
    /// Which share of the writes had a sort key above all before.
    pub growing: f64,
    /// Some of the sort keys that were written to, the newest first: attribute values in JSON. Older
    /// gateways do not tell them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub written: Vec<String>,
    /// Which share of the load went to one item.
    pub one_item: f64,
    /// Which share of the writes only adds to numbers, so that a counter takes them.
    #[serde(default)]
    pub added: f64,
    /// Which share of the reads equalled the read before.
    pub same_page: f64,
    /// The clients that make the most of it; none where they are not known. Older gateways do not
    /// tell them.
    #[serde(default, skip_serializing_if = "ClientLoads::is_empty")]
    pub clients: ClientLoads,
}

impl KeyLoad {
    /// Adds what another gateway saw of the same key.
    pub fn add(&mut self, other: &KeyLoad) {
        let of_writes = [self.writes, other.writes];
        let of_reads = [self.reads, other.reads];
        let of_all = [self.writes + self.reads, other.writes + other.reads];
        self.growing = weighed([self.growing, other.growing], of_writes);
        self.added = weighed([self.added, other.added], of_writes);
        self.one_item = weighed([self.one_item, other.one_item], of_all);
        self.same_page = weighed([self.same_page, other.same_page], of_reads);
        self.writes += other.writes;
        self.reads += other.reads;
        self.writes_drawn = self.writes_drawn.plus(other.writes_drawn);
        self.reads_drawn = self.reads_drawn.plus(other.reads_drawn);
        self.requests += other.requests;
        self.throttled += other.throttled;
        self.writes_refused = self.writes_refused.plus(other.writes_refused);
        self.reads_refused = self.reads_refused.plus(other.reads_refused);
        self.gets += other.gets;
        other.slots.iter().for_each(|slot| self.add_slot(slot));
        self.queries += other.queries;
        self.page = self.page.max(other.page);
        self.item_bytes = self.item_bytes.max(other.item_bytes);
        self.clients.add(&other.clients);
        let before = std::mem::replace(&mut self.written, other.written.clone());
        self.written.extend(before);
        self.written.truncate(MOST_WRITTEN);
    }

    fn add_slot(&mut self, other: &SlotLoad) {
        match self.slots.iter_mut().find(|one| one.slot == other.slot) {
            None => self.slots.push(*other),
            Some(one) => {
                one.units += other.units;
                one.requests += other.requests;
                one.throttled += other.throttled;
                one.counted += other.counted;
            }
        }
    }

    /// Whether it can have shards: a key of a table, known whole, that has room for them.
    pub fn can_have_shards(&self) -> bool {
        self.index.is_none() && !self.is_number_without_room() && !self.is_cut
    }

    /// Whether it is a number that no shard can be written into: one of an index, or of too many
    /// digits.
    pub fn is_number_without_room(&self) -> bool {
        self.is_number && (self.index.is_some() || !self.is_number_with_room())
    }

    /// A report may hold a part of a key, which is no number.
    fn is_number_with_room(&self) -> bool {
        let text = std::str::from_utf8(&self.key).ok();
        text.is_some_and(|text| number_codec::canonical(text).is_some_and(|number| number == text))
            && number_codec::has_room(&self.key)
    }

    /// Whether enough different sort keys of its writes are known to divide them into ranges.
    fn divides(&self) -> bool {
        let mut sorts: Vec<&str> = self.written.iter().map(String::as_str).collect();
        sorts.sort_unstable();
        sorts.dedup();
        sorts.len() >= LEAST_TO_DIVIDE
    }

    /// The sort keys of its writes, as far as they are known, in order.
    pub fn sort_keys(&self) -> Vec<KeyValue<'static>> {
        let read = |text: &String| {
            let value = Value::read(text.as_bytes()).ok()?;
            KeyValue::from_value(&value).map(KeyValue::into_owned)
        };
        let mut sorts: Vec<_> = self.written.iter().filter_map(read).collect();
        sorts.sort_unstable();
        sorts
    }

    /// Whether two loads are of one key, or of one value of an index.
    pub fn is_of(&self, other: &KeyLoad) -> bool {
        self.table == other.table && self.index == other.index && self.key == other.key
    }

    /// So many times the rates; shares and sizes stay.
    #[must_use]
    pub fn times(&self, factor: f64) -> KeyLoad {
        KeyLoad {
            writes: self.writes * factor,
            reads: self.reads * factor,
            writes_drawn: self.writes_drawn.times(factor),
            reads_drawn: self.reads_drawn.times(factor),
            requests: self.requests * factor,
            throttled: self.throttled * factor,
            writes_refused: self.writes_refused.times(factor),
            reads_refused: self.reads_refused.times(factor),
            gets: self.gets * factor,
            slots: self.slots.iter().map(|slot| slot.times(factor)).collect(),
            queries: self.queries * factor,
            clients: self.clients.times(factor),
            ..self.clone()
        }
    }

    /// The mean of this window and another one.
    pub fn mean(&self, other: &KeyLoad) -> KeyLoad {
        let mut sum = self.clone();
        sum.add(other);
        sum.times(0.5)
    }

    /// The units of its reads, or of its writes.
    pub fn units(&self, kind: Kind) -> f64 {
        match kind {
            Kind::Write => self.writes,
            Kind::Read => self.reads,
        }
    }

    /// What of them was drawn.
    pub fn drawn(&self, kind: Kind) -> Drawn {
        match kind {
            Kind::Write => self.writes_drawn,
            Kind::Read => self.reads_drawn,
        }
    }

    /// The shares of its clients in all its units.
    pub fn client_shares(&self) -> Vec<ClientShare> {
        self.clients.shares(self.writes + self.reads)
    }

    /// The units at least.
    pub fn least(&self, kind: Kind) -> f64 {
        (self.units(kind) - self.drawn(kind).below()).max(0.0)
    }

    /// What became of its reads, or of its writes. Where that is not known apart, what became of
    /// all its requests is taken for both.
    pub fn refused(&self, kind: Kind) -> Refused {
        let known = match kind {
            Kind::Write => self.writes_refused,
            Kind::Read => self.reads_refused,
        };
        let is_told = self.writes_refused.requests + self.reads_refused.requests > 0.0;
        if is_told || self.units(kind) <= 0.0 {
            return known;
        }
        Refused { requests: self.requests, throttled: self.throttled, ..Refused::default() }
    }

    /// Takes what a detector counted of the key's reads, or of its writes.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to the range")]
    pub fn take(&mut self, kind: Kind, heat: &KeyHeat) {
        // What may be another key's is not this one's.
        let units = heat.own_units_per_s();
        self.requests += heat.requests_per_s;
        // A share is that of the requests that were counted, each for one: one that is drawn and
        // stands for many would drown those that are all counted at a window's begin.
        let (requests, counted) = (heat.requests_per_s, heat.counted_per_s);
        let of_counted = |refused: Refusals| requests * share(refused.counted_per_s, counted);
        let refused = Refused {
            requests,
            throttled: of_counted(heat.refused.all),
            by_partition: of_counted(heat.refused.by_partition),
            by_index: of_counted(heat.refused.by_index),
            by_limit: of_counted(heat.refused.by_maximum) + of_counted(heat.refused.by_account),
            counted,
        };
        // One drawn request may stand for many, and be the only one that was refused.
        self.throttled += heat.refused.all.least_per_s;
        for shard in &heat.shards {
            self.add_slot(&SlotLoad {
                slot: shard.slot,
                units: shard.units_per_s,
                requests: shard.requests_per_s,
                throttled: shard.requests_per_s * share(shard.counted_per_s.1, shard.counted_per_s.0),
                counted: shard.counted_per_s.0,
            });
        }
        self.item_bytes = self.item_bytes.max(heat.largest_item_bytes);
        self.clients.add(&ClientLoads::from(&*heat.clients));
        match kind {
            Kind::Write => {
                (self.writes, self.writes_drawn) = (units, heat.drawn);
                self.writes_refused = refused;
                self.growing = heat.growing_sort_share.unwrap_or(0.0);
                self.one_item = heat.same_sort_share.unwrap_or(0.0);
                self.added = heat.added_share.unwrap_or(0.0);
                self.written.clone_from(&heat.written);
            }
            Kind::Read => {
                (self.reads, self.reads_drawn) = (units, heat.drawn);
                self.reads_refused = refused;
                self.queries = heat.pages_per_s;
                self.gets = (units - heat.page_units_per_s).max(0.0);
                self.same_page = heat.same_page_share.unwrap_or(0.0);
            }
        }
        // A Query has as many items as its cost says: half a unit for each 4 KB.
        let bytes = (self.reads - self.gets) / self.queries.max(1e-9) * 2.0 * 4_096.0;
        self.page = (bytes / f64::from(self.item_bytes.max(1))).clamp(1.0, MOST_ITEMS) as u32;
    }

    /// The same for advice, of a key with so many shards in a table with or without a local index.
    /// The table has a sort key.
    pub fn observed(&self, shards: u16, local_index: bool) -> Observed {
        Observed {
            writes: self.writes,
            peak_writes: self.writes,
            reads: self.reads,
            write_error: self.writes_drawn.below().min(self.writes),
            read_error: self.reads_drawn.below().min(self.reads),
            gets: self.gets.min(self.reads),
            queries: self.queries,
            page: self.page,
            throttled: if self.requests > 0.0 { (self.throttled / self.requests).min(1.0) } else { 0.0 },
            writes_by_partition: self.writes_refused.share(self.writes_refused.by_partition),
            reads_by_partition: self.reads_refused.share(self.reads_refused.by_partition),
            by_index: self.writes_refused.share(self.writes_refused.by_index),
            beside: 0.0,
            crowded: 0,
            of_index: self.index.is_some(),
            item_bytes: self.item_bytes,
            growing: self.growing,
            one_item: self.one_item,
            same_page: self.same_page,
            divides: self.divides(),
            shards,
            in_ranges: false,
            sort_key: true,
            local_index,
            items: None,
            partitions: None,
        }
    }
}

/// Which share of all a number of them is; 0 where there are none.
fn share(of: f64, all: f64) -> f64 {
    if all > 0.0 { (of / all).clamp(0.0, 1.0) } else { 0.0 }
}

/// The mean of two shares, by weight; 0 where nothing weighs.
fn weighed(shares: [f64; 2], weights: [f64; 2]) -> f64 {
    let all = weights[0] + weights[1];
    if all > 0.0 { (shares[0] * weights[0] + shares[1] * weights[1]) / all } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_thirds_are_the_whole() {
        let third = KeyLoad {
            writes: 1_000.0,
            requests: 1_000.0,
            throttled: 700.0,
            growing: 1.0,
            item_bytes: 300,
            ..KeyLoad::default()
        };
        let mut all = third.clone();
        all.add(&third);
        all.add(&KeyLoad { item_bytes: 500, ..third });
        let seen = all.observed(1, false);
        assert!((seen.writes - 3_000.0).abs() < 1e-9 && (seen.throttled - 0.7).abs() < 1e-9);
        assert_eq!((seen.item_bytes, all.growing), (500, 1.0));
        assert_eq!(weighed([0.5, 0.5], [0.0, 0.0]), 0.0);
    }
}
