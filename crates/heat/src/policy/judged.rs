//! One key at one look: what burned in its windows, of which kind, and whether that is certain.
//!
//! Not here: which other keys lie on its partition (`crowds`), what is done (`plan`).

use std::collections::HashMap;

use heatsink_env::MonotonicInstant;

use super::crowds::Piece;
use super::decision::KeyName;
use super::facts::{KeyFacts, Units};
use super::hot::{Hot, ceiling, over};
use super::placing::Ground;
use super::planned::FILLED;
use super::share::Share;
use crate::advice::{Each, Finding, Observed, Split, Spread, THROTTLED, asked_of, fewest_shards, is_alone};
use crate::detect::Kind;
use crate::{KeyLoad, SlotLoad};

/// Fewer requests a second of other keys say nothing about the table.
const FEW: f64 = 20.0;
/// Read units a second that a partition serves at most: eventually consistent ones, by its leader and
/// its followers (docs/explain/partitions.md#two-gates).
const FOLLOWED_READS: f64 = 4_500.0;
/// Seconds of its ceiling that a partition saves while it is asked for less.
const SAVED_SECONDS: f64 = 0.5;
/// From this share on the load is one item's, or one page's.
const MOST: f64 = 0.5;

/// A key that burns.
pub(super) struct Judged {
    pub(super) name: KeyName,
    pub(super) facts: KeyFacts,
    pub(super) hot: Hot,
    pub(super) kind: Kind,
    /// The share that a partition refuses, of that kind.
    pub(super) refused: Share,
    /// Whether what refuses is certainly no partition.
    pub(super) limit: bool,
    pub(super) seen: Observed,
}

/// Requests of each table a second, and those that were throttled.
pub(super) type Totals = HashMap<String, (f64, f64)>;

/// The totals of the loads of tables.
pub(super) fn totals(loads: &[KeyLoad]) -> Totals {
    let mut totals = Totals::new();
    for load in loads.iter().filter(|load| load.index.is_none()) {
        let of = totals.entry(load.table.clone()).or_default();
        of.0 += load.requests;
        of.1 += load.throttled;
    }
    totals
}

impl Judged {
    pub(super) fn of(load: &KeyLoad, facts: KeyFacts, hot: Hot, totals: &Totals) -> Self {
        let shards = facts.slots.len();
        let found = |kind| {
            let (share, limit) = by_partition(&hot.mean, kind, shards, others(load, totals));
            (kind, hot.share(kind, share), limit)
        };
        let (writes, reads) = (found(Kind::Write), found(Kind::Read));
        let weight = |of: &(Kind, Share, bool)| (of.1.least(), over(&hot.mean, of.0, shards));
        let (kind, refused, limit) = if weight(&reads) > weight(&writes) { reads } else { writes };
        let mut seen = hot.mean.observed(u16::try_from(shards).unwrap_or(u16::MAX), facts.local_index);
        (seen.sort_key, seen.items) = (facts.sort_key, facts.items);
        seen.in_ranges = facts.split_points.is_some();
        // Who fills the partition is asked of the kind that burns. What is refused of the other kind
        // may be refused because of other keys, and says nothing of what this one asks for.
        (seen.writes_by_partition, seen.reads_by_partition) = match kind {
            Kind::Write => (refused.share, 0.0),
            Kind::Read => (0.0, refused.share),
        };
        let [writes, reads] = [Kind::Write, Kind::Read].map(|kind| most_asked(&hot, kind, shards));
        if seen.writes > writes {
            (seen.writes, seen.peak_writes) = (writes, writes);
        }
        if seen.reads > reads {
            let less = reads / seen.reads;
            (seen.reads, seen.gets, seen.queries) = (reads, seen.gets * less, seen.queries * less);
        }
        Judged { name: KeyName::of(load), facts, hot, kind, refused, limit, seen }
    }

