//! Sums over equal steps of time, of which the newest are kept.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

/// Units and throttled requests of one step.
pub(super) type Cell = [f32; 2];

/// The newest cells of one row.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Ring {
    /// The number of the step behind the newest cell: its begin over its length.
    end: u64,
    cells: VecDeque<Cell>,
}

impl Ring {
    /// Adds to the cells of steps of `step` milliseconds between two times, to each by its part of that time. At most `most` cells are kept.
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
            if let Some(cell) = self.cell(at, most) {
                for (cell, sum) in cell.iter_mut().zip(sum) {
                    *cell += (sum * overlap as f64 / whole) as f32;
                }
            }
        }
    }

    /// The cell of that step; `None` if it is older than what is kept.
    fn cell(&mut self, at: u64, most: usize) -> Option<&mut Cell> {
        let kept = usize::try_from((at + 1).saturating_sub(self.end)).unwrap_or(usize::MAX);
        if kept >= most || self.cells.is_empty() {
            self.cells.clear();
            self.cells.push_back([0.0; 2]);
            self.end = at + 1;
        } else {
            self.cells.extend(std::iter::repeat_n([0.0; 2], kept));
            self.end += kept as u64;
            self.cells.drain(..self.cells.len().saturating_sub(most));
        }
        let back = usize::try_from(self.end - 1 - at).ok().filter(|back| *back < most)?;
        while self.cells.len() <= back {
            self.cells.push_front([0.0; 2]);
        }
        let index = self.cells.len() - 1 - back;
        self.cells.get_mut(index)
    }

    /// The cells of `most` steps from `first` on; zeros where there are none.
    pub(super) fn shown(&self, first: u64, most: usize) -> impl Iterator<Item = Cell> + '_ {
        let begin = self.end - (self.cells.len() as u64).min(self.end);
        (first..first + most as u64).map(move |at| {
            let index = at.checked_sub(begin).and_then(|index| usize::try_from(index).ok());
            index.and_then(|index| self.cells.get(index)).copied().unwrap_or_default()
        })
    }

    /// Whether it has no more cells than it may, as one that was read back must.
    pub(super) fn fits(&self, most: usize) -> bool {
        self.cells.len() <= most && self.cells.len() as u64 <= self.end
    }
}
