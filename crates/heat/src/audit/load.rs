//! What recorded requests asked of one partition key: write and read units by second, and what the
//! requests have in common.
//!
//! Where only a share of the requests is recorded, a second may hold too few of them to tell a
//! rate. Then the rate is that of a minute, or of an hour.
//!
//! Not here: what follows from it ([`traffic_verdict`](super::traffic_verdict)).

use std::collections::HashMap;
use std::hash::BuildHasher;

use foldhash::fast::FixedState;
use heatsink_trace::{Access, Operation};
use serde::Serialize;

use crate::{PARTITION_READS, PARTITION_WRITES};

/// Windows over which rates are taken, in seconds: the first one in which enough was recorded.
const WINDOWS: [i64; 3] = [1, 60, 3_600];
/// A rate tells enough if three standard deviations of its sampling are no more than this share of
/// it.
const CERTAIN: f64 = 0.5;
/// The bytes of a sort key that are compared.
const PREFIX: usize = 40;

/// The requests of one key.
#[derive(Debug, Default)]
pub(super) struct Load {
    seconds: HashMap<i64, Second>,
    /// All of the following count a request as often as it stands for others.
    requests: f64,
    throttled: f64,
    writes: f64,
    growing: f64,
    reads: f64,
    same_page: f64,
    sized: f64,
    bytes: f64,
    largest_sort: Vec<u8>,
    page: u64,
    /// The most items of a page.
    items: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Second {
    writes: Units,
    reads: Units,
    queries: f64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Units {
    units: f64,
    /// Of what drawing requests adds to the units and takes from them.
    variance: f64,
}

/// A rate in the busiest window.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Peak {
    /// Units a second.
    pub units: f64,
    /// Three standard deviations of what a sample adds to them and takes from them; 0 where all
    /// requests are recorded.
    pub error: f64,
    /// Seconds of the window.
    pub window: i64,
    /// Queries a second.
    pub queries: f64,
}

/// What is told of a key by recorded requests.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Asked {
    /// How wrong the write units may be, because only a share of the requests is recorded; 0 where
    /// all are.
    pub error_units: f64,
    /// Read units a second in the busiest window of reads.
    pub peak_read_units: f64,
    /// Seconds of that window.
    pub read_window: i64,
    /// How wrong the read units may be.
    pub read_error_units: f64,
    /// The share of the requests that was throttled.
    pub throttled_share: f64,
}

impl Load {
    /// Takes a request of that second. `hashed`: sort keys are hashes.
    #[allow(clippy::cast_precision_loss, reason = "units of one request, far below 2^52")]
    pub(super) fn add(&mut self, second: i64, access: &Access<'_>, hashed: bool) {
        let weight = f64::from(access.weight);
        let units = access.units as f64 / 1_000.0;
        let of = self.seconds.entry(second).or_default();
        let writes = writes(access.op);
        of.queries += if access.op == Operation::Query { weight } else { 0.0 };
        let taken = if writes { &mut of.writes } else { &mut of.reads };
        taken.units += units * weight;
        taken.variance += weight * (weight - 1.0) * units * units;
        self.requests += weight;
        self.throttled += if access.throttled { weight } else { 0.0 };
        if writes {
            let sort = access.sort.as_deref().unwrap_or_default().as_bytes();
            let sort = sort.get(..PREFIX).unwrap_or(sort);
            // The first is neither: there is nothing to compare it with.
            let above = self.writes > 0.0 && sort > self.largest_sort.as_slice();
            let grows = if hashed { access.grows } else { above };
            self.growing += if grows { weight } else { 0.0 };
            if sort > self.largest_sort.as_slice() {
                self.largest_sort.clear();
                self.largest_sort.extend_from_slice(sort);
            }
            self.writes += weight;
        } else {
            let page = FixedState::with_seed(0).hash_one(access.page.as_deref().unwrap_or_default());
            self.same_page += if self.reads > 0.0 && page == self.page { weight } else { 0.0 };
            self.page = page;
            self.reads += weight;
            self.items = self.items.max(access.items);
        }
        if access.op != Operation::Query && access.bytes > 0 {
            self.bytes += access.bytes as f64 * weight;
            self.sized += weight;
        }
    }

    /// The write units a second in the busiest window, of a recording of so many seconds.
    pub(super) fn peak_writes(&self, recorded: i64) -> Peak {
        self.peak(recorded, |second| second.writes)
    }

    /// The read units a second in the busiest window.
    pub(super) fn peak_reads(&self, recorded: i64) -> Peak {
        self.peak(recorded, |second| second.reads)
    }

