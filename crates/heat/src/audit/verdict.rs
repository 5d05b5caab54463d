//! What to do about a pattern of keys, and why.

use heatsink_dynamo::display::excerpt;

use super::action::{Action, Verdict};
use super::rule::rule;
use super::seen::{LARGE, SHOWN, Seen};
use super::traffic_verdict;
use crate::{Asked, DEFAULT_RISK, PARTITION_WRITES, advise};

/// A key is near a partition's ceiling from half of it on, because the items that still exist
/// understate what was written.
const NEAR: f64 = PARTITION_WRITES / 2.0;
/// Writes that were measured understate less: only what was throttled left no record.
const NEAR_MEASURED: f64 = PARTITION_WRITES * 0.7;
/// The size to which a collection may grow in a year without buckets.
const LARGE_IN_A_YEAR: f64 = 1e10;
/// A key that holds this share of a table's items is worth measuring.
const SHARE: f64 = 0.1;

/// From so many write units a second on a key is near a partition's ceiling.
pub(super) const fn near(measured: bool) -> f64 {
    if measured { NEAR_MEASURED } else { NEAR }
}

/// Whether a key with so many items of all is worth measuring.
#[allow(clippy::cast_precision_loss, reason = "items, far below 2^52")]
pub(super) fn is_large(items: u64, all: u64) -> bool {
    items as f64 >= all.max(1) as f64 * SHARE
}

#[allow(clippy::cast_precision_loss, reason = "items and bytes, far below 2^52")]
pub(super) fn of(seen: &Seen<'_>) -> Verdict {
    if let Some(verdict) = seen.context.recorded.and_then(|recorded| traffic_verdict::of(seen, recorded)) {
        return verdict;
    }
    let mut verdict = of_what_was_read(seen);
    if let Some(sample) = seen.context.sample {
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
        format!("{}, of {} keys,", excerpt(&busiest.key, SHOWN), seen.keys)
    };
    let took = format!("{} {}", units(peak), within(busiest.window));
    // All that is there bounds what was written once; a sample bounds nothing from above.
    let bound = match (seen.context.measured, seen.context.sample) {
        (true, _) => "",
        (false, Some(_)) => "at least ",
        (false, None) => "at most ",
    };
    // Only keys whose items all have a time, in the same place, can be laid out by it.
    let by_time = of.timed == of.items && !of.prefixes_differ;
    let a_day = of.grown.max(0) as f64 / busiest.days.unwrap_or(1.0);
    // Records show what is written, not how much is there.
    let holds = if seen.context.measured { 0.0 } else { seen.largest.bytes as f64 };
    let grows = a_day * 365.0 >= LARGE_IN_A_YEAR || holds >= LARGE;
    if peak >= near(seen.context.measured) {
        if of.is_one_item() {
            let reason = format!(
                "{subject} took {took}, and one partition takes 1,000 a second. Most of it goes to one item, and shards spread items, not one item. \
                 If a number in it is only added to, `strategy = \"counter\"` spreads it; if not, write it less often"
            );
            return Verdict { action: Action::ChangeItem, reason, rule: None };
        }
        let item = (busiest.bytes / busiest.items.max(1)).clamp(1, 409_600);
        let item = u32::try_from(item).unwrap_or(u32::MAX);
        // What is still there understates what was written, so a key that nears the ceiling is
        // taken to reach it.
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
            "{subject} took {bound}{took} of the 1,000 that a partition takes, and grows by {} a day. Buckets bound its size; \
             they lift no rate, and none has to be",
            size(a_day)
        );
        return Verdict { action: Action::Bucket, reason, rule: Some(rule(seen, Some((of, a_day)), None)) };
    }
    let holds = match (seen.context.measured, seen.context.sample) {
        (true, _) => String::new(),
        (false, Some(_)) => {
            format!(", and the largest of those read holds {}", size(seen.largest.bytes as f64))
        }
        (false, None) => format!(", and the largest holds {}", size(seen.largest.bytes as f64)),
    };
    let reason = format!(
        "{subject} took {bound}{took} of the 1,000 that a partition takes{holds}: shards would make every listing dearer and nothing faster"
    );
    Verdict { action: Action::Leave, reason, rule: None }
}

/// Sort keys without a time say nothing of the rate.
#[allow(clippy::cast_precision_loss, reason = "items, far below 2^52")]
fn unknown(seen: &Seen<'_>) -> Verdict {
    let share = seen.most as f64 / seen.context.all.max(1) as f64;
    if seen.most <= 1 {
        let subject = if seen.keys == 1 { "its one key" } else { "each of its keys" };
        let reason = format!(
            "{subject} is one item, and shards spread items, not one item. Whether one is updated all the time leaves no trace here: stream records \
             show it, and `strategy = \"counter\"` spreads a number that is only added to"
        );
        return Verdict { action: Action::Leave, reason, rule: None };
    }
    if !is_large(seen.most, seen.context.all) {
        let (percent, read) = (share * 100.0, read(seen));
        let reason = if seen.keys == 1 {
            format!(
                "its one key has {percent:.1} % of the items{read}. Single items that are updated all the time leave no trace here"
            )
        } else {
            format!(
                "{} keys, the largest with {percent:.1} % of the items{read}: spread already. Single items that are updated all the time leave no \
                 trace here",
                seen.keys
            )
        };
        return Verdict { action: Action::Leave, reason, rule: None };
    }
    let reason = format!(
        "{} holds {:.0} % of the items{}, and no sort key of it tells when it was written. What counts is its rate: if it nears 1,000 write \
         units a second, `heatsink shards --writes RATE` says over how many keys",
        if seen.keys == 1 { "its one key".to_owned() } else { excerpt(&seen.largest.key, SHOWN) },
        share * 100.0,
        read(seen)
    );
    Verdict { action: Action::Measure, reason, rule: None }
}

fn read(seen: &Seen<'_>) -> &'static str {
    if seen.context.sample.is_some() { " read" } else { "" }
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
