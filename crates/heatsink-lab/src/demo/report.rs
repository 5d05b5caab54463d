//! The results of the demo: as a table for people, as JSON for scripts.

use heatsink_load::Report;
use serde::Serialize;

use crate::screen;

/// One phase: the same load before or after.
#[derive(Clone, Debug, Serialize)]
pub struct Phase {
    /// Puts that the schedule held.
    pub offered: u64,
    /// Puts that were accepted.
    pub accepted: u64,
    /// Puts that were throttled.
    pub throttled: u64,
    /// Puts that failed otherwise. Anything but zero makes the run worthless.
    pub failed: u64,
    /// Puts that were not sent, or got no answer in time. Anything but zero makes the run
    /// worthless.
    pub unanswered: u64,
    /// Top-100 Queries that were throttled.
    pub top100_throttled: u64,
    /// Top-100 Queries that failed otherwise, or got no answer in time.
    pub top100_unanswered: u64,
    /// Puts on other titles that failed, or got no answer in time.
    pub others_unanswered: u64,
    /// Throttled ÷ offered.
    pub throttled_share: f64,
    /// Median latency of accepted puts in milliseconds, from the intended send.
    pub put_p50_ms: f64,
    /// 99th percentile of the same.
    pub put_p99_ms: f64,
    /// Median latency of the top-100 Query in milliseconds.
    pub top100_p50_ms: f64,
    /// 99th percentile of the same.
    pub top100_p99_ms: f64,
    /// Read units of one top-100 Query, on average.
    pub top100_rcu: f64,
    /// Whether, when the load was over, the top 100 were exactly the best of the accepted scores,
    /// in order.
    pub top100_exact: bool,
}

impl Phase {
    /// Sums up the puts, the reads and the other titles' puts of a phase.
    pub fn new(puts: &Report, reads: &Report, others: &Report, top100_rcu: f64, top100_exact: bool) -> Self {
        Phase {
            offered: puts.offered,
            accepted: puts.accepted,
            throttled: puts.throttled,
            failed: puts.failed,
            unanswered: puts.unanswered,
            top100_throttled: reads.throttled,
            top100_unanswered: reads.failed + reads.unanswered,
            others_unanswered: others.failed + others.unanswered,
            throttled_share: puts.throttled_share(),
            put_p50_ms: puts.latency.quantile_ms(0.5),
            put_p99_ms: puts.latency.quantile_ms(0.99),
            top100_p50_ms: reads.latency.quantile_ms(0.5),
            top100_p99_ms: reads.latency.quantile_ms(0.99),
            top100_rcu,
            top100_exact,
        }
    }

    /// Puts whose outcome is not known: they may be in the top 100 or not.
    const fn unknown(&self) -> u64 {
        self.failed + self.unanswered
    }

    fn exactness(&self) -> String {
        match (self.top100_exact, self.unknown()) {
            (true, _) => "yes".to_owned(),
            (false, 0) => "NO".to_owned(),
            (false, unknown) => format!("unknown: {unknown} puts without answer"),
        }
    }
}

/// A shorter sharded run of one more game name.
#[derive(Clone, Debug, Serialize)]
pub struct Game {
    /// The logical key.
    pub name: String,
    /// Throttled ÷ offered.
    pub throttled_share: f64,
    /// Puts that failed or got no answer in time.
    pub unanswered: u64,
    /// Groups of its shards that share a partition.
    pub meetings: Vec<Vec<usize>>,
}

/// The sharded run over many game names.
#[derive(Clone, Debug, Serialize)]
pub struct Games {
    /// Throttled share of the median game.
    pub median_throttled_share: f64,
    /// Throttled share of the worst game.
    pub worst_throttled_share: f64,
    /// Every game.
    pub games: Vec<Game>,
}

impl Games {
    /// Sums up the games; `None` when there are none.
    pub fn new(games: Vec<Game>) -> Option<Self> {
        let mut shares: Vec<f64> = games.iter().map(|game| game.throttled_share).collect();
        shares.sort_by(f64::total_cmp);
        let (lower, upper) = (shares.get(shares.len().checked_sub(1)? / 2)?, shares.get(shares.len() / 2)?);
        Some(Games {
            median_throttled_share: f64::midpoint(*lower, *upper),
            worst_throttled_share: *shares.last()?,
            games,
        })
    }
}

/// How likely it is that shards meet.
#[derive(Clone, Debug, Serialize)]
pub struct Odds {
    /// Partitions of the table.
    pub partitions: u32,
    /// The probability, over all key names, that two shards share a partition.
    pub two_meet: f64,
    /// So many shards on one partition reach its ceiling at this rate.
    pub fill_together: u32,
    /// The probability, over all key names, that so many share a partition: then it throttles.
    pub fill: f64,
}

/// Everything.
#[derive(Clone, Debug, Serialize)]
pub struct Story {
    /// What was asked for.
    pub settings: Settings,
    /// The unsharded run.
    pub before: Phase,
    /// The sharded run of the same title.
    pub after: Phase,
    /// Which of the title's shards share a partition.
    pub after_meetings: Vec<Vec<usize>>,
    /// The sharded run over further titles.
    pub after_games: Option<Games>,
    /// How likely meetings are.
    pub odds: Odds,
}

