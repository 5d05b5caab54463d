//! The windows in which a key burned: since when, and their mean.

use heatsink_env::MonotonicInstant;

use super::share::{Share, measured_on};
use crate::KeyLoad;
use crate::advice::THROTTLED;
use crate::detect::Kind;
use crate::{PARTITION_READS, PARTITION_WRITES};

/// Windows over which the load of a burning key is averaged: of a key of which three requests are
/// drawn a second, fewer say nothing for certain.
const MEAN_OF: f64 = 30.0;
/// So many windows without a sign do not end it, nor do more of them in which fewer requests were
/// counted than that: of few that are drawn, none may be a refused one.
const QUIET: u8 = 2;
const QUIET_COUNTED: f64 = 50.0;
/// So many do, whatever was counted.
const QUIET_MOST: u8 = 20;
/// A key below this many units a second is not what fills a partition.
const LEAST_UNITS: f64 = 20.0;

/// A key that burns. The window in which it began is not in the mean: the load may have begun
/// within it.
#[derive(Clone, Debug)]
pub(super) struct Hot {
    pub(super) since: MonotonicInstant,
    pub(super) windows: f64,
    pub(super) mean: KeyLoad,
    quiet: u8,
    /// Requests that were counted in the quiet windows.
    quiet_counted: f64,
}

impl Hot {
    /// What follows from one more window; `None`: it does not burn.
    pub(super) fn next(
        before: Option<Hot>,
        now: MonotonicInstant,
        load: &KeyLoad,
        shards: usize,
    ) -> Option<Hot> {
        let burns = burns(load, shards);
        let Some(before) = before else {
            // The window that shows it is over when it is looked at.
            return burns.then(|| Hot {
                since: a_window_before(now),
                windows: 0.0,
                mean: load.clone(),
                quiet: 0,
                quiet_counted: 0.0,
            });
        };
        let counted = load.writes_refused.counted + load.reads_refused.counted;
        let (quiet, quiet_counted) =
            if burns { (0, 0.0) } else { (before.quiet + 1, before.quiet_counted + counted) };
        // An older gateway tells no counts.
        let is_seen = quiet_counted >= QUIET_COUNTED || counted <= 0.0;
        if quiet > QUIET && is_seen || quiet > QUIET_MOST {
            return None;
        }
        let windows = (before.windows + 1.0).min(MEAN_OF);
        let mut mean = before.mean.times(1.0 - 1.0 / windows);
        mean.add(&load.times(1.0 / windows));
        let mean = if windows > 1.0 { mean } else { load.clone() };
        Some(Hot { windows, mean, quiet, quiet_counted, ..before })
    }

    /// A share of the requests of that kind, as it was measured.
    pub(super) fn share(&self, kind: Kind, share: f64) -> Share {
        Share { share, measured_on: measured_on(&self.mean, kind, self.windows.max(1.0)) }
    }
}

fn a_window_before(now: MonotonicInstant) -> MonotonicInstant {
    MonotonicInstant(now.0.saturating_sub(crate::detect::WINDOW * 1_000_000))
}

/// Whether a window shows that the key burns, or one of its shards. It may be chance.
fn burns(load: &KeyLoad, shards: usize) -> bool {
    if load.writes + load.reads < LEAST_UNITS {
        return false;
    }
    let refused = |throttled: f64, requests: f64| requests > 0.0 && throttled / requests >= THROTTLED;
    let of_kind = |kind| refused(load.refused(kind).throttled, load.refused(kind).requests);
    let is_over = |kind| over(load, kind, shards) >= 1.0;
    refused(load.throttled, load.requests)
        || [Kind::Write, Kind::Read].into_iter().any(|kind| of_kind(kind) || is_over(kind))
        || load.slots.iter().any(|slot| refused(slot.throttled, slot.requests))
}

/// Which share of its partitions' ceiling the key certainly asks for, if each shard has its own.
#[allow(clippy::cast_precision_loss, reason = "at most 1,000")]
pub(super) fn over(load: &KeyLoad, kind: Kind, shards: usize) -> f64 {
    load.least(kind) / shards.max(1) as f64 / ceiling(kind)
}

/// Units a second that a partition accepts.
pub(super) fn ceiling(kind: Kind) -> f64 {
    match kind {
        Kind::Write => PARTITION_WRITES,
        Kind::Read => PARTITION_READS,
    }
}
