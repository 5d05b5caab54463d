//! What a closed window shows, as rates.

use std::cmp::Reverse;
use std::sync::Arc;

use super::bounds::Drawn;
use super::key::ShownKey;
use super::part::{Part, PartName};
use super::refusals::RefusedRates;
use super::shards::ShardCount;
use super::space_saving::Counter;

/// A part of the traffic in one window. All rates are per second of the window as it was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct PartHeat {
    /// Of what.
    pub name: PartName,
    /// Capacity units of all its requests, those that were throttled included: what is asked for,
    /// not what is served.
    pub units_per_s: f64,
    /// Requests; each item of a batch or transaction is one.
    pub requests_per_s: f64,
    /// Those that were throttled.
    pub throttled_per_s: f64,
    /// A key that is not counted has fewer units than this.
    pub floor_units_per_s: f64,
    /// The hottest keys, hottest first.
    pub keys: Vec<KeyHeat>,
}

/// A key in one window.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyHeat {
    /// The key.
    pub key: ShownKey,
    /// Whether that is all of it: where there is no room, keys are cut, and nothing may be done to
    /// a key that is cut.
    pub is_whole: bool,
    /// Capacity units, at most. The true rate is between this less the error and this, give or take
    /// the sampling error.
    pub units_per_s: f64,
    /// How much of that may be other keys'.
    pub error_units_per_s: f64,
    /// How much more or less it may be because accesses were drawn, or estimated: in 99.7 % of
    /// windows no more. 0 where all were counted as the store told.
    pub sampling_error_units_per_s: f64,
    /// What of it was drawn or estimated.
    pub drawn: Drawn,
    /// Requests, at least.
    pub requests_per_s: f64,
    /// How many were counted for these: of those that are drawn, one stands for many.
    pub counted_per_s: f64,
    /// Of the requests: throttled, by reason.
    pub refused: RefusedRates,
    /// Of the requests: for pages of items. The others are for items by their keys.
    pub pages_per_s: f64,
    /// The units of pages.
    pub page_units_per_s: f64,
    /// The share of writes whose sort key is above all before it in this window; `None` where too
    /// few were seen.
    pub growing_sort_share: Option<f64>,
    /// The share of writes whose sort key is that of the write before; `None` where too few were
    /// seen.
    pub same_sort_share: Option<f64>,
    /// Some of the sort keys that were written to, each write as likely: attribute values in JSON.
    /// Empty where few were seen.
    pub written: Vec<String>,
    /// The share of writes that only add to numbers; `None` where none was seen.
    pub added_share: Option<f64>,
    /// The share of reads that ask for the same as the read before; `None` where too few were seen.
    pub same_page_share: Option<f64>,
    /// The largest item that was examined, in bytes; 0 where none was.
    pub largest_item_bytes: u32,
    /// What its shards took, in their order, where that was measured; else empty.
    pub shards: Vec<ShardHeat>,
    /// The clients that take the most of it, at most [`CLIENTS`](super::CLIENTS), the heaviest
    /// first; empty where clients are not known.
    pub clients: Vec<ClientHeat>,
}

/// What one client takes of a key in one window.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientHeat {
    /// Who: its access key.
    pub client: Arc<str>,
    /// Capacity units of those that were counted as the key's own, at least: too few by at most a
    /// fifth of what no client is told for.
    pub least_units_per_s: f64,
}

/// A shard of a key in one window, by the physical requests for it. Their units are not those of
/// the logical requests: a Query of N shards takes at least N times the least.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ShardHeat {
    /// Its slot: the number of its physical key.
    pub slot: u16,
    /// Capacity units.
    pub units_per_s: f64,
    /// Physical requests.
    pub requests_per_s: f64,
    /// Of these: throttled.
    pub throttled_per_s: f64,
    /// How many were counted for the requests, and how many of these were throttled.
    pub counted_per_s: (f64, f64),
}

