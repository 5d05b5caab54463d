//! What to do about a pattern of keys, and why.

use serde::Serialize;

use super::{Collected, Key, Sample, pattern};
use crate::{Asked, DEFAULT_RISK, PARTITION_WRITES, advise};

/// A key is near a partition's ceiling from half of it on, because the items that still exist understate what was written.
const NEAR: f64 = PARTITION_WRITES / 2.0;
/// A collection of this size should be bounded: DynamoDB's partitions hold 10 GB, and a read of old items pages through all of it.
const LARGE: f64 = 1e9;
/// The size to which a collection may grow in a year without buckets.
const LARGE_IN_A_YEAR: f64 = 1e10;
/// A key that holds this share of a table's items is worth measuring.
const SHARE: f64 = 0.1;

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// Spread the keys: one of them was written nearly as fast as a partition accepts, or faster.
    Shard,
    /// Bound the size of the collections by buckets of time. This does not raise the rate.
    Bucket,
    /// The items do not show the rate: measure it.
    Measure,
    /// Do not shard.
    Leave,
}

impl Action {
    /// In words.
    pub const fn words(self) -> &'static str {
        match self {
            Action::Shard => "shard",
            Action::Bucket => "bucket",
            Action::Measure => "measure",
            Action::Leave => "do not shard",
        }
    }
}

/// What to do about a pattern.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    /// What.
    pub action: Action,
    /// Why.
    pub reason: String,
    /// A rule for heatsink.toml, where one is proposed.
    pub rule: Option<String>,
}

/// What is known of a pattern.
pub(super) struct Seen<'a> {
    pub table: &'a str,
    pub pattern: &'a str,
    pub keys: usize,
    pub largest: &'a Key,
    pub busiest: Option<(&'a Key, &'a Collected)>,
    /// Items of the whole table, or of the sample.
    pub all: u64,
    /// Where not all of the table was read.
    pub sample: Option<Sample>,
}

#[allow(clippy::cast_precision_loss, reason = "items and bytes, far below 2^52")]
pub(super) fn of(seen: &Seen<'_>) -> Verdict {
    let mut verdict = of_what_was_read(seen);
    if let Some(sample) = seen.sample {
        verdict.reason += &match (sample.share(), verdict.action) {
            (_, Action::Shard) => ". That is a sample: it may need more".to_owned(),
            (Some(share), _) => format!(
                ". That is a sample: a key was in it with a chance of about {}, and those that were not may be hotter",
                chance(share)
            ),
            (None, _) => ". That is a sample, and keys that were not in it may be hotter".to_owned(),
        };
    }
    verdict
}

/// A share from 0 to 1 in percent, never rounded to all or nothing.
fn chance(share: f64) -> String {
    let percent = share * 100.0;
    if percent < 1.0 { "less than 1 %".to_owned() } else { format!("{:.0} %", percent.min(99.0)) }
}

#[allow(clippy::cast_precision_loss, reason = "items and bytes, far below 2^52")]
fn of_what_was_read(seen: &Seen<'_>) -> Verdict {
    let Some((busiest, of, peak)) = seen.busiest.and_then(|(key, of)| Some((key, of, key.peak_units?)))
    else {
        return unknown(seen);
    };
    let subject = if seen.keys == 1 {
        "its one key".to_owned()
    } else {
        format!("{}, of {} keys,", busiest.key, seen.keys)
    };
    let took = format!("{} {}", units(peak), within(busiest.window));
    // All that is there bounds what was written once; a sample bounds nothing from above.
    let bound = if seen.sample.is_some() { "at least" } else { "at most" };
    // Only keys whose items all have a time, in the same place, can be laid out by it.
    let by_time = of.timed == of.items && !of.prefixes_differ;
    let a_day = busiest.bytes as f64 / busiest.days.unwrap_or(1.0);
    let grows = a_day * 365.0 >= LARGE_IN_A_YEAR || seen.largest.bytes as f64 >= LARGE;
    if peak >= NEAR {
        let item = (busiest.bytes / busiest.items.max(1)).clamp(1, 409_600);
        let item = u32::try_from(item).unwrap_or(u32::MAX);
        // What is still there understates what was written, so a key that nears the ceiling is taken to reach it.
        let writes = (peak.max(PARTITION_WRITES) / crate::units_per_write(item)).ceil();
        let advice = advise(Asked {
            writes,
            peak: writes,
            reads: 0.0,
            item_bytes: item,
            page: 100,
            partitions: None,
            risk: DEFAULT_RISK,
        });
        let shards = advice.recommended.map(|row| row.shards);
        let buckets = by_time && grows;
        let mut reason = format!("{subject} took {took}, and one partition takes 1,000 a second");
        if by_time {
            reason += ". Buckets of time alone would not help: all that is written now goes to the newest";
        }
        reason += &match shards {
            Some(shards) => {
                format!(
                    ". {shards} shards is what `heatsink shards --writes {writes} --item-bytes {item}` recommends"
                )
            }
            None => ". No shard count is enough: spread it over several keys of your own".to_owned(),
        };
        return Verdict {
            action: Action::Shard,
            reason,
            rule: shards.map(|shards| rule(seen, buckets.then_some((of, a_day)), Some(shards))),
        };
    }
    if grows && by_time {
        let reason = format!(
            "{subject} took {bound} {took} of the 1,000 that a partition takes, and grows by {} a day. Buckets bound its size; \
             they lift no rate, and none has to be",
            size(a_day)
        );
        return Verdict { action: Action::Bucket, reason, rule: Some(rule(seen, Some((of, a_day)), None)) };
    }
    let reason = format!(
        "{subject} took {bound} {took} of the 1,000 that a partition takes, and the largest{} holds {}: shards would make every listing \
         dearer and nothing faster",
        if seen.sample.is_some() { " of those read" } else { "" },
        size(seen.largest.bytes as f64)
    );
    Verdict { action: Action::Leave, reason, rule: None }
}

