//! How hot the hottest keys were: seconds for ten minutes, minutes for six hours, ten minutes for four days, hours for 28 days.
//!
//! A bounded number of rows, one for each key of a part. A hotter key takes the row of the coldest one. What a coarser step shows is the sum of the finer
//! ones.
//!
//! Sans-IO: windows and the time in, rates out. It is saved and read back as a value (serde). Not here: which keys are hot now (`detect`), files.

mod ring;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, VecDeque};

use serde::{Deserialize, Serialize};

use crate::detect::{PartHeat, PartName, ShownKey};
use ring::Ring;

/// The most rows. A row takes at most 18 KB.
pub const ROWS: usize = 200;

/// The newest changes of a key's shard count that are kept.
const CHANGES: usize = 16;

/// After this time a row counts half against a new key, in milliseconds.
const HALF: f64 = 600_000.0;
/// A new key takes a row whose fading sum is below so many windows of its own.
const WINDOWS: f64 = 10.0;

/// How far back, and in which steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Span {
    /// Ten minutes, by the second.
    TenMinutes,
    /// Six hours, by the minute.
    SixHours,
    /// Four days, by ten minutes.
    FourDays,
    /// 28 days, by the hour.
    FourWeeks,
}

impl Span {
    const ALL: [Span; 4] = [Span::TenMinutes, Span::SixHours, Span::FourDays, Span::FourWeeks];

    /// By its name: `10m`, `6h`, `4d`, `28d`.
    pub fn by_name(name: &str) -> Option<Span> {
        match name {
            "10m" => Some(Span::TenMinutes),
            "6h" => Some(Span::SixHours),
            "4d" => Some(Span::FourDays),
            "28d" => Some(Span::FourWeeks),
            _ => None,
        }
    }

    /// The length of a step in milliseconds.
    pub const fn step(self) -> u64 {
        match self {
            Span::TenMinutes => 1_000,
            Span::SixHours => 60_000,
            Span::FourDays => 600_000,
            Span::FourWeeks => 3_600_000,
        }
    }

    /// How many steps.
    pub const fn columns(self) -> usize {
        match self {
            Span::TenMinutes => 600,
            Span::SixHours => 360,
            Span::FourDays => 576,
            Span::FourWeeks => 672,
        }
    }
}

/// A key of a part.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RowName {
    /// The part.
    pub part: PartName,
    /// The key.
    pub key: ShownKey,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Row {
    rings: [Ring; 4],
    /// The fading sum of its units at `at`.
    sum: f64,
    at: u64,
    /// Since when the key had how many shards, the newest last; one before the first.
    shards: VecDeque<(u64, u16)>,
}

/// The rows of one gateway.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct History {
    rows: HashMap<RowName, Row>,
}

/// A history as it is saved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Saved {
    rows: Vec<(RowName, Row)>,
}

/// Rows and columns of one span.
#[derive(Clone, Debug, PartialEq)]
pub struct Map {
    /// When the first column begins, in milliseconds since 1970.
    pub from: u64,
    /// The length of a column in milliseconds.
    pub step: u64,
    /// How many there are.
    pub columns: usize,
    /// Those with any heat, hottest first.
    pub rows: Vec<MapRow>,
}

/// A row of a [`Map`].
#[derive(Clone, Debug, PartialEq)]
pub struct MapRow {
    /// Of what.
    pub name: RowName,
    /// Capacity units a second, by column.
    pub units: Vec<f64>,
    /// Throttled requests a second, by column.
    pub throttled: Vec<f64>,
    /// From which column on the key had how many shards; one before the first. In a column in which that changed, it is the later number.
    pub shards: Vec<(usize, u16)>,
}

