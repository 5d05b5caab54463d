//! Sums over equal steps of time, of which the newest are kept.
//!
//! The newest step is summed up in full precision; older ones, which hardly change any more, are
//! [packed](super::packed).

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::packed::Packed;

/// Units and throttled requests of one step.
pub(super) type Cell = [f32; 2];

/// The fewest steps by which the room for older ones grows.
const GROWTH: usize = 8;

/// The newest cells of one row.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "SavedRing", into = "SavedRing")]
pub(super) struct Ring {
    /// The number of the step behind the newest cell: its begin over its length. 0 where there are
    /// no cells.
    end: u64,
    newest: Cell,
    older: VecDeque<[Packed; 2]>,
}

/// A ring in a file.
#[derive(Serialize, Deserialize)]
struct SavedRing {
    end: u64,
    cells: Vec<Cell>,
}

impl From<SavedRing> for Ring {
    fn from(mut saved: SavedRing) -> Self {
        let Some(newest) = saved.cells.pop() else { return Ring::default() };
        let older = saved.cells.into_iter().map(|cell| cell.map(Packed::new)).collect();
        Ring { end: saved.end, newest, older }
    }
}

impl From<Ring> for SavedRing {
    fn from(ring: Ring) -> Self {
        let mut cells: Vec<Cell> = ring.older.iter().map(|cell| cell.map(Packed::value)).collect();
        cells.extend((ring.end > 0).then_some(ring.newest));
        SavedRing { end: ring.end, cells }
    }
}

impl Ring {
    /// Adds to the cells of steps of `step` milliseconds between two times, to each by its part of
    /// that time. At most `most` cells are kept.
    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        reason = "shares of sums of single precision"
    )]
    pub(super) fn add(&mut self, step: u64, most: usize, from: u64, to: u64, sum: [f64; 2]) {
        let last = to.saturating_sub(1) / step;
        let oldest = (last + 1).saturating_sub(most as u64);
        let whole = (to - from).max(1) as f64;
        for at in (from / step).max(oldest)..=last {
            let overlap = to.min((at + 1) * step) - from.max(at * step).min(to);
            self.add_at(at, most, sum.map(|sum| (sum * overlap as f64 / whole) as f32));
        }
    }

    /// Adds to the cell of that step, unless it is older than what is kept.
    fn add_at(&mut self, at: u64, most: usize, more: Cell) {
        if self.is_over(at, most) {
            self.clear();
            self.end = at + 1;
        }
        while self.end <= at {
            self.push_back(self.newest.map(Packed::new));
            self.newest = [0.0; 2];
            self.end += 1;
        }
        self.older.drain(..self.older.len().saturating_sub(most - 1));
        let plus = |cell: Cell| [cell[0] + more[0], cell[1] + more[1]];
        let Some(back) = (self.end - 1 - at).checked_sub(1) else {
            self.newest = plus(self.newest);
            return;
        };
        let Some(back) = usize::try_from(back).ok().filter(|back| *back + 1 < most) else { return };
        while self.older.len() <= back {
            self.older.push_front([Packed::default(); 2]);
        }
        let index = self.older.len() - 1 - back;
        if let Some(cell) = self.older.get_mut(index) {
            *cell = plus(cell.map(Packed::value)).map(Packed::new);
        }
    }

    /// Room grows by an eighth: a deque by itself would double it.
    fn push_back(&mut self, cell: [Packed; 2]) {
        if self.older.len() == self.older.capacity() {
            self.older.reserve_exact((self.older.len() / 8).max(GROWTH));
        }
        self.older.push_back(cell);
    }

    /// Forgets all cells if none of the `most` steps that end with `now` has one.
    pub(super) fn trim(&mut self, now: u64, most: usize) {
        if self.is_over(now, most) {
            self.clear();
        }
    }

    fn is_over(&self, now: u64, most: usize) -> bool {
        self.end == 0 || now >= self.end + most as u64 - 1
    }

    fn clear(&mut self) {
        *self = Ring::default();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.end == 0
    }

    /// What it takes beside itself.
    pub(super) fn bytes(&self) -> usize {
        self.older.capacity() * size_of::<[Packed; 2]>()
    }

    /// The cells of `most` steps from `first` on; zeros where there are none.
    pub(super) fn shown(&self, first: u64, most: usize) -> impl Iterator<Item = Cell> + '_ {
        (first..first + most as u64).map(move |at| match self.end.checked_sub(at + 1) {
            None => Cell::default(),
            Some(0) => self.newest,
            Some(back) => {
                let index = usize::try_from(back).ok().and_then(|back| self.older.len().checked_sub(back));
                index
                    .and_then(|index| self.older.get(index))
                    .map_or_else(Cell::default, |cell| cell.map(Packed::value))
            }
        })
    }

    /// Whether it has no more cells than it may, as one that was read back must.
    pub(super) fn fits(&self, most: usize) -> bool {
        self.older.len() < most
            && self.older.len() as u64 <= self.end
            && self.newest.iter().all(|sum| sum.is_finite())
    }
}
