//! What is kept of one key: its sums in steps of each length, since when it had how many shards,
//! and the sums of single shards where they are measured.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::ring::{Cell, Ring};
use super::span::Span;
use crate::detect::{SHARDS, ShardHeat};

/// The newest changes of a key's shard count that are kept.
const CHANGES: usize = 16;
/// After this time a row counts half against a new key, in milliseconds.
const HALF: f64 = 600_000.0;

/// One key of a part.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Row {
    rings: Rings,
    /// The fading sum of its units at `at`.
    sum: f64,
    at: u64,
    /// Since when the key had how many shards, the newest last; one before the first.
    shards: VecDeque<(u64, u16)>,
    /// By shard; as many as have been measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    measured: Vec<Rings>,
}

/// Sums in steps of each [`Span`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
struct Rings([Ring; 4]);

/// A time, in milliseconds since 1970.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    pub(super) from: u64,
    pub(super) to: u64,
}

impl Row {
    /// Adds what was counted in a window: units and throttled requests of the key, and a second of
    /// each of its shards that are measured.
    #[allow(clippy::cast_precision_loss, reason = "milliseconds")]
    pub(super) fn add(&mut self, window: Window, sums: [f64; 2], measured: &[ShardHeat]) {
        let seconds = (window.to - window.from) as f64 / 1_000.0;
        self.sum = self.faded(window.to) + sums[0];
        self.at = window.to;
        self.rings.add(window, sums);
        let measured = measured.get(..SHARDS).unwrap_or(measured);
        if measured.len() > self.measured.len() {
            self.measured.reserve_exact(measured.len() - self.measured.len());
            self.measured.resize_with(measured.len(), Rings::default);
        }
        for (rings, shard) in self.measured.iter_mut().zip(measured) {
            let sums = [shard.units_per_s * seconds, shard.throttled_per_s * seconds];
            if sums != [0.0; 2] {
                rings.add(window, sums);
            }
        }
    }

    /// The key has so many shards at a time.
    pub(super) fn has_shards(&mut self, at: u64, shards: u16) {
        if self.shards.back().map_or(1, |(_, shards)| *shards) == shards {
            return;
        }
        if self.shards.len() == CHANGES {
            self.shards.pop_front();
        }
        self.shards.push_back((at, shards));
    }

    /// The fading sum at a time.
    #[allow(clippy::cast_precision_loss, reason = "milliseconds")]
    pub(super) fn faded(&self, now: u64) -> f64 {
        self.sum * (-(now.saturating_sub(self.at) as f64) / HALF).exp2()
    }

    /// When it was last added to.
    pub(super) fn at(&self) -> u64 {
        self.at
    }

    /// The changes of its shards, by columns of `step` from the number `first` on.
    pub(super) fn changes(&self, first: u64, step: u64) -> Vec<(usize, u16)> {
        let mut changes: Vec<(usize, u16)> = Vec::new();
        for (at, shards) in &self.shards {
            let column = usize::try_from((at / step).saturating_sub(first)).unwrap_or(usize::MAX);
            if changes.last().is_some_and(|(last, _)| *last == column) {
                changes.pop();
            }
            changes.push((column, *shards));
        }
        changes
    }

    /// Its cells of a span, from the step of number `first` on.
    pub(super) fn cells(&self, span: Span, first: u64) -> impl Iterator<Item = Cell> + '_ {
        self.rings.cells(span, first)
    }

    /// Those of each shard that is measured.
    pub(super) fn shard_cells(
        &self,
        span: Span,
        first: u64,
    ) -> impl Iterator<Item = impl Iterator<Item = Cell> + '_> + '_ {
        self.measured.iter().map(move |rings| rings.cells(span, first))
    }

    /// Forgets what no map that ends at `now` shows.
    pub(super) fn trim(&mut self, now: u64) {
        self.rings.trim(now);
        self.measured.iter_mut().for_each(|rings| rings.trim(now));
        if self.measured.iter().all(Rings::is_empty) {
            self.measured = Vec::new();
        }
    }

    /// Whether no map shows it.
    pub(super) fn is_empty(&self) -> bool {
        self.rings.is_empty()
    }

    /// The bytes that it takes.
    pub(super) fn bytes(&self) -> usize {
        let measured: usize = self.measured.iter().map(Rings::bytes).sum();
        size_of::<Row>()
            + self.rings.bytes()
            + self.shards.capacity() * size_of::<(u64, u16)>()
            + self.measured.capacity() * size_of::<Rings>()
            + measured
    }

    /// Whether it is one that a history has saved.
    pub(super) fn is_sound(&self) -> bool {
        self.sum.is_finite()
            && self.rings.fit()
            && self.shards.len() <= CHANGES
            && self.measured.len() <= SHARDS
            && self.measured.iter().all(Rings::fit)
    }
}

impl Rings {
    fn add(&mut self, window: Window, sums: [f64; 2]) {
        for (ring, span) in self.0.iter_mut().zip(Span::ALL) {
            ring.add(span.step(), span.columns(), window.from, window.to, sums);
        }
    }

    fn cells(&self, span: Span, first: u64) -> impl Iterator<Item = Cell> + '_ {
        self.0[span as usize].shown(first, span.columns())
    }

    fn trim(&mut self, now: u64) {
        for (ring, span) in self.0.iter_mut().zip(Span::ALL) {
            ring.trim(now / span.step(), span.columns());
        }
    }

    fn is_empty(&self) -> bool {
        self.0.iter().all(Ring::is_empty)
    }

    fn bytes(&self) -> usize {
        self.0.iter().map(Ring::bytes).sum()
    }

    fn fit(&self) -> bool {
        self.0.iter().zip(Span::ALL).all(|(ring, span)| ring.fits(span.columns()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_changes_of_the_shard_count_are_kept() {
        let mut row = Row::default();
        (0..1_000).for_each(|at| row.has_shards(at, 1 + u16::try_from(at % 2).unwrap()));
        assert_eq!(row.shards.len(), CHANGES);
    }
}
