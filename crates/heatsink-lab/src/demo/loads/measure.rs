//! What follows from the counts of one key: when it burned, when it was relieved, whether a change
//! made it worse.
//!
//! Not here: the counts (`account`), shard counts (`least`).

use crate::demo::account::{Interval, SECOND, STEP};

/// Below this share of refused items a key counts as relieved.
const RELIEVED: f64 = 0.01;
/// For so many seconds on end.
const FOR_SECONDS: usize = 3;
/// A key is worse than before a change if its share is higher by more than this.
const WORSE: f64 = 0.02;
/// For more than so many seconds on end.
const WORSE_SECONDS: usize = 5;
/// Seconds before a change that it is compared with.
const BEFORE: usize = 3;

/// When a key burned, in milliseconds since the load began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Burn {
    /// The first interval in which something was refused.
    pub first_refusal: u32,
    /// The end of the burning: from then on less than 1 % of each of three seconds was refused.
    /// `None` if that did not come before the load ended.
    pub relieved: Option<u32>,
}

/// An interval's begin, in milliseconds.
fn millis(interval: usize) -> u32 {
    u32::try_from(interval).unwrap_or(u32::MAX).saturating_mul(STEP)
}

/// The interval of a moment.
fn interval(millis: u32) -> usize {
    usize::try_from(millis / STEP).unwrap_or(usize::MAX)
}

/// When a key burned; `None` if nothing was refused.
pub fn burn(intervals: &[Interval]) -> Option<Burn> {
    let first = intervals.iter().position(|one| one.refused > 0)?;
    let is_cool = |from: &usize| {
        let seconds = intervals.get(*from..*from + FOR_SECONDS * SECOND);
        seconds.is_some_and(|seconds| seconds.chunks(SECOND).all(|one| Interval::sum(one).share() < RELIEVED))
    };
    let relieved = (first..intervals.len()).find(is_cool);
    Some(Burn { first_refusal: millis(first), relieved: relieved.map(millis) })
}

/// The share of the seconds in which less than nine tenths of `per_second` items were sent: then the
/// machine is too slow for the load, and nothing follows from it.
pub fn late_share(sent_by_second: &[u32], per_second: f64) -> f64 {
    let late = sent_by_second.iter().filter(|sent| f64::from(**sent) < 0.9 * per_second).count();
    #[allow(clippy::cast_precision_loss, reason = "seconds")]
    if sent_by_second.is_empty() { 0.0 } else { late as f64 / sent_by_second.len() as f64 }
}

/// The share refused between two moments, in milliseconds.
pub fn share(intervals: &[Interval], from: u32, to: u32) -> f64 {
    let to = interval(to).min(intervals.len());
    Interval::sum(intervals.get(interval(from).min(to)..to).unwrap_or_default()).share()
}

/// The mean share of the longest time, over five seconds, in which a key was worse by over two
/// points than in the three seconds before a change at `changed`; `None` if there was no such time.
pub fn made_worse(intervals: &[Interval], changed: u32) -> Option<f64> {
    let at = interval(changed).min(intervals.len());
    let before = Interval::sum(intervals.get(at.saturating_sub(BEFORE * SECOND)..at)?).share();
    let after: Vec<Interval> = intervals.get(at..)?.chunks(SECOND).map(Interval::sum).collect();
    let runs = after.split(|second| second.share() <= before + WORSE);
    let longest = runs.max_by_key(|run| run.len()).filter(|run| run.len() > WORSE_SECONDS)?;
    Some(Interval::sum(longest).share())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(share_by_second: &[u32]) -> Vec<Interval> {
        let interval = |percent: &u32| Interval { offered: 100, accepted: 100 - percent, refused: *percent };
        share_by_second.iter().flat_map(|percent| std::iter::repeat_n(interval(percent), SECOND)).collect()
    }

    #[test]
    fn relief_is_three_cool_seconds() {
        let burnt = burn(&of(&[0, 30, 30, 0, 0, 5, 0, 0, 0, 0])).unwrap();
        assert_eq!(burnt, Burn { first_refusal: 1_000, relieved: Some(5_900) });
        assert_eq!(burn(&of(&[0, 30, 0, 0])).unwrap().relieved, None);
        assert_eq!(burn(&of(&[0, 0])), None);
    }

    #[test]
    fn a_load_that_the_machine_cannot_send_is_late() {
        assert!((late_share(&[100, 89, 95, 130], 100.0) - 0.25).abs() < 1e-9);
    }

    #[test]
    fn a_moment_of_refusals_is_not_worse_and_six_seconds_are() {
        let before = [10; 5];
        let worse = |after: &[u32]| made_worse(&of(&[&before, after].concat()), 5_000);
        assert_eq!(worse(&[40, 40, 40, 40, 40, 10, 40]), None);
        assert_eq!(worse(&[12; 10]), None);
        assert!((worse(&[13; 6]).unwrap() - 0.13).abs() < 1e-9);
        assert!((share(&of(&[0, 10, 20]), 1_000, 3_000) - 0.15).abs() < 1e-9);
    }
}