    /// Its shards, or the whole key, as pieces. `key`: its place. `may`: whether it may change now.
    pub(super) fn pieces(
        &self,
        key: usize,
        may: bool,
        is_new: bool,
        ground: Option<&Ground<'_>>,
    ) -> Vec<Piece> {
        let (slots, load) = (&self.facts.slots, &self.hot.mean);
        #[allow(clippy::cast_precision_loss, reason = "at most 1,000")]
        let count = slots.len().max(1) as f64;
        let measured: Vec<_> = load.slots.iter().filter(|one| slots.contains(&one.slot)).collect();
        let units: f64 = measured.iter().map(|one| one.units).sum();
        let requests: f64 = measured.iter().map(|one| one.requests).sum();
        let throttled: f64 = measured.iter().map(|one| one.throttled).sum();
        let is_over = over(load, self.kind, slots.len()) >= 1.0;
        // Values of indexes are not known of all their writes.
        let is_known = self.name.index.is_none() && load.refused(self.kind).counted > 0.0;
        let most = load.units(self.kind) + load.drawn(self.kind).above();
        // What slots were refused has no reason with it: that of the key holds for them.
        let known = self.refused.share >= THROTTLED / 10.0 && throttled > 0.0;
        let of = |shard: usize, slot: u16| {
            let one = measured.iter().find(|one| one.slot == slot).filter(|_| units > 0.0 && slots.len() > 1);
            let (part, refused) = match one {
                Some(one) if known && requests > 0.0 => {
                    let share = (one.throttled / one.requests.max(1e-9)).min(1.0);
                    let measured_on = match one.counted {
                        counted if counted > 0.0 => counted * self.hot.windows.max(1.0),
                        _ => self.refused.measured_on * one.requests / requests,
                    };
                    (one.units / units, Share { share, measured_on })
                }
                Some(one) => (one.units / units, Share::default()),
                None if units > 0.0 && slots.len() > 1 => (0.0, Share::default()),
                None => (1.0 / count, self.refused),
            };
            Piece {
                key,
                shard,
                is_whole: slots.len() == 1,
                units: load.units(self.kind) * part,
                most_units: is_known.then_some(most * part),
                refused,
                burns: !self.limit && (refused.least() >= THROTTLED || is_over),
                can_leave: may && self.facts.names_slots,
                can_grow: may && (self.is_spread() || self.can_count()),
                is_new,
                partition: ground.map(|ground| ground.partition(&self.name.key, slot)),
            }
        };
        slots.iter().enumerate().map(|(shard, slot)| of(shard, *slot)).collect()
    }

    /// Whether it is certain that a value of an index refuses its writes, and no partition of the
    /// table.
    pub(super) fn is_by_index(&self) -> bool {
        self.seen.by_index > self.refused.share
            && self.hot.share(Kind::Write, self.seen.by_index).least() >= THROTTLED
    }

    /// Whether nothing is known yet of which of its shards burn: they are measured from the window
    /// on after which the layout had them.
    pub(super) fn awaits_slots(&self) -> bool {
        let slots = &self.facts.slots;
        let is_measured = |slot: &SlotLoad| slots.contains(&slot.slot);
        slots.len() > 1 && self.name.index.is_none() && !self.hot.mean.slots.iter().any(is_measured)
    }

    /// Whether it is certain that it is refused at all.
    pub(super) fn is_certain(&self) -> bool {
        self.hot.share(self.kind, self.seen.throttled).least() >= THROTTLED
    }

    /// Whether more shards spread it: it is neither one item's load nor one page's.
    pub(super) fn is_spread(&self) -> bool {
        match self.kind {
            Kind::Write => self.seen.one_item < MOST && self.seen.sort_key,
            Kind::Read => self.seen.same_page < MOST && self.seen.sort_key,
        }
    }

    /// Whether it is a whole key that is to get ranges of its sort key, and not shards by a hash.
    pub(super) fn gets_ranges(&self) -> bool {
        let is_whole = self.facts.slots == [0] && self.facts.split_points.is_none();
        let shards = fewest_shards(&self.seen, FILLED).unwrap_or(u16::MAX);
        is_whole
            && self.facts.settings.ranges
            && self.facts.names_slots
            && Spread::of(&self.seen, shards) == Spread::Range
    }

