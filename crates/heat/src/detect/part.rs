//! One part of the traffic: reads or writes of one table or index, in two windows of time.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::access::{Access, Kind};
use super::key::Room;
use super::signs::Signs;
use super::space_saving::SpaceSaving;

/// Where all requests are counted, one in so many of a key's is examined for signs, the first among
/// them.
const EXAMINED: u64 = 8;

/// What a part is of.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PartName {
    /// The logical table; `None` for all parts beyond the most that are counted apart.
    pub table: Option<Arc<str>>,
    /// The index; `None` for the table itself.
    pub index: Option<Arc<str>>,
    /// Reads or writes.
    pub kind: Kind,
}

/// What was counted of all keys of a part in one window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Totals {
    /// Thousandths of capacity units.
    pub(super) units: u64,
    pub(super) requests: u64,
    pub(super) throttled: u64,
}

#[derive(Debug)]
pub(super) struct Window {
    /// The number of the window that it holds.
    pub(super) number: u64,
    pub(super) totals: Totals,
    pub(super) keys: SpaceSaving,
}

/// A window that is counted in, and the one before it.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) name: PartName,
    windows: [Window; 2],
}

impl Part {
    pub(super) fn new(name: PartName, most: usize) -> Self {
        let window = || Window { number: 0, totals: Totals::default(), keys: SpaceSaving::new(most) };
        Part { name, windows: [window(), window()] }
    }

    /// Counts one access in window `number`; `hash`: of its key. Gives the signs of the key if this
    /// access is to be examined.
    pub(super) fn count(
        &mut self,
        number: u64,
        access: &Access<'_>,
        hash: u64,
        room: &mut Room,
    ) -> Option<&mut Signs> {
        let Access { key, units, deviation, is_page, weight, outcome, client } = *access;
        let requests = u64::from(weight);
        let units_of_all = units * requests;
        let throttled = if outcome.reason().is_some() { requests } else { 0 };
        let window = self.live(number, room);
        window.totals.units += units_of_all;
        window.totals.requests += requests;
        window.totals.throttled += throttled;
        let counter = window.keys.add((key?, hash), units_of_all, client, room);
        let examined = weight > 1 || counter.requests.is_multiple_of(EXAMINED);
        counter.requests += requests;
        counter.counted = counter.counted.saturating_add(1);
        counter.refused.add(outcome, weight);
        if is_page {
            counter.pages += requests;
            counter.units_of_pages += units_of_all;
        }
        counter.largest = counter.largest.max(units);
        // What is not certain of a sum: which accesses were drawn, and what those cost that the
        // store did not tell of.
        if weight > 1 || deviation > 0 {
            counter.drawn += units_of_all;
            counter.variance += square(deviation * requests);
        }
        if weight > 1 {
            counter.variance += square(units_of_all);
        }
        examined.then_some(&mut counter.signs)
    }

    /// The window of that number, empty if nothing was counted in it yet.
    fn live(&mut self, number: u64, room: &mut Room) -> &mut Window {
        let [even, odd] = &mut self.windows;
        let window = if number.is_multiple_of(2) { even } else { odd };
        if window.number != number {
            window.number = number;
            window.totals = Totals::default();
            window.keys.clear(room);
        }
        window
    }

    /// What was counted in the window of that number, if anything was.
    pub(super) fn frozen(&self, number: u64) -> Option<&Window> {
        self.windows.iter().find(|window| window.number == number && window.totals.requests > 0)
    }

    /// Gives back the room of windows before that number.
    pub(super) fn drop_before(&mut self, number: u64, room: &mut Room) {
        for window in self.windows.iter_mut().filter(|window| window.number < number) {
            window.keys.clear(room);
            window.totals = Totals::default();
        }
    }
}

#[allow(clippy::cast_precision_loss, reason = "an estimate")]
fn square(units: u64) -> f64 {
    let units = units as f64;
    units * units
}
