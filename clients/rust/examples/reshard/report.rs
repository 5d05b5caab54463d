//! What the scenario is told: faults as they are found, and at the end what was called, how it
//! ended, second by second, and what must lie where.

use std::collections::{BTreeMap, HashSet};
use std::process::ExitCode;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Serialize;
use serde_json::{Value as Json, json};

use crate::calls::{Failed, Failure};

/// The most faults that are told of in full.
const MOST: usize = 100;

/// One second's writes of items.
#[derive(Default, Serialize)]
struct Second {
    accepted: usize,
    throttled: usize,
    failed: usize,
    /// Write units of the table and its local indexes.
    units: f64,
}

#[derive(Default)]
struct Counts {
    calls: BTreeMap<&'static str, u64>,
    errors: BTreeMap<String, u64>,
    seconds: BTreeMap<u64, Second>,
    acknowledged: usize,
    refused: usize,
    unknown: usize,
    longest: Duration,
    faults: usize,
    told: HashSet<(String, String)>,
}

/// All of it.
#[derive(Default)]
pub struct Report(Mutex<Counts>);

impl Report {
    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A call was sent.
    pub fn call(&self, operation: &'static str) {
        *self.counts().calls.entry(operation).or_default() += 1;
    }

    /// A call was answered as it should, after so long.
    pub fn answered(&self, took: Duration) {
        let mut counts = self.counts();
        counts.longest = counts.longest.max(took);
    }

    /// A call failed.
    pub fn failed(&self, failed: &Failed) {
        *self.counts().errors.entry(failed.name.clone()).or_default() += 1;
    }

    /// So many writes of items were acknowledged in this second, for so many units.
    pub fn accepted(&self, second: u64, items: usize, units: f64) {
        let mut counts = self.counts();
        counts.acknowledged += items;
        let of = counts.seconds.entry(second).or_default();
        of.accepted += items;
        of.units += units;
    }

    /// So many ended otherwise.
    pub fn lost(&self, second: u64, items: usize, how: Failure) {
        let mut counts = self.counts();
        if how == Failure::Unknown {
            counts.unknown += items;
        } else {
            counts.refused += items;
        }
        let of = counts.seconds.entry(second).or_default();
        match how {
            Failure::Throttled => of.throttled += items,
            // What the condition of a write refuses was carried out as it should be.
            Failure::Condition => of.accepted += items,
            _ => of.failed += items,
        }
    }

    /// Tells of a fault, once for each item and kind.
    pub fn fault(&self, kind: &str, key: &str, sk: &str, text: &str) {
        let mut counts = self.counts();
        if !counts.told.insert((kind.to_owned(), sk.to_owned())) {
            return;
        }
        counts.faults += 1;
        if counts.faults <= MOST {
            println!("{}", json!({ "fault": kind, "pk": key, "sk": sk, "text": text }));
        }
    }

    /// Tells everything, and how to exit.
    pub fn tell(&self, items: &[Json]) -> ExitCode {
        let counts = self.counts();
        let report = json!({
            "calls": counts.calls, "errors": counts.errors, "seconds": counts.seconds, "acknowledged": counts.acknowledged,
            "refused": counts.refused, "unknown": counts.unknown, "longest": counts.longest.as_secs_f64(), "faults": counts.faults, "items": items,
        });
        println!("{}", json!({ "report": report }));
        ExitCode::from(u8::from(counts.faults > 0))
    }
}
