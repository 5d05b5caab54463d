//! How far the reshard of the demo has come, and when.

use std::sync::{Mutex, PoisonError};

use heatsink_reshard::State;
use heatsink_workers::Progress;

use super::drained;
use super::ledger::Ledger;
use super::reached::Reached;
use crate::demo::bars::Bars;
use crate::demo::fleet::Fleet;

/// When the reshard came to what.
pub(super) struct Steps<'a> {
    pub ledger: &'a Ledger,
    pub fleet: &'a Fleet,
    pub bars: &'a Bars,
    pub seen: Mutex<Vec<Reached>>,
}

impl Steps<'_> {
    pub fn reached(&self, what: &str) {
        self.reached_at(what, self.ledger.millis());
    }

    pub fn reached_at(&self, what: &str, millis: u32) {
        self.bars.says(what.to_owned());
        let write_units = drained::write_units(&self.fleet.partitions());
        let reached = Reached { what: what.to_owned(), millis, write_units };
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).push(reached);
    }
}

impl Progress for Steps<'_> {
    fn state(&self, state: State) {
        match state {
            State::Moving { phase, closing: false } => self.reached(&format!("{phase:?}").to_uppercase()),
            State::Stable { settled: false, .. } => self.reached("STABLE"),
            _ => {}
        }
    }

    fn moved(&self, items: u64) {
        self.bars.says(format!("MOVE: {items} items moved"));
    }
}
