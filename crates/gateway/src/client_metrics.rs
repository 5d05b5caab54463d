//! What each client asks for, as metrics. Their label is the access key of a `[[client]]` section:
//! configuration, never what a request says of itself. Where no clients are known there are none.
//!
//! Not here: what all clients ask for together (`metrics`), which keys they make hot (`heat`).

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use heatsink_access::Caller;
use heatsink_heat::detect::{Access, Kind, Outcome};
use metrics::{Counter, counter};

use crate::outcome::OUTCOMES;

/// The most clients with metrics of their own; further ones are added up without names. A process
/// that reads its configuration again and again may see more than one configuration has.
const NAMED: usize = 200;

/// The clients that have asked so far.
#[derive(Default)]
pub(crate) struct ClientMetrics {
    named: RwLock<HashMap<Arc<str>, Arc<Counters>>>,
    others: OnceLock<Arc<Counters>>,
}

/// What a request that was counted stands for, by its accesses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct AskedUnits {
    /// Thousandths of read units, and of write units.
    pub(crate) units: [u64; 2],
    /// Reads and writes that were throttled.
    pub(crate) throttled: [u64; 2],
}

struct Counters {
    requests: [Counter; OUTCOMES.len()],
    denied: Counter,
    units: [Units; 2],
    throttled: [Counter; 2],
}

/// A counter holds whole units: what is less than one waits for more.
struct Units {
    thousandths: AtomicU64,
    counter: Counter,
}

impl AskedUnits {
    /// Adds an access of that kind.
    pub(crate) fn add(&mut self, kind: Kind, access: &Access<'_>) {
        let at = usize::from(kind == Kind::Write);
        let requests = u64::from(access.weight);
        self.units[at] += access.units * requests;
        self.throttled[at] += if access.outcome == Outcome::Done { 0 } else { requests };
    }
}

impl ClientMetrics {
    /// A request of this client was answered. `outcome`: its place among [`OUTCOMES`].
    pub(crate) fn answered(&self, caller: &Caller, outcome: usize) {
        if let Some(counter) = self.of(caller).requests.get(outcome) {
            counter.increment(1);
        }
    }

    /// A request of this client was refused: it may not do it.
    pub(crate) fn denied(&self, caller: &Caller) {
        self.of(caller).denied.increment(1);
    }

    /// A request of this client was counted, and stands for that.
    pub(crate) fn asked(&self, caller: &Caller, asked: &AskedUnits) {
        let counters = self.of(caller);
        for (counter, units) in counters.units.iter().zip(asked.units) {
            counter.add(units);
        }
        for (counter, throttled) in counters.throttled.iter().zip(asked.throttled) {
            counter.increment(throttled);
        }
    }

    fn of(&self, caller: &Caller) -> Arc<Counters> {
        let known = self.named.read().unwrap_or_else(PoisonError::into_inner);
        match known.get(caller.id()) {
            Some(counters) => Arc::clone(counters),
            None if known.len() >= NAMED => {
                Arc::clone(self.others.get_or_init(|| Arc::new(Counters::of(""))))
            }
            None => {
                drop(known);
                let mut named = self.named.write().unwrap_or_else(PoisonError::into_inner);
                let id = Arc::clone(caller.shared_id());
                Arc::clone(named.entry(id).or_insert_with_key(|id| Arc::new(Counters::of(id))))
            }
        }
    }
}

impl Counters {
    fn of(id: &str) -> Self {
        let client = || id.to_owned();
        let kinds = |metric: &'static str| {
            [Kind::Read, Kind::Write]
                .map(|kind| counter!(metric, "client" => client(), "kind" => kind.name()))
        };
        let units = |counter| Units { thousandths: AtomicU64::new(0), counter };
        Counters {
            requests: OUTCOMES.map(|outcome| {
                counter!("heatsink_client_requests_total", "client" => client(), "outcome" => outcome)
            }),
            denied: counter!("heatsink_client_refused_total", "client" => client(), "limit" => "rights"),
            units: kinds("heatsink_client_units_total").map(units),
            throttled: kinds("heatsink_client_throttled_total"),
        }
    }
}

impl Units {
    fn add(&self, thousandths: u64) {
        let before = self.thousandths.fetch_add(thousandths, Ordering::Relaxed);
        self.counter.increment(before.wrapping_add(thousandths) / 1_000 - before / 1_000);
    }
}
