//! What a load showed of each key and of all, as JSON for scripts.
//!
//! Not here: the sentences (`print`), the counts (`account`).

use serde::Serialize;

use super::least::least;
use super::measure::{self, Burn};
use super::names::Partitions;
use super::scene::Load;
use super::subject::Subject;
use super::traffic::Offer;
use super::watch::{Change, Seen};
use crate::demo::account::{Count, Interval, SECOND};

/// Seconds in which the load may be late, as a share of all.
const LATE: f64 = 0.1;

/// What was asked for.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Settings {
    /// The load.
    pub load: Load,
    /// Gateways, each with its part of the requests.
    pub gateways: usize,
    /// Seconds that the gateways were up before it.
    pub idle: u64,
    /// Its seconds.
    pub seconds: u64,
    /// How many seconds of the machine one second took.
    pub slow: u32,
    /// Requests a second.
    pub requests: u64,
    /// Items a second: a batch has 25.
    pub items: f64,
    /// Partitions of the table.
    pub partitions: usize,
}

/// What one key had. Moments are in milliseconds since the load began; shares are from 0 to 1.
#[derive(Clone, Debug, Serialize)]
pub struct Key {
    /// The key, or the value.
    pub name: String,
    /// The index whose value it is.
    pub index: Option<&'static str>,
    /// Whether it is to be relieved.
    pub hot: bool,
    /// Capacity units a second that are asked of it.
    pub units: f64,
    /// The first refusal.
    pub first_refusal_ms: Option<u32>,
    /// From its first refusal until less than 1 % of each of three seconds was refused.
    pub relief_ms: Option<u32>,
    /// The share refused from its first refusal until the first change was in force.
    pub refused_before: f64,
    /// The share refused in the last five seconds.
    pub refused_at_end: f64,
    /// The share refused in the longest time, over five seconds, in which it was worse by over two
    /// points than before the first change.
    pub made_worse: Option<f64>,
    /// Its shards at the end.
    pub shards: u16,
    /// The least number of shards that carry it, laid where it is coolest.
    pub least: Option<u16>,
    /// What the gateways said of it last.
    pub said: Option<String>,
    /// Its items, counted.
    pub count: Count,
    /// Offered, accepted and refused items, by second.
    pub seconds: Vec<Interval>,
}

impl Key {
    /// Whether it burned and was not relieved.
    pub fn burns(&self) -> bool {
        self.first_refusal_ms.is_some() && self.relief_ms.is_none()
    }
}

/// Everything.
#[derive(Clone, Debug, Serialize)]
pub struct Story {
    /// What was asked for.
    pub settings: Settings,
    /// The share of the seconds in which less than nine tenths of the load were sent.
    pub late_share: f64,
    /// From the first refusal of a hot key until all that burned were relieved; none if one was not,
    /// or none burned.
    pub relief_ms: Option<u32>,
    /// When the first decision was on record, from the first refusal of a hot key on.
    pub decided_ms: Option<u32>,
    /// How many keys a change made worse.
    pub made_worse: usize,
    /// Cool keys that were changed.
    pub changed_cool: Vec<String>,
    /// Shards ÷ least shards of the hot keys that were changed: median and worst.
    pub shards_to_least: Option<[f64; 2]>,
    /// Hot keys that still burned at the end, and of which nothing was said.
    pub left_without_a_word: Vec<String>,
    /// The keys, hot ones first.
    pub keys: Vec<Key>,
    /// What was decided.
    pub changes: Vec<Change>,
    /// All items, counted.
    pub count: Count,
}

impl Story {
    /// Sums everything up. `tables` and `indexes` are the partitions of the table and of its index.
    pub fn new(
        settings: Settings,
        offer: &Offer,
        partitions: &Partitions,
        seen: Seen,
        counts: &[Count],
    ) -> Story {
        let Seen { changes, said, .. } = seen;
        let slots = |subject: &Subject| {
            let of = |change: &&Change| {
                change.key == subject.name
                    && change.index.as_deref() == subject.index()
                    && change.in_force_ms.is_some()
            };
            let first = |shards: u16| (0..shards.max(1)).collect::<Vec<u16>>();
            let change = changes.iter().rev().find(of);
            change.map_or_else(
                || first(1),
                |change| change.slots.clone().unwrap_or_else(|| first(change.shards)),
            )
        };
        let shards = |subject: &Subject| u16::try_from(slots(subject).len()).unwrap_or(u16::MAX);
        let changed = changes.iter().filter_map(|change| change.in_force_ms).min();
        let loads = Loads::new(offer.subjects(), partitions, slots);
        let end = u32::try_from(settings.seconds * 1_000).unwrap_or(u32::MAX);
        let mut keys = Vec::new();
        for (nth, subject) in offer.subjects().iter().enumerate() {
            let intervals = offer.account().intervals(nth, settings.seconds);
            let burn = measure::burn(&intervals);
            let relief = burn.and_then(|Burn { first_refusal, relieved }| Some(relieved? - first_refusal));
            let first = burn.map(|burn| burn.first_refusal);
            keys.push(Key {
                name: subject.name.clone(),
                index: subject.index(),
                hot: subject.hot,
                units: subject.units_per_second(),
                first_refusal_ms: first,
                relief_ms: relief,
                refused_before: measure::share(&intervals, first.unwrap_or(end), changed.unwrap_or(end)),
                refused_at_end: measure::share(&intervals, end.saturating_sub(5_000), end),
                made_worse: changed.and_then(|changed| measure::made_worse(&intervals, changed)),
                shards: shards(subject),
                least: subject.hot.then(|| loads.least(nth, subject)).flatten(),
                said: said.get(&(subject.index().map(str::to_owned), subject.name.clone())).cloned(),
                count: counts.get(nth).copied().unwrap_or_default(),
                seconds: intervals.chunks(SECOND).map(Interval::sum).collect(),
            });
        }
        keys.sort_by_key(|key| !key.hot);
        Story::summed(settings, keys, changes)
    }