    #[allow(clippy::cast_precision_loss, reason = "seconds of a window")]
    fn peak(&self, recorded: i64, of: impl Fn(&Second) -> Units) -> Peak {
        let mut peak = Peak::default();
        for window in WINDOWS {
            let mut sums: HashMap<i64, (Units, f64)> = HashMap::new();
            for (second, counted) in &self.seconds {
                let (units, queries) = sums.entry(second.div_euclid(window)).or_default();
                let taken = of(counted);
                units.units += taken.units;
                units.variance += taken.variance;
                *queries += counted.queries;
            }
            let Some((units, queries)) = sums.into_values().max_by(|a, b| a.0.units.total_cmp(&b.0.units))
            else {
                return peak;
            };
            // A recording that is shorter than the window is all that there is of it.
            let seconds = window.min(recorded.max(1)) as f64;
            peak = Peak {
                units: units.units / seconds,
                error: 3.0 * units.variance.sqrt() / seconds,
                window,
                queries: queries / seconds,
            };
            if peak.error <= peak.units * CERTAIN {
                break;
            }
        }
        peak
    }

    /// The larger of the shares that its writes and its reads take of a partition.
    pub(super) fn filled(&self, recorded: i64) -> f64 {
        let writes = self.peak_writes(recorded).units / PARTITION_WRITES;
        writes.max(self.peak_reads(recorded).units / PARTITION_READS)
    }

    pub(super) fn throttled_share(&self) -> f64 {
        share(self.throttled, self.requests)
    }

    /// The share of writes whose sort key is above all before it.
    pub(super) fn growing(&self) -> f64 {
        share(self.growing, self.writes)
    }

    /// The share of reads that ask for what the read before them asked for.
    pub(super) fn same_page(&self) -> f64 {
        share(self.same_page, self.reads)
    }

    /// Bytes of an item on average; 0 where no size is known.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "`as` cuts to the range")]
    pub(super) fn item_bytes(&self) -> u32 {
        (self.bytes / self.sized.max(1.0)) as u32
    }

    /// The most items of a page.
    pub(super) fn page(&self) -> u32 {
        self.items
    }

    pub(super) fn told(&self, recorded: i64) -> Asked {
        let (writes, reads) = (self.peak_writes(recorded), self.peak_reads(recorded));
        Asked {
            error_units: writes.error,
            peak_read_units: reads.units,
            read_window: reads.window,
            read_error_units: reads.error,
            throttled_share: self.throttled_share(),
        }
    }
}

/// Whether such a request writes.
pub(super) const fn writes(operation: Operation) -> bool {
    matches!(operation, Operation::Put | Operation::Update)
}

fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { (part / whole).clamp(0.0, 1.0) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::*;

    fn put(weight: u32) -> Access<'static> {
        Access {
            us: 0,
            table: Cow::Borrowed("T"),
            index: None,
            op: Operation::Put,
            key: None,
            sort: None,
            grows: false,
            page: None,
            units: 1_000,
            bytes: 0,
            items: 0,
            strong: false,
            throttled: false,
            weight,
        }
    }

    #[test]
    fn a_second_of_few_recorded_requests_tells_no_rate() {
        let mut whole = Load::default();
        (0..50).for_each(|_| whole.add(7, &put(1), false));
        let peak = whole.peak_writes(60);
        assert_eq!((peak.units, peak.error, peak.window), (50.0, 0.0, 1));
        // Three requests of 256 are no 768 a second, but some 13 in the minute.
        let mut few = Load::default();
        (0..3).for_each(|_| few.add(7, &put(256), false));
        let peak = few.peak_writes(3_600);
        assert_eq!((peak.window, peak.units.round()), (3_600, 0.0));
        assert_eq!(few.peak_writes(30).units.round(), 26.0);
        // A hundred are enough for a second.
        let mut many = Load::default();
        (0..100).for_each(|_| many.add(7, &put(32), false));
        let peak = many.peak_writes(60);
        assert_eq!((peak.units, peak.window), (3_200.0, 1));
        assert!((900.0..1_000.0).contains(&peak.error), "{peak:?}");
    }

    #[test]
    fn what_requests_have_in_common_is_told() {
        let mut load = Load::default();
        for nth in 0..10 {
            let sort = format!("2026-{nth}");
            load.add(0, &Access { sort: Some(Cow::Owned(sort)), bytes: 100, ..put(1) }, false);
            let page = Some(Cow::Borrowed("same"));
            load.add(
                0,
                &Access { op: Operation::Query, page, items: 20, throttled: nth > 4, ..put(1) },
                false,
            );
        }
        assert_eq!((load.growing(), load.same_page(), load.throttled_share()), (0.9, 0.9, 0.25));
        assert_eq!((load.item_bytes(), load.page()), (100, 20));
        assert_eq!((load.peak_reads(1).units, load.peak_reads(1).queries), (10.0, 10.0));
        // Hashed sort keys have no order, and say themselves whether they grow.
        let mut hashed = Load::default();
        for grows in [true, false] {
            hashed.add(0, &Access { sort: Some(Cow::Borrowed("f")), grows, ..put(1) }, true);
        }
        assert_eq!(hashed.growing(), 0.5);
    }
}