/// Sort keys without a time say nothing of the rate.
#[allow(clippy::cast_precision_loss, reason = "items, far below 2^52")]
fn unknown(seen: &Seen<'_>) -> Verdict {
    let share = seen.largest.items as f64 / seen.all.max(1) as f64;
    if seen.keys > 1 && share < SHARE {
        let reason = format!(
            "{} keys, the largest with {:.1} % of the items{}: spread already. Single items that are updated all the time leave no trace here",
            seen.keys,
            share * 100.0,
            read(seen)
        );
        return Verdict { action: Action::Leave, reason, rule: None };
    }
    let reason = format!(
        "{} holds {:.0} % of the items{}, and no sort key of it tells when it was written. What counts is its rate: if it nears 1,000 write \
         units a second, `heatsink shards --writes RATE` says over how many keys",
        if seen.keys == 1 { "its one key".to_owned() } else { seen.largest.key.clone() },
        share * 100.0,
        read(seen)
    );
    Verdict { action: Action::Measure, reason, rule: None }
}

fn read(seen: &Seen<'_>) -> &'static str {
    if seen.sample.is_some() { " read" } else { "" }
}

fn rule(seen: &Seen<'_>, buckets: Option<(&Collected, f64)>, shards: Option<u16>) -> String {
    let mut rule = format!(
        "[[rule]]\ntable    = {}\nkeys     = {}\n",
        quoted(seen.table),
        quoted(&pattern::glob(seen.pattern))
    );
    match buckets {
        None => rule += "strategy = \"calculated\"\n",
        Some((of, a_day)) => {
            let bucket = if a_day * 30.0 > LARGE { "day" } else { "month" };
            rule += &format!("strategy = \"bucket\"\nbucket   = \"{bucket}\"\n");
            if let Some(prefix) = of.prefix.as_deref().filter(|prefix| !prefix.is_empty()) {
                rule += &format!("time     = {{ prefix = {} }}\n", quoted(prefix));
            } else if of.milliseconds {
                rule += "time     = { epoch = \"milliseconds\" }\n";
            }
        }
    }
    if let Some(shards) = shards {
        rule += &format!("shards   = {shards}\n");
    }
    rule
}

/// A text as TOML writes it.
fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => quoted += &format!("\\u{:04X}", u32::from(c)),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

fn units(peak: f64) -> String {
    if peak < 0.1 { "under 0.1 write units".to_owned() } else { format!("{peak:.1} write units") }
}

fn within(window: Option<i64>) -> &'static str {
    match window {
        Some(60) => "a second in its busiest minute",
        Some(3_600) => "a second in its busiest hour",
        Some(86_400) => "a second on its busiest day",
        _ => "in its busiest second",
    }
}

pub(super) fn size(bytes: f64) -> String {
    for (unit, of) in [("GB", 1e9), ("MB", 1e6), ("KB", 1e3)] {
        if bytes >= of {
            return format!("{:.1} {unit}", bytes / of);
        }
    }
    format!("{bytes:.0} bytes")
}