    fn summed(settings: Settings, keys: Vec<Key>, changes: Vec<Change>) -> Story {
        let burnt = || keys.iter().filter(|key| key.hot && key.first_refusal_ms.is_some());
        let first = burnt().filter_map(|key| key.first_refusal_ms).min();
        let relieved: Option<Vec<u32>> =
            burnt().map(|key| Some(key.first_refusal_ms? + key.relief_ms?)).collect();
        let last = relieved.and_then(|moments| moments.into_iter().max());
        let since = |moment: u32| first.map(|first| moment.saturating_sub(first));
        let mut ratios: Vec<f64> = keys
            .iter()
            .filter(|key| key.hot && changes.iter().any(|change| change.key == key.name))
            .filter_map(|key| Some(f64::from(key.shards) / f64::from(key.least?)))
            .collect();
        ratios.sort_by(f64::total_cmp);
        let mut count = Count::default();
        keys.iter().for_each(|key| count.add(key.count));
        let names = |of: &dyn Fn(&&Key) -> bool| keys.iter().filter(of).map(|key| key.name.clone()).collect();
        let mut sent = vec![0; keys.first().map_or(0, |key| key.seconds.len())];
        for key in &keys {
            sent.iter_mut().zip(&key.seconds).for_each(|(sum, second)| *sum += second.offered);
        }
        Story {
            late_share: measure::late_share(&sent, settings.items),
            settings,
            relief_ms: last.and_then(since),
            decided_ms: changes.iter().map(|change| change.decided_ms).min().and_then(since),
            made_worse: keys.iter().filter(|key| key.made_worse.is_some()).count(),
            changed_cool: names(&|key| !key.hot && changes.iter().any(|change| change.key == key.name)),
            shards_to_least: ratios
                .get(ratios.len() / 2)
                .copied()
                .zip(ratios.last().copied())
                .map(Into::into),
            left_without_a_word: names(&|key| key.hot && key.burns() && key.said.is_none()),
            keys,
            changes,
            count,
        }
    }

    /// Why the load did not show what it is to show, in words; `None` if it did.
    pub fn fault(&self) -> Option<String> {
        if self.late_share > LATE {
            return Some(format!(
                "the machine could not send the load in {:.0} % of its seconds; ask for a higher --slow",
                self.late_share * 100.0
            ));
        }
        if !self.count.is_exact() {
            return Some("what was written is not what was found".to_owned());
        }
        let silent = self.left_without_a_word.len();
        (silent > 0).then(|| format!("{silent} keys still burned at the end, and nothing was said of them"))
    }
}

/// What lies in each partition of the table and of the index, in units of the ceiling, at the end.
struct Loads {
    table: [Vec<Vec<(usize, f64)>>; 2],
    index: Vec<Vec<(usize, f64)>>,
}

impl Loads {
    fn new(subjects: &[Subject], partitions: &Partitions, slots: impl Fn(&Subject) -> Vec<u16>) -> Self {
        let empty = || vec![Vec::new(); partitions.count()];
        let mut loads = Loads { table: [empty(), empty()], index: empty() };
        for (nth, subject) in subjects.iter().enumerate() {
            let slots = slots(subject);
            let each = subject.units_per_second() / slots.len().max(1) as f64;
            for slot in slots {
                let partition = partitions.of(&subject.name, slot);
                if let Some(within) = loads.of_mut(subject).get_mut(partition) {
                    within.push((nth, each));
                }
            }
        }
        loads
    }

    fn of_mut(&mut self, subject: &Subject) -> &mut Vec<Vec<(usize, f64)>> {
        match subject.index() {
            Some(_) => &mut self.index,
            None => &mut self.table[usize::from(subject.is_read())],
        }
    }

    fn least(&self, nth: usize, subject: &Subject) -> Option<u16> {
        let partitions = match subject.index() {
            Some(_) => &self.index,
            None => &self.table[usize::from(subject.is_read())],
        };
        let others = partitions
            .iter()
            .map(|within| within.iter().filter(|(other, _)| *other != nth).map(|(_, units)| units).sum());
        let ceiling = if subject.is_read() {
            heatsink_physics::PARTITION_READS
        } else {
            heatsink_physics::PARTITION_WRITES
        };
        #[allow(clippy::cast_precision_loss, reason = "thousands")]
        least(subject.units_per_second(), &others.collect::<Vec<f64>>(), ceiling as f64)
    }
}
