//! What the demo of a table shows.

use std::time::Duration;

use heatsink_env::MonotonicInstant;
use heatsink_layout::TablePhase;
use heatsink_load::Report;
use serde::Serialize;

use super::ledger::{Count, Ledger};
use super::options::Options;
use super::watched::Moved;

/// Write units of a table that an item of 1 KB takes which moves: a check and a put, a check and a
/// delete, each in a transaction, which counts twice.
const ITEM_UNITS: f64 = 8.0;

/// The whole story.
#[derive(Debug, Serialize)]
pub struct Story {
    keys: u64,
    items: u64,
    shards: u16,
    writes_per_second: u32,
    gateways: usize,
    parts: Vec<PartOf>,
    phases: Vec<Phase>,
    keys_moved: u64,
    items_moved: u64,
    /// What the movers took of the table, while keys moved; and what clients left of its capacity.
    mover_units_per_second: f64,
    spare_units_per_second: f64,
    /// Seconds from the command to its end.
    seconds: f64,
    count: Count,
}

/// The load before, during or after.
#[derive(Debug, Serialize)]
struct PartOf {
    part: &'static str,
    offered: u64,
    throttled_share: f64,
    failed: u64,
    unanswered: u64,
    /// The worst of the seconds' medians and 99th percentiles, and the median of these, in
    /// milliseconds from when a request should have been sent.
    p50_ms: f64,
    p99_ms: f64,
    worst_p99_ms: f64,
    /// The longest request.
    longest_ms: f64,
    /// The longest first write of a key.
    longest_first_ms: u64,
}

/// A phase, and when it began.
#[derive(Debug, Serialize)]
struct Phase {
    phase: TablePhase,
    seconds: f64,
}

impl Story {
    pub(super) fn new(
        options: &Options,
        parts: &[Vec<Report>; 3],
        (moved, took): (Moved, Duration),
        ledger: &Ledger,
        seen: &[(TablePhase, MonotonicInstant)],
        count: Count,
    ) -> Self {
        let names = ["before", "during", "after"];
        let part = |(nth, (part, reports)): (usize, (&'static str, &Vec<Report>))| {
            let sum = |of: fn(&Report) -> u64| reports.iter().map(of).sum::<u64>();
            let offered = sum(|report| report.offered);
            PartOf {
                part,
                offered,
                throttled_share: share(sum(|report| report.throttled), offered),
                failed: sum(|report| report.failed),
                unanswered: sum(|report| report.unanswered),
                p50_ms: median(reports.iter().map(|report| report.latency.quantile_ms(0.5))),
                p99_ms: median(reports.iter().map(|report| report.latency.quantile_ms(0.99))),
                worst_p99_ms: reports
                    .iter()
                    .map(|report| report.latency.quantile_ms(0.99))
                    .fold(0.0, f64::max),
                longest_ms: reports.iter().map(|report| report.latency.quantile_ms(1.0)).fold(0.0, f64::max),
                longest_first_ms: ledger.longest_first(nth),
            }
        };
        let first = seen.first().map(|(_, first)| *first);
        let since = |at: MonotonicInstant| first.map_or(0.0, |first| at.since(first).as_secs_f64());
        Story {
            keys: options.keys,
            items: options.items,
            shards: options.shards,
            writes_per_second: options.writes,
            gateways: options.gateways,
            parts: names.into_iter().zip(parts).enumerate().map(part).collect(),
            phases: seen.iter().map(|(phase, at)| Phase { phase: *phase, seconds: since(*at) }).collect(),
            keys_moved: moved.keys,
            items_moved: moved.items,
            mover_units_per_second: ITEM_UNITS * per_second(moved.items, moved.span),
            spare_units_per_second: f64::from(options.capacity) - f64::from(options.writes),
            seconds: took.as_secs_f64(),
            count,
        }
    }

    /// Whether all that was accepted was found, once.
    pub fn holds(&self) -> bool {
        self.count.lost + self.count.doubled == 0
    }

    /// It as text.
    pub fn print(&self) -> String {
        let mut text = format!(
            "{} keys of {} items each, {} writes/s to all of them through {} gateways\n",
            self.keys, self.items, self.writes_per_second, self.gateways
        );
        for part in &self.parts {
            text += &format!(
                "  {:<7} {:>8} writes, {:.2} % throttled, {} failed, {} unanswered; p50 {:.1} ms, p99 {:.1} ms, worst second {:.1} ms; longest {:.0} ms, longest first write of a key {} ms\n",
                part.part,
                part.offered,
                100.0 * part.throttled_share,
                part.failed,
                part.unanswered,
                part.p50_ms,
                part.p99_ms,
                part.worst_p99_ms,
                part.longest_ms,
                part.longest_first_ms
            );
        }
        for phase in &self.phases {
            text += &format!("  {:?} after {:.1} s\n", phase.phase, phase.seconds);
        }
        let Count { items, accepted, lost, doubled, born, unknown } = self.count;
        text += &format!(
            "{} shards for every key, {} keys and {} items moved, in {:.1} s: {:.0} units/s of the {:.0} that clients leave\n{items} items, {born} keys made meanwhile; {accepted} writes accepted: {lost} lost, {doubled} doubled, {unknown} of \
             unknown outcome\n",
            self.shards,
            self.keys_moved,
            self.items_moved,
            self.seconds,
            self.mover_units_per_second,
            self.spare_units_per_second
        );
        text
    }
}

#[allow(clippy::cast_precision_loss, reason = "a rate for people")]
fn per_second(items: u64, span: Option<(MonotonicInstant, MonotonicInstant)>) -> f64 {
    let seconds = span.map_or(0.0, |(first, last)| last.since(first).as_secs_f64());
    if seconds > 0.0 { items as f64 / seconds } else { 0.0 }
}

fn median(numbers: impl Iterator<Item = f64>) -> f64 {
    let mut all: Vec<f64> = numbers.collect();
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied().unwrap_or(0.0)
}

#[allow(clippy::cast_precision_loss, reason = "a share")]
fn share(part: u64, all: u64) -> f64 {
    part as f64 / all.max(1) as f64
}
