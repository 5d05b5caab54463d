//! What the demo shows: as sentences for people, as JSON for scripts.

use heatsink_heat::Asked;
use heatsink_load::Report;
use serde::Serialize;

use super::drained::Drained;
use super::ledger::{Count, Interval, Ledger, STEP};
use super::options::{KEY, Options, Sample};
use super::reached::{FIRST_THROTTLE, Moved, Reached};
use crate::demo::loads::Suffered;
use crate::demo::workload::{ITEM_BYTES, PAGE, TABLE};
use crate::exit::Exit;
use crate::screen;

/// Below this share of throttled puts the key counts as relieved.
const RELIEVED: f64 = 0.01;

/// What was asked for.
#[derive(Clone, Debug, Serialize)]
pub struct Settings {
    /// Puts per second.
    pub writes: u32,
    /// Whether each put creates its item, or fails.
    pub conditional: bool,
    /// Top-100 Queries per second.
    pub reads: u32,
    /// Gateways.
    pub gateways: usize,
    /// Items that the key had before the load.
    pub items: u64,
    /// Its shards afterwards.
    pub shards: u16,
    /// Seconds of load before the command, and from then on.
    pub seconds: [u64; 2],
    /// Partitions of the table.
    pub partitions: u32,
}

impl Settings {
    /// The settings on a table of so many partitions.
    pub fn of(options: &Options, partitions: u32) -> Result<Settings, Exit> {
        let &Options { writes, reads, shards, items, gateways, conditional, before, after, .. } = options;
        let asked = Asked {
            writes: f64::from(writes),
            peak: f64::from(writes),
            reads: f64::from(reads),
            item_bytes: ITEM_BYTES,
            page: PAGE,
            partitions: Some(partitions),
            risk: heatsink_heat::DEFAULT_RISK,
        };
        let recommended = || heatsink_heat::advise(asked).recommended.map(|row| row.shards.max(2));
        let shards = shards.or_else(recommended).ok_or_else(|| {
            Exit::usage(format!(
                "no shard count carries {writes} puts/s on the demo's table; ask for fewer with --writes"
            ))
        })?;
        let seconds = [before, after];
        Ok(Settings { writes, conditional, reads, gateways, items, shards, seconds, partitions })
    }
}

/// A part of the load.
#[derive(Clone, Debug, Serialize)]
pub struct Part {
    /// Accepted puts per second.
    pub accepted_per_second: f64,
    /// Throttled ÷ answered.
    pub throttled_share: f64,
    /// Median latency of accepted puts, in milliseconds.
    pub p50_ms: f64,
    /// 99th percentile of the same.
    pub p99_ms: f64,
}

/// Everything.
#[derive(Clone, Debug, Serialize)]
pub struct Story {
    /// What was asked for.
    pub settings: Settings,
    /// The command, each phase, and the end.
    pub reached: Vec<Reached>,
    /// Milliseconds from the command until less than 1 % of the puts of any second were throttled,
    /// for good; none if that never was.
    pub relief_ms: Option<u32>,
    /// The longest that a put took that was sent between the command and a second after the
    /// cutover, in milliseconds.
    pub longest_put_ms: f64,
    /// The 99.9th percentile of the same puts.
    pub cutover_p999_ms: f64,
    /// Of the seconds after the command, the largest throttled share ÷ that before. The load's
    /// first second, in which a partition has a burst, does not count before.
    pub worst_throttled_ratio: f64,
    /// Before the command.
    pub before: Part,
    /// From the relief until the move ended.
    pub moving: Option<Part>,
    /// After the move.
    pub after: Option<Part>,
    /// The 99th percentile of the puts while items moved ÷ after the move; none if the load ended
    /// before the move.
    pub p99_ratio: Option<f64>,
    /// Items that were moved, and how fast.
    pub moved: Moved,
    /// Who took the write units of the partition that the key left; none if the story ended before
    /// the move.
    pub drained: Option<Drained>,
    /// Top-100 Queries that were throttled, and that failed or had no answer.
    pub reads_refused: [u64; 2],
    /// What the clients wrote, and found again.
    pub count: Count,
    /// What cool keys of the key's own partition suffered.
    pub neighbours: Suffered,
    /// The throttled share by second.
    pub throttled_by_second: Vec<f64>,
    /// The partitions over time.
    #[serde(skip)]
    pub samples: Vec<Sample>,
    /// The heat of keys, as `GET /_heatsink/heat/map` tells it.
    #[serde(skip)]
    pub heat: String,
    /// What was answered, by interval.
    #[serde(skip)]
    pub intervals: Vec<Interval>,
}

fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}

fn sum(intervals: &[Interval]) -> (u32, u32) {
    let add = |(accepted, throttled), one: &Interval| (accepted + one.accepted, throttled + one.throttled);
    intervals.iter().fold((0, 0), add)
}

fn share(intervals: &[Interval]) -> f64 {
    let (accepted, throttled) = sum(intervals);
    if throttled == 0 { 0.0 } else { f64::from(throttled) / f64::from(accepted + throttled) }
}

/// The last interval that was hot and begins a hot second.
fn last_hot(intervals: &[Interval]) -> Option<usize> {
    let hot = |intervals: &[Interval]| share(intervals) >= RELIEVED;
    let second = usize::try_from(1_000 / STEP).unwrap_or(1);
    // The second that begins there, or the story's last one: less than a second is never judged
    // where there is more.
    let from = |at: usize| {
        let at = at.min(intervals.len().saturating_sub(second));
        intervals.get(at..(at + second).min(intervals.len())).unwrap_or_default()
    };
    (0..intervals.len()).rev().find(|&at| hot(intervals.get(at..=at).unwrap_or_default()) && hot(from(at)))
}

fn quantile(sorted: &[u32], share: f64) -> u32 {
    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "an index below the length"
    )]
    let nth = (sorted.len() as f64 * share) as usize;
    sorted.get(nth.min(sorted.len().saturating_sub(1))).copied().unwrap_or(0)
}

/// Microseconds as milliseconds, to a tenth.
fn millis(micros: u32) -> f64 {
    f64::from(micros.div_ceil(100)) / 10.0
}

impl Part {
    fn new(ledger: &Ledger, intervals: &[Interval], from: u32, to: u32) -> Option<Part> {
        let at = |millis: u32| usize::try_from(millis / STEP).unwrap_or(usize::MAX).min(intervals.len());
        let within = intervals.get(at(from)..at(to)).filter(|within| !within.is_empty())?;
        let seconds =
            f64::from(to.min(u32::try_from(intervals.len()).unwrap_or(u32::MAX) * STEP) - from) / 1_000.0;
        let latencies = ledger.latencies(from, to);
        Some(Part {
            accepted_per_second: f64::from(sum(within).0) / seconds,
            throttled_share: share(within),
            p50_ms: millis(quantile(&latencies, 0.5)),
            p99_ms: millis(quantile(&latencies, 0.99)),
        })
    }
}

impl Story {
    /// Sums everything up.
    pub fn new(
        settings: Settings,
        ledger: &Ledger,
        reached: Vec<Reached>,
        moved: Moved,
        reads: &Report,
        count: Count,
        samples: Vec<Sample>,
    ) -> Story {
        let intervals = ledger.intervals();
        let when = |what: &str| reached.iter().find(|one| one.what == what).map(|one| one.millis);
        let command = when("command").or(when(FIRST_THROTTLE)).unwrap_or(0);
        let cutover = when("MOVE").or(when("STABLE")).unwrap_or(command);
        let end = u32::try_from((settings.seconds[0] + settings.seconds[1]) * 1_000).unwrap_or(u32::MAX);
        // Where the story ends before the move does, it moves until the end.
        let moved_at = when("STABLE").unwrap_or(if when("MOVE").is_some() { end } else { cutover });
        let first = usize::try_from(command.div_ceil(STEP)).unwrap_or(0);
        // What comes in after the load is the rest of a last interval.
        let whole = usize::try_from((settings.seconds[0] + settings.seconds[1]) * 1_000 / u64::from(STEP))
            .unwrap_or(0);
        let rest = intervals.get(first..whole.min(intervals.len())).unwrap_or_default();
        let last_hot = last_hot(rest);
        let relief = match last_hot {
            None => Some(0),
            Some(last) if last + 1 == rest.len() => None,
            Some(last) => {
                u32::try_from(first + last + 1).ok().map(|end| (end * STEP).saturating_sub(command))
            }
        };
        let before = Part::new(ledger, &intervals, 0, command);
        let before = before.unwrap_or(Part {
            accepted_per_second: 0.0,
            throttled_share: 0.0,
            p50_ms: 0.0,
            p99_ms: 0.0,
        });
        let relieved = command + relief.unwrap_or(0);
        let by_second = |seconds: &[Interval]| seconds.chunks(10).map(share).collect::<Vec<_>>();
        let worst = by_second(rest).into_iter().fold(0.0, f64::max);
        let begun = usize::try_from(1_000 / STEP).unwrap_or(1);
        let steady = intervals.get(begun..first.min(intervals.len())).filter(|steady| !steady.is_empty());
        let steady = steady.map_or(before.throttled_share, share);
        let cutover_latencies = ledger.latencies(command, cutover + 1_000);
        let moving =
            Part::new(ledger, &intervals, relieved, moved_at.min(end)).filter(|_| relieved < moved_at);
        let after = Part::new(ledger, &intervals, moved_at, end).filter(|_| moved_at < end);
        let both = moving.as_ref().zip(after.as_ref().filter(|after| after.p99_ms > 0.0));
        let p99_ratio = both.map(|(moving, after)| moving.p99_ms / after.p99_ms);
        let partitions = samples.last().map(|(_, partitions)| partitions.as_slice()).unwrap_or_default();
        Story {
            relief_ms: relief,
            longest_put_ms: millis(quantile(&cutover_latencies, 1.0)),
            cutover_p999_ms: millis(quantile(&cutover_latencies, 0.999)),
            worst_throttled_ratio: if steady > 0.0 { worst / steady } else { worst },
            before,
            moving,
            after,
            p99_ratio,
            drained: Drained::new(ledger, &reached, &moved, partitions),
            moved,
            reads_refused: [reads.throttled, reads.failed + reads.unanswered],
            count,
            neighbours: Suffered::default(),
            throttled_by_second: by_second(&intervals),
            settings,
            reached,
            samples,
            heat: String::new(),
            intervals,
        }
    }