impl PartHeat {
    /// Of the window of that number, which took so many milliseconds, and in which accesses that
    /// were drawn stood for so many at most; `None` where nothing was counted. `shards`: of the key
    /// of that hash.
    pub(super) fn of<'a>(
        part: &Part,
        (number, millis, weight): (u64, u64, u32),
        keys: usize,
        shards: impl Fn(u64) -> &'a [ShardCount],
    ) -> Option<Self> {
        let window = part.frozen(number)?;
        let rate = Rate(millis);
        let mut hottest: Vec<&Counter> = window.keys.counters().iter().collect();
        hottest.sort_unstable_by_key(|counter| Reverse(counter.units));
        hottest.truncate(keys);
        Some(PartHeat {
            name: part.name.clone(),
            units_per_s: rate.units(window.totals.units),
            requests_per_s: rate.of(window.totals.requests),
            throttled_per_s: rate.of(window.totals.throttled),
            floor_units_per_s: rate.units(window.keys.floor()),
            keys: hottest
                .into_iter()
                .map(|counter| {
                    let clients = window.keys.clients(counter.hash);
                    KeyHeat::of(counter, rate, weight, shards(counter.hash), clients)
                })
                .collect(),
        })
    }
}

impl KeyHeat {
    fn of(
        counter: &Counter,
        rate: Rate,
        weight: u32,
        shards: &[ShardCount],
        clients: Vec<(Arc<str>, u64)>,
    ) -> Self {
        let one = if weight > 1 { rate.units(counter.largest * u64::from(weight)) } else { 0.0 };
        let drawn =
            Drawn { units: rate.units(counter.drawn), variance: rate.variance(counter.variance), one };
        KeyHeat {
            key: counter.key.shown(),
            is_whole: counter.key.is_whole(),
            units_per_s: rate.units(counter.units),
            error_units_per_s: rate.units(counter.error),
            sampling_error_units_per_s: drawn.above().max(drawn.below()),
            drawn,
            requests_per_s: rate.of(counter.requests),
            counted_per_s: rate.of(u64::from(counter.counted)),
            refused: counter.refused.rates(rate.0),
            pages_per_s: rate.of(counter.pages),
            page_units_per_s: rate.units(counter.units_of_pages),
            growing_sort_share: counter.signs.growing_share(),
            same_sort_share: counter.signs.same_sort_share(),
            written: counter.signs.written(),
            added_share: counter.signs.added_share(),
            same_page_share: counter.signs.same_share(),
            largest_item_bytes: counter.signs.largest_item(),
            shards: shards
                .iter()
                .map(|shard| ShardHeat {
                    slot: shard.slot,
                    requests_per_s: rate.of(shard.requests),
                    units_per_s: rate.units(shard.units),
                    throttled_per_s: rate.of(shard.throttled),
                    counted_per_s: (rate.of(shard.counted.0), rate.of(shard.counted.1)),
                })
                .collect(),
            clients: clients
                .into_iter()
                .map(|(client, units)| ClientHeat { client, least_units_per_s: rate.units(units) })
                .collect(),
        }
    }

    /// Capacity units that were counted as this key's own.
    pub fn own_units_per_s(&self) -> f64 {
        (self.units_per_s - self.error_units_per_s).max(0.0)
    }

    /// Capacity units, at least: what is certainly this key's.
    pub fn least_units_per_s(&self) -> f64 {
        (self.own_units_per_s() - self.drawn.below()).max(0.0)
    }

    /// A key of which nothing was counted.
    #[cfg(test)]
    pub(crate) fn silent(key: ShownKey) -> Self {
        KeyHeat {
            key,
            is_whole: true,
            units_per_s: 0.0,
            error_units_per_s: 0.0,
            sampling_error_units_per_s: 0.0,
            drawn: Drawn::default(),
            requests_per_s: 0.0,
            counted_per_s: 0.0,
            refused: RefusedRates::default(),
            pages_per_s: 0.0,
            page_units_per_s: 0.0,
            growing_sort_share: None,
            same_sort_share: None,
            written: Vec::new(),
            added_share: None,
            same_page_share: None,
            largest_item_bytes: 0,
            shards: Vec::new(),
            clients: Vec::new(),
        }
    }
}

/// Per second of a window of so many milliseconds.
#[derive(Clone, Copy)]
struct Rate(u64);

#[allow(clippy::cast_precision_loss, reason = "far below 2^53")]
impl Rate {
    fn of(self, count: u64) -> f64 {
        count as f64 * 1_000.0 / self.0.max(1) as f64
    }

    fn units(self, thousandths: u64) -> f64 {
        thousandths as f64 / self.0.max(1) as f64
    }

    fn variance(self, of_thousandths: f64) -> f64 {
        let millis = self.0.max(1) as f64;
        of_thousandths / millis / millis
    }
}