impl History {
    /// Takes a window that ended at `now` (milliseconds since 1970) and took `window` milliseconds. `shards` tells how many the key of a part has.
    #[allow(clippy::cast_precision_loss, reason = "milliseconds")]
    pub fn add(
        &mut self,
        now: u64,
        window: u64,
        parts: &[PartHeat],
        shards: impl Fn(&PartName, &ShownKey) -> u16,
    ) {
        let seconds = window as f64 / 1_000.0;
        for part in parts {
            for key in &part.keys {
                // What is certainly the key's own.
                let units = (key.units_per_s - key.error_units_per_s) * seconds;
                let name = RowName { part: part.name.clone(), key: key.key.clone() };
                if units <= 0.0 || !self.has_row(&name, now, units) {
                    continue;
                }
                let shards = shards(&name.part, &name.key);
                let row = self.rows.entry(name).or_default();
                row.has_shards(now.saturating_sub(window), shards);
                row.sum = row.faded(now) + units;
                row.at = now;
                for (ring, span) in row.rings.iter_mut().zip(Span::ALL) {
                    let sum = [units, key.throttled_per_s * seconds];
                    ring.add(span.step(), span.columns(), now.saturating_sub(window), now, sum);
                }
            }
        }
    }

    /// Whether the key has a row or gets one.
    fn has_row(&mut self, name: &RowName, now: u64, units: f64) -> bool {
        if self.rows.contains_key(name) || self.rows.len() < ROWS {
            return true;
        }
        let rows = self.rows.iter().map(|(name, row)| (name, row.faded(now)));
        let Some((coldest, sum)) = rows.min_by(|a, b| a.1.total_cmp(&b.1)) else { return false };
        let taken = sum < units * WINDOWS;
        if taken {
            let coldest = coldest.clone();
            self.rows.remove(&coldest);
        }
        taken
    }

    /// The span that ends at `now`, with at most so many rows.
    #[allow(clippy::cast_precision_loss, reason = "milliseconds")]
    pub fn map(&self, span: Span, now: u64, rows: usize) -> Map {
        let (step, columns) = (span.step(), span.columns());
        let first = (now / step + 1).saturating_sub(columns as u64);
        let seconds = step as f64 / 1_000.0;
        let mut shown: Vec<(f64, MapRow)> = Vec::new();
        for (name, row) in &self.rows {
            let cells: Vec<_> = row.rings[span as usize].shown(first, columns).collect();
            let of =
                |what: usize| cells.iter().map(|cell| f64::from(cell[what]) / seconds).collect::<Vec<_>>();
            let (units, throttled) = (of(0), of(1));
            let total: f64 = units.iter().sum();
            if total > 0.0 {
                let shards = row.changes(first, step);
                shown.push((total, MapRow { name: name.clone(), units, throttled, shards }));
            }
        }
        shown.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.name.key.text.cmp(&b.1.name.key.text)));
        shown.truncate(rows);
        let rows = shown.into_iter().map(|(_, row)| row).collect();
        Map { from: first * step, step, columns, rows }
    }

    /// What [`read`](Self::read) takes.
    pub fn save(&self) -> Saved {
        Saved { rows: self.rows.iter().map(|(name, row)| (name.clone(), row.clone())).collect() }
    }

    /// A history that was saved. Rows that no history has saved so are left out.
    pub fn read(saved: Saved) -> Self {
        let sound = |row: &Row| {
            row.sum.is_finite()
                && row.rings.iter().zip(Span::ALL).all(|(ring, span)| ring.fits(span.columns()))
                && row.shards.len() <= CHANGES
        };
        History { rows: saved.rows.into_iter().filter(|(_, row)| sound(row)).take(ROWS).collect() }
    }
}

impl Row {
    /// The fading sum at a time.
    #[allow(clippy::cast_precision_loss, reason = "milliseconds")]
    fn faded(&self, now: u64) -> f64 {
        self.sum * (-(now.saturating_sub(self.at) as f64) / HALF).exp2()
    }

    /// The key has so many shards at a time.
    fn has_shards(&mut self, at: u64, shards: u16) {
        if self.shards.back().map_or(1, |(_, shards)| *shards) == shards {
            return;
        }
        if self.shards.len() == CHANGES {
            self.shards.pop_front();
        }
        self.shards.push_back((at, shards));
    }

    /// The changes of its shards, by columns of `step` from the number `first` on.
    fn changes(&self, first: u64, step: u64) -> Vec<(usize, u16)> {
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
}
