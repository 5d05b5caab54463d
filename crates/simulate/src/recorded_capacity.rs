//! What a recording says of a table's own capacity: by what it took while it refused requests that
//! no single key explains.
//!
//! A request does not say what its table may take. A partition that is full shows as one key near
//! its ceiling; a table that is full refuses keys that are far below. Where two warm keys share a
//! partition the second is mistaken for the first: a scenario of one's own says better.
//!
//! Not here: the scenario that it becomes part of (`recorded_scenario`).

use std::collections::HashMap;

use heatsink_physics::{PARTITION_READS, PARTITION_WRITES};
use heatsink_trace::{Access, Operation};

use crate::recorded_load::WINDOW;

/// From this share of refused requests on a window counts.
const REFUSED: f64 = 0.01;
/// A key that takes this share of a partition's ceiling explains the refusals.
const NEAR: f64 = 0.85;

/// One table in one window, reads or writes.
#[derive(Default)]
struct Window<'a> {
    requests: f64,
    refused: f64,
    /// Units that were carried out, of all keys and by key.
    taken: f64,
    by_key: HashMap<&'a str, f64>,
}

/// What was asked of the tables of a recording, and what was refused.
#[derive(Default)]
pub(crate) struct Recorded<'a> {
    windows: HashMap<(&'a str, bool, u64), Window<'a>>,
}

impl<'a> Recorded<'a> {
    /// Takes an access. Those of indexes say nothing of their table.
    pub(crate) fn add(&mut self, access: &'a Access<'_>) {
        if access.index.is_some() {
            return;
        }
        let writes = matches!(access.op, Operation::Put | Operation::Update);
        let at = access.us * 1_000 / WINDOW;
        let window = self.windows.entry((&*access.table, writes, at)).or_default();
        let weight = f64::from(access.weight);
        window.requests += weight;
        if access.throttled {
            window.refused += weight;
            return;
        }
        let units = access.units as f64 / 1_000.0 * weight;
        window.taken += units;
        if let Some(key) = access.key.as_deref() {
            *window.by_key.entry(key).or_default() += units;
        }
    }

    /// The share of all requests that was refused.
    pub(crate) fn refused_share(&self) -> f64 {
        let sum = |of: fn(&Window<'_>) -> f64| self.windows.values().map(of).sum::<f64>();
        let requests = sum(|window| window.requests);
        if requests > 0.0 { sum(|window| window.refused) / requests } else { 0.0 }
    }

    /// Units a second that a table takes, of writes or of reads, where it was seen to refuse what
    /// comes above.
    pub(crate) fn limit(&self, table: &str, writes: bool) -> Option<f64> {
        let seconds = WINDOW as f64 / 1e9;
        #[allow(clippy::cast_precision_loss, reason = "thousands")]
        let ceiling = if writes { PARTITION_WRITES } else { PARTITION_READS } as f64;
        let full = self.windows.iter().filter(|((of, writing, _), window)| {
            let hottest = window.by_key.values().copied().fold(0.0, f64::max) / seconds;
            *of == table
                && *writing == writes
                && window.refused > REFUSED * window.requests
                && hottest < NEAR * ceiling
        });
        full.map(|(_, window)| window.taken / seconds).filter(|taken| *taken >= 1.0).max_by(f64::total_cmp)
    }
}