    /// From the command, or the first throttle, until the relief, in milliseconds; until the end of
    /// the load if none came.
    pub fn burnt(&self) -> (u32, u32) {
        let when = |what: &str| self.reached.iter().find(|one| one.what == what).map(|one| one.millis);
        let from = when(FIRST_THROTTLE).unwrap_or(0);
        let end = u32::try_from((self.settings.seconds[0] + self.settings.seconds[1]) * 1_000);
        let relieved = self.relief_ms.map(|relief| when(self.origin()).unwrap_or(0) + relief);
        (from, relieved.or(end.ok()).unwrap_or(u32::MAX))
    }

    /// What the times are counted from.
    fn origin(&self) -> &'static str {
        if self.reached.iter().any(|one| one.what == "command") { "command" } else { FIRST_THROTTLE }
    }

    /// The command that the operator gives.
    pub fn command(&self) -> String {
        format!("heatsink reshard start {TABLE} {KEY} --shards {}", self.settings.shards)
    }

    /// The picture, as SVG.
    pub fn svg(&self) -> String {
        let seconds = |millis: u32| f64::from(millis) / 1_000.0;
        let per_second = |count: u32| f64::from(count) * 1_000.0 / f64::from(STEP);
        let end = self.settings.seconds[0] + self.settings.seconds[1];
        let last = self.samples.last().map_or(0, |(at, _)| *at).max(u32::try_from(end * 1_000).unwrap_or(0));
        let requests = self.intervals.iter().enumerate().map(|(nth, one)| {
            let end = u32::try_from(nth + 1).unwrap_or(u32::MAX).saturating_mul(STEP);
            (seconds(end), per_second(one.accepted), per_second(one.throttled))
        });
        let marks = self.reached.iter().map(|one| {
            let what = if one.what == "command" { self.command() } else { one.what.clone() };
            (seconds(one.millis), what)
        });
        let relief = self.relief_ms.map(|relief| {
            format!("Less than 1 % is throttled {:.1} s after the {}. ", seconds(relief), self.origin())
        });
        heatsink_simulate::Recording {
            title: "A key is sharded while clients write".to_owned(),
            about: format!(
                "{} puts/s on one key, through {} gateway{}. {}{} items move in the background. {} accepted puts and {} old items were counted \
                 afterwards: {} lost, {} doubled.",
                self.settings.writes,
                self.settings.gateways,
                plural(self.settings.gateways),
                relief.unwrap_or_default(),
                self.moved.items,
                self.count.accepted,
                self.count.old,
                self.count.lost,
                self.count.doubled
            ),
            seconds: seconds(last),
            requests: requests.collect(),
            table: TABLE.to_owned(),
            partitions: self.samples.iter().map(|(at, of)| (seconds(*at), of.clone())).collect(),
            marks: marks.collect(),
        }
        .svg()
    }

    /// The sentences.
    pub fn print(&self) -> String {
        let Settings { writes, conditional, reads, gateways, items, partitions, .. } = self.settings;
        let kind = if conditional { "conditional creates" } else { "puts" };
        let mut lines = vec![format!(
            "{writes} {kind}/s and {reads} top-100 Queries/s on one key through {gateways} gateway{}; the key has {items} items; table of \
             {partitions} partitions.",
            plural(gateways)
        )];
        let mut table = screen::table(["", "accepted/s", "throttled", "put p50", "put p99"]);
        let parts = [
            ("one key", Some(&self.before)),
            ("relieved, items move", self.moving.as_ref()),
            ("moved", self.after.as_ref()),
        ];
        for (name, part) in parts {
            let Some(part) = part else { continue };
            table.add_row([
                name.to_owned(),
                format!("{:.0}", part.accepted_per_second),
                format!("{:.1} %", part.throttled_share * 100.0),
                format!("{:.1} ms", part.p50_ms),
                format!("{:.1} ms", part.p99_ms),
            ]);
        }
        lines.push(screen::drawn(table, &[1, 2, 3, 4]).trim_end().to_owned());
        let begun = self.reached.first().map_or(0, |one| one.millis);
        let seconds = |millis: u32| f64::from(millis) / 1_000.0;
        for one in &self.reached {
            let what = if one.what == "command" { self.command() } else { one.what.clone() };
            lines.push(format!("{:>7.2} s  {what}", seconds(one.millis - begun)));
        }
        lines.extend(self.moved.because.as_ref().map(|why| format!("{} shards, {why}.", self.moved.shards)));
        lines.push(match self.relief_ms {
            Some(relief) => format!(
                "Less than 1 % throttled {:.1} s after the {}. Of the puts of the cutover 99.9 % took up to {:.0} ms, the longest {:.0} ms.",
                seconds(relief),
                self.origin(),
                self.cutover_p999_ms,
                self.longest_put_ms
            ),
            None => "At the end of the load 1 % or more of the puts were still throttled.".to_owned(),
        });
        lines.push(match self.drained {
            Some(Drained { seconds, write_units, by_mover, by_puts_that_stay, by_others, mover_share }) => format!(
                "{} items were moved in {seconds:.1} s, at {:.0} % of what others left of the {} units/s that they may take of the old shard's \
                 partition. It took {write_units:.0} units: {by_mover:.0} of the mover, {by_puts_that_stay:.0} of puts that stay there, {by_others:.0} \
                 of others.",
                self.moved.items,
                mover_share * 100.0,
                self.moved.rate
            ),
            None => format!("{} items were moved until the end of the load.", self.moved.items),
        });
        lines.extend(self.neighbours.print());
        let Count { old, accepted, found, lost, doubled, unexpected, out_of_order, unknown } = self.count;
        lines.push(format!(
            "Counted: {old} old items and {accepted} accepted puts; {found} items found. Lost {lost}, doubled {doubled}, out of order \
             {out_of_order}, unexpected {unexpected}; {unknown} puts failed or have no answer."
        ));
        lines.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_and_quantiles() {
        let of = |accepted, throttled| Interval { accepted, throttled };
        assert!((share(&[of(1, 3), of(3, 1)]) - 0.5).abs() < 1e-9);
        assert!(share(&[]).abs() < 1e-9);
        let sorted: Vec<u32> = (0..100).collect();
        assert_eq!(
            (quantile(&sorted, 0.5), quantile(&sorted, 0.99), quantile(&sorted, 1.0), quantile(&[], 0.5)),
            (50, 99, 99, 0)
        );
    }

    #[test]
    fn a_key_is_relieved_with_the_last_hot_second() {
        let (hot, cool) =
            (Interval { accepted: 100, throttled: 400 }, Interval { accepted: 500, throttled: 0 });
        // Six puts of a second: hot alone, and not over the second.
        let blip = Interval { accepted: 494, throttled: 6 };
        let story = |from: &[Interval]| [from, &[cool; 12], &[blip], &[cool; 12]].concat();
        assert_eq!(last_hot(&story(&[cool, hot, hot])), Some(2));
        assert_eq!(last_hot(&story(&[])), None);
        assert_eq!(last_hot(&[[cool; 12].as_slice(), &[blip]].concat()), None);
        let hotter = Interval { accepted: 440, throttled: 60 };
        assert_eq!(last_hot(&[[cool; 12].as_slice(), &[hotter], &[cool; 3]].concat()), Some(12));
    }
}