    /// Units a second of its kind that it asks for.
    pub(super) fn asked(&self) -> f64 {
        match self.kind {
            Kind::Write => self.seen.asked_writes(),
            Kind::Read => self.seen.asked_reads(),
        }
    }

    /// Whether it is one item that a counter takes.
    pub(super) fn can_count(&self) -> bool {
        self.facts.settings.counters
            && self.name.index.is_none()
            && self.seen.one_item >= MOST
            && self.hot.mean.added >= MOST
            && self.kind == Kind::Write
    }

    /// Whether DynamoDB can part what burns by itself: of a key as clients made it, between two of
    /// its sort keys. One page or item it cannot part.
    pub(super) fn splits(&self) -> bool {
        self.facts.slots == [0] && self.is_spread() && Split::of(&self.seen) == Split::InMinutes
    }

    /// What burns.
    pub(super) fn finding(&self) -> Finding {
        if self.is_by_index() {
            return Finding::IndexValue;
        }
        if self.limit { Finding::Limit } else { Finding::of(&self.seen) }
    }

    /// What its partition seems to be asked for beyond what was counted of the key, by the share
    /// that it refuses.
    pub(super) fn unexplained(&self) -> f64 {
        let asked = asked_of(ceiling(self.kind), self.refused.share);
        (asked - self.hot.mean.units(self.kind)).max(0.0)
    }

    /// Since when it burns.
    pub(super) fn since(&self) -> MonotonicInstant {
        self.hot.since
    }

    /// What each of so many shards is asked for.
    pub(super) fn each(&self, shards: u16) -> Units {
        let Each { writes, reads } = Each::of(&self.seen, shards);
        Units { writes, reads }
    }
}

/// Units a second that a key asks for at most: its partitions serve no more than they can, and what
/// they saved in half a second before, and what they refuse is known as a share. What was counted of
/// few draws may be twice as much.
fn most_asked(hot: &Hot, kind: Kind, shards: usize) -> f64 {
    let load = &hot.mean;
    #[allow(clippy::cast_precision_loss, reason = "at most 1,000")]
    let served = shards.max(1) as f64
        * match kind {
            Kind::Write => ceiling(kind),
            Kind::Read => FOLLOWED_READS,
        };
    let refused = load.refused(kind);
    let share = hot.share(kind, refused.share(refused.throttled));
    let saved = SAVED_SECONDS / hot.windows.max(1.0);
    asked_of(served * (1.0 + saved), share.share + share.deviation()).max(load.least(kind))
}

/// Which share of the table's other keys' requests is throttled; `None` where there are few.
fn others(load: &KeyLoad, totals: &Totals) -> Option<f64> {
    let (requests, throttled) = totals.get(&load.table)?;
    let own = if load.index.is_none() { (load.requests, load.throttled) } else { (0.0, 0.0) };
    let (requests, throttled) = (requests - own.0, throttled - own.1);
    (requests >= FEW).then(|| (throttled / requests).clamp(0.0, 1.0))
}

/// Which share of a key's requests a partition refuses, and whether what refuses is another limit.
///
/// Members of batches and transactions are refused without a reason. Then a partition is taken to
/// refuse where the key alone asks for what fills one, or where other keys of the table are not
/// refused.
fn by_partition(load: &KeyLoad, kind: Kind, shards: usize, others: Option<f64>) -> (f64, bool) {
    let refused = load.refused(kind);
    let told = refused.share(refused.by_partition);
    let limited = refused.share(refused.by_limit);
    // The limit of a table refuses all its keys alike: another place helps none of them.
    if limited >= THROTTLED && limited > told {
        return (limited, true);
    }
    let untold =
        refused.share(refused.throttled - refused.by_partition - refused.by_index - refused.by_limit);
    if untold < THROTTLED {
        return (told, false);
    }
    if told >= THROTTLED {
        return (told + untold, false);
    }
    let is_filled = is_alone(over(load, kind, shards) * ceiling(kind), asked_of(ceiling(kind), untold));
    let is_partition = is_filled || others.is_some_and(|others| others < untold / 2.0);
    if is_partition { (untold, false) } else { (told, true) }
}