/// What the demo was asked to do.
#[derive(Clone, Debug, Serialize)]
pub struct Settings {
    /// Seconds of load before and after; a third of it for each further title.
    pub seconds: u64,
    /// Puts per second on the viral title.
    pub writes: u32,
    /// Shard count.
    pub shards: u16,
    /// What `heatsink shards` recommends for these rates and this table.
    pub recommended: Option<u16>,
    /// Further titles.
    pub games: u32,
    /// Top-100 Queries per second.
    pub reads: u32,
    /// Writes per second on all other titles.
    pub background: u64,
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// Names a group of shards: `shards 2 and 7`.
fn together(group: &[usize]) -> String {
    let numbers: Vec<String> = group.iter().map(usize::to_string).collect();
    match numbers.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("shards {} and {last}", rest.join(", ")),
        _ => numbers.concat(),
    }
}

impl Story {
    /// Whether every top 100 that can be judged was exact.
    pub fn holds(&self) -> bool {
        [&self.before, &self.after].into_iter().all(|phase| phase.top100_exact || phase.unknown() > 0)
    }

    /// The shard count and where it comes from.
    fn choice(&self) -> String {
        let Settings { writes, shards, recommended, reads, .. } = self.settings;
        let partitions = self.odds.partitions;
        let command =
            format!("`heatsink shards --writes {writes} --reads {reads} --partitions {partitions}`");
        match recommended {
            Some(best) if best == shards => format!("{shards} shards is what {command} recommends."),
            Some(best) => format!("{shards} shards, where {command} recommends {best}."),
            None => format!("{shards} shards, where {command} knows none that is enough."),
        }
    }

    /// The table and the sentences under it.
    pub fn print(&self) -> String {
        let Settings { seconds, writes, shards, games, reads, background, .. } = self.settings;
        let mut table = screen::table(["", "before: one key", &format!("after: {shards} shards")]);
        let mut row = |name: &str, value: &dyn Fn(&Phase) -> String| {
            table.add_row([name.to_owned(), value(&self.before), value(&self.after)]);
        };
        row("puts offered", &|phase| phase.offered.to_string());
        row("puts accepted", &|phase| phase.accepted.to_string());
        row("puts throttled", &|phase| format!("{} ({})", phase.throttled, percent(phase.throttled_share)));
        row("puts failed", &|phase| phase.failed.to_string());
        row("puts unanswered", &|phase| phase.unanswered.to_string());
        row("put p50 / p99", &|phase| format!("{:.1} / {:.1} ms", phase.put_p50_ms, phase.put_p99_ms));
        row("top 100 p50 / p99", &|phase| {
            format!("{:.1} / {:.1} ms", phase.top100_p50_ms, phase.top100_p99_ms)
        });
        row("top 100 throttled", &|phase| phase.top100_throttled.to_string());
        row("top 100 failed or unanswered", &|phase| phase.top100_unanswered.to_string());
        row("top 100 read units", &|phase| format!("{:.1}", phase.top100_rcu));
        row("top 100 exact, in order", &Phase::exactness);
        row("other titles' puts failed or unanswered", &|phase| phase.others_unanswered.to_string());
        let mut lines = vec![
            format!(
                "{writes} puts/s on one title for {seconds} s, {background} on others, {reads} top-100 Queries/s (the account has 2,400); \
                 table of {} partitions.",
                self.odds.partitions
            ),
            screen::drawn(table, &[1, 2]).trim_end().to_owned(),
            self.choice(),
        ];
        let unknown = self.before.unknown() + self.after.unknown();
        if unknown > 0 {
            lines.push(format!(
                "{unknown} puts failed or got no answer: this machine is too slow for the load, and the figures say little. Ask for less \
                 with --writes, or build with --release."
            ));
        }
        lines.push(match self.after_meetings.as_slice() {
            [] => "No two shards of this title share a partition.".to_owned(),
            met => format!(
                "On one partition each: {}.",
                met.iter().map(|group| together(group)).collect::<Vec<_>>().join("; ")
            ),
        });
        if let Some(after) = &self.after_games {
            lines.push(format!(
                "{games} more titles, {shards} shards each, {} s each: median throttled {}, worst {}.",
                seconds.div_ceil(3),
                percent(after.median_throttled_share),
                percent(after.worst_throttled_share)
            ));
            if let Some(worst) =
                after.games.iter().max_by(|a, b| a.throttled_share.total_cmp(&b.throttled_share))
                && worst.throttled_share > 0.0
                && let Some(group) = worst.meetings.first()
            {
                lines.push(format!("The worst is {}: {} share a partition.", worst.name, together(group)));
            }
            let unanswered: u64 = after.games.iter().map(|game| game.unanswered).sum();
            if unanswered > 0 {
                lines.push(format!("Of their puts {unanswered} failed or got no answer."));
            }
        }
        let Odds { partitions, two_meet, fill_together, fill } = self.odds;
        lines.push(format!(
            "Over all key names, two of {shards} shards meet on one of {partitions} partitions with probability {}; {fill_together}, which \
             fill it at this rate, with {}.",
            percent(two_meet),
            percent(fill)
        ));
        lines.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn game(throttled_share: f64) -> Game {
        Game { name: "g".to_owned(), throttled_share, unanswered: 0, meetings: Vec::new() }
    }

    #[test]
    fn median_and_worst() {
        let games = Games::new([0.0, 0.3, 0.0, 0.1].map(game).to_vec()).unwrap();
        assert!((games.median_throttled_share - 0.05).abs() < 1e-9);
        assert!((games.worst_throttled_share - 0.3).abs() < 1e-9);
        assert!(Games::new(Vec::new()).is_none());
    }

    #[test]
    fn groups_read_as_a_sentence() {
        assert_eq!(together(&[2, 7]), "shards 2 and 7");
        assert_eq!(together(&[1, 2, 7]), "shards 1, 2 and 7");
    }
}
