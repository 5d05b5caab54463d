//! What is remembered of one partition key while items or writes are added.

use std::collections::HashMap;
use std::hash::BuildHasher;

use foldhash::fast::FixedState;
use heatsink_dynamo::capacity::write_units;
use heatsink_layout::SortKey;

use heatsink_trace::Access;

use super::load::{self, Load};
use super::recorded::Recorded;
use super::report::Key;
use super::stamp::{self, Stamp};

/// A write that a stream record tells of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Write {
    /// When, in seconds since 1970.
    pub second: i64,
    /// Bytes of the item before; 0 if there was none.
    pub before: usize,
    /// Bytes of the item after; 0 if there is none.
    pub after: usize,
    /// Whether the record has an image. If not, the write counts as one unit.
    pub sized: bool,
}

/// The items of one partition key, the writes of it, or the requests for it.
#[derive(Debug, Default)]
pub(super) struct Collected {
    /// Items, writes, or requests.
    pub items: u64,
    /// Their bytes.
    pub bytes: u64,
    /// By how many bytes the key has grown: of items, their bytes.
    pub grown: i64,
    /// Write units by first second and length of a window of time.
    written: HashMap<(i64, i64), f64>,
    /// Those whose sort key holds a time.
    pub timed: u64,
    /// The text before the time, if it is the same in all of them.
    pub prefix: Option<String>,
    pub prefixes_differ: bool,
    /// Whether the times are numbers of milliseconds.
    pub milliseconds: bool,
    /// The item that most writes may go to, by its sort key, and by how many writes it leads all
    /// others together (Boyer and Moore's vote).
    candidate: u64,
    lead: u64,
    /// Writes of known items: those that the vote is of.
    voted: u64,
    /// Of recorded requests.
    pub load: Option<Box<Load>>,
}

impl Collected {
    pub(super) fn add(&mut self, sort: Option<SortKey<'_>>, bytes: usize) {
        self.count(bytes, bytes, 0);
        if let Some(stamp) = sort.and_then(|sort| self.time(sort)) {
            *self.written.entry((stamp.second, stamp.window)).or_default() += write_units(0, bytes);
        }
    }

    pub(super) fn add_write(&mut self, sort: Option<SortKey<'_>>, write: Write) {
        self.count(write.before.max(write.after), write.after, write.before);
        *self.written.entry((write.second, 1)).or_default() += write_units(write.before, write.after);
        if let Some(sort) = sort {
            self.time(sort);
        }
        let item = match sort {
            Some(SortKey::S(text) | SortKey::N(text)) => FixedState::with_seed(0).hash_one(text),
            Some(SortKey::B(bytes)) => FixedState::with_seed(0).hash_one(bytes),
            None => 0,
        };
        self.vote(item);
    }

    /// Takes a recorded request, as often as it stands for others.
    pub(super) fn add_access(&mut self, second: i64, access: &Access<'_>, hashed: bool) {
        let weight = u64::from(access.weight);
        self.items += weight;
        self.bytes = self.bytes.saturating_add(access.bytes.saturating_mul(weight));
        if load::writes(access.op) {
            self.vote(FixedState::with_seed(0).hash_one(access.sort.as_deref().unwrap_or_default()));
        }
        self.load.get_or_insert_default().add(second, access, hashed);
    }

    fn vote(&mut self, item: u64) {
        if self.lead == 0 {
            self.candidate = item;
        }
        self.lead = if self.candidate == item { self.lead + 1 } else { self.lead - 1 };
        self.voted += 1;
    }

    fn count(&mut self, bytes: usize, after: usize, before: usize) {
        let number = |bytes| i64::try_from(bytes).unwrap_or(i64::MAX);
        self.items += 1;
        self.bytes += u64::try_from(bytes).unwrap_or(u64::MAX);
        self.grown += number(after) - number(before);
    }

    /// Notes the time in a sort key, and where it stands.
    fn time(&mut self, sort: SortKey<'_>) -> Option<Stamp> {
        let stamp = stamp::of(sort)?;
        self.timed += 1;
        let before = match sort {
            SortKey::S(text) => text.get(..stamp.from).unwrap_or_default(),
            SortKey::N(number) => {
                self.milliseconds = number.split('.').next().is_some_and(|whole| whole.len() > 11);
                ""
            }
            SortKey::B(_) => "",
        };
        match &self.prefix {
            None => self.prefix = Some(before.to_owned()),
            Some(known) => self.prefixes_differ |= known != before,
        }
        Some(stamp)
    }

    /// Whether at least half of the writes went to one item.
    pub(super) fn is_one_item(&self) -> bool {
        // A lead of none proves nothing; half of all writes do: the item has them all, and half of
        // the rest.
        self.lead * 2 >= self.voted && self.lead > 1
    }

    /// Write units per second in its busiest window, and the seconds of that window.
    #[allow(clippy::cast_precision_loss, reason = "spans of time, far below 2^52 seconds")]
    pub(super) fn peak(&self) -> Option<(f64, i64)> {
        let rate = |(window, units): (&(i64, i64), &f64)| (units / window.1 as f64, window.1);
        self.written.iter().map(rate).max_by(|a, b| a.0.total_cmp(&b.0))
    }

    /// Of recorded requests: the share that they take of a partition.
    pub(super) fn filled(&self, recorded: Option<Recorded<'_>>) -> Option<f64> {
        Some(self.load.as_deref()?.filled(recorded?.seconds))
    }

    /// The first second, and the one behind the last.
    pub(super) fn span(&self) -> Option<(i64, i64)> {
        let first = self.written.keys().map(|(second, _)| *second).min()?;
        let last = self.written.keys().map(|(second, window)| second + window).max()?;
        Some((first, last))
    }

    #[allow(clippy::cast_precision_loss, reason = "spans of time, far below 2^52 seconds")]
    pub(super) fn described(&self, key: String, recorded: Option<Recorded<'_>>) -> Key {
        let load = self.load.as_deref().zip(recorded);
        let writes = load.map(|(load, of)| load.peak_writes(of.seconds));
        let peak = writes.map(|peak| (peak.units, peak.window)).or_else(|| self.peak());
        let days = |(first, last): (i64, i64)| ((last - first) as f64 / 86_400.0).max(1.0);
        Key {
            key,
            items: self.items,
            bytes: self.bytes,
            peak_units: peak.map(|(units, _)| units),
            window: peak.map(|(_, window)| window),
            days: self.span().map(days),
            asked: load.map(|(load, of)| load.told(of.seconds)),
        }
    }
}
