//! A diagnosis of a run in one sentence, from its partitions.

use heatsink_physics::KeyPosition;

use crate::counts::Heat;
use crate::numbers::{grouped, percent};
use crate::report::{Map, Point};

/// A partition of a map, over the whole run.
struct Total {
    first: KeyPosition,
    reads: f64,
    writes: f64,
    /// At its own ceiling.
    refused: f64,
    /// What it took while it refused, and for how many seconds it did.
    closed: Taken,
}

/// Units that a partition took, and in how many seconds.
#[derive(Default)]
struct Taken {
    reads: f64,
    writes: f64,
    seconds: f64,
}

impl Taken {
    /// It in words, a second.
    fn in_words(&self) -> String {
        let a_second = |units: f64| grouped(units / self.seconds.max(1e-9));
        if self.writes * 3.0 >= self.reads {
            format!("{} write units/s", a_second(self.writes))
        } else {
            format!("{} read units/s", a_second(self.reads))
        }
    }
}

/// Of all tables and indexes the one with the most throttles is spoken of; without throttles, the
/// busiest.
pub(crate) fn hottest(maps: &[Map]) -> Option<&Map> {
    let weigh = |map: &&Map| {
        let heat = || map.steps.iter().flatten();
        let throttles: f64 = heat().map(|heat| f64::from(heat.throttles)).sum();
        throttles * 1e6 + heat().map(|heat| f64::from(heat.writes * 3.0 + heat.reads)).sum::<f64>()
    };
    maps.iter().max_by(|a, b| weigh(a).total_cmp(&weigh(b)))
}

pub(crate) fn diagnosis(maps: &[Map], series: &[Point], throttled_share: f64) -> String {
    let Some(map) = hottest(maps) else { return String::new() };
    let totals = totals(map);
    let Some(top) = totals.iter().max_by(|a, b| {
        let weigh = |total: &Total| total.refused * 1e6 + total.writes * 3.0 + total.reads;
        weigh(a).total_cmp(&weigh(b))
    }) else {
        return String::new();
    };
    let count = map.steps.last().map_or(0, Vec::len);
    let at_first = map.steps.first().map_or(0, Vec::len);
    let of = format!("{count} partitions ({}{})", if map.index { "index " } else { "" }, map.name);
    let split = if count > at_first {
        let s = if at_first == 1 { "" } else { "s" };
        format!(" DynamoDB split {at_first} partition{s} into {count} on the way.")
    } else {
        String::new()
    };
    if throttled_share < 0.000_5 {
        let seconds = loaded_seconds(series);
        let load = Taken { reads: top.reads, writes: top.writes, seconds }.in_words();
        return format!("Nothing to speak of is throttled: the busiest of {of} takes {load}.{split}");
    }
    let refused: f64 = totals.iter().map(|total| total.refused).sum();
    let throttles: f64 = map.steps.iter().flatten().map(|heat| f64::from(heat.throttles)).sum();
    let moves = moves(map);
    let load = top.closed.in_words();
    let closed = totals.iter().filter(|total| total.refused > 0.1 * top.refused).count();
    let share = percent(throttled_share);
    let sentence = if refused < 0.1 * throttles {
        let what = if map.index { "index" } else { "table" };
        format!(
            "The {what}'s own capacity is spent; none of {of} is the limit. {share} of all requests are throttled."
        )
    } else if top.refused > 0.9 * refused {
        format!(
            "One of {of} takes {load} while it refuses the rest; the others have room. {share} of all requests are throttled."
        )
    } else if moves > 3 && count == at_first {
        format!(
            "A rolling hot partition: one of {of} does the work at any time, and it changed {moves} times. {share} of all requests are throttled."
        )
    } else if closed < count {
        format!(
            "{closed} of {of} refuse requests, the busiest while it takes {load}. {share} of all requests are throttled."
        )
    } else {
        format!("All of {of} are at their ceilings. {share} of all requests are throttled.")
    };
    let last = series.last().map_or(0.0, |point| point.throttled / point.offered.max(1.0));
    let healed =
        if last < 0.000_5 && count > at_first { " At the end nothing is throttled any more." } else { "" };
    format!("{sentence}{split}{healed}")
}

/// By the first place of each partition; a split's upper half counts by itself.
fn totals(map: &Map) -> Vec<Total> {
    let mut totals: Vec<Total> = Vec::new();
    let mut start = 0.0;
    for (end, step) in map.ends.iter().zip(&map.steps) {
        for Heat { first, reads, writes, refused, .. } in step {
            let at = totals.partition_point(|total| total.first < *first);
            if totals.get(at).is_none_or(|total| total.first != *first) {
                let (reads, writes, refused, closed) = (0.0, 0.0, 0.0, Taken::default());
                totals.insert(at, Total { first: *first, reads, writes, refused, closed });
            }
            let total = &mut totals[at];
            total.reads += f64::from(*reads);
            total.writes += f64::from(*writes);
            total.refused += f64::from(*refused);
            if *refused > 0.0 {
                total.closed.reads += f64::from(*reads);
                total.closed.writes += f64::from(*writes);
                total.closed.seconds += end - start;
            }
        }
        start = *end;
    }
    totals
}

/// Seconds of the steps in which something was offered.
pub(crate) fn loaded_seconds(series: &[Point]) -> f64 {
    let starts = std::iter::once(0.0).chain(series.iter().map(|point| point.seconds));
    let steps = starts.zip(series).filter(|(_, point)| point.offered > 0.0);
    steps.map(|(start, point)| point.seconds - start).sum()
}

/// How often another partition became the one that refused the most.
fn moves(map: &Map) -> usize {
    let top = |step: &Vec<Heat>| {
        let top = step.iter().max_by(|a, b| a.refused.total_cmp(&b.refused))?;
        (top.refused > 0.0).then_some(top.first)
    };
    let tops: Vec<KeyPosition> = map.steps.iter().filter_map(top).collect();
    tops.windows(2).filter(|two| two[0] != two[1]).count()
}
