//! How hot the hottest keys were: seconds for ten minutes, minutes for six hours, ten minutes for
//! four days, hours for 28 days.
//!
//! A row for each key of a part, and in it one for each of its shards where they are measured. Rows
//! and bytes are bounded: a hotter key takes the place of the coldest one. What a coarser step
//! shows is the sum of the finer ones.
//!
//! Sans-IO: windows and the time in, rates out. It is saved and read back as a value (serde). Not
//! here: which keys are hot now (`detect`), files.

mod burned;
mod map;
mod packed;
mod ring;
mod row;
mod span;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

pub use burned::Burned;
pub use map::{Map, MapRow, MapShard};
pub use span::Span;

use crate::detect::{PartHeat, PartName, ShownKey};
use row::{Row, Window};

/// The most rows. Those that are warm for an hour take 3 KB each, those that are for 28 days 10 KB.
pub const ROWS: usize = 1_000;
/// The most bytes that all rows take.
pub const BYTES: usize = 4 << 20;

/// A new key takes the place of one whose fading sum is below so many windows of its own.
const WINDOWS: f64 = 10.0;
/// What a new row takes at most before it is added to again, beside its key.
const NEW: usize = 1_024;

/// A key of a part.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RowName {
    /// The part.
    pub part: PartName,
    /// The key.
    pub key: ShownKey,
}

impl RowName {
    /// What it takes in the table of rows, with the row's place there: a table is between half and
    /// all full.
    fn bytes(&self) -> usize {
        2 * size_of::<(RowName, Box<Row>)>() + self.key.text.len()
    }
}

/// The rows of one gateway.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct History {
    rows: HashMap<RowName, Box<Row>>,
    /// What they take.
    bytes: usize,
}

/// A history as it is saved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Saved {
    rows: Vec<(RowName, Row)>,
}

impl History {
    /// Takes a window that ended at `now` (milliseconds since 1970) and took `window` milliseconds.
    /// `shards` tells how many the key of a part has.
    #[allow(clippy::cast_precision_loss, reason = "milliseconds")]
    pub fn add(
        &mut self,
        now: u64,
        window: u64,
        parts: &[PartHeat],
        shards: impl Fn(&PartName, &ShownKey) -> u16,
    ) {
        let seconds = window as f64 / 1_000.0;
        let window = Window { from: now.saturating_sub(window), to: now };
        let mut coldest = Coldest::default();
        for part in parts {
            for key in &part.keys {
                // What is certainly the key's own.
                let units = (key.units_per_s - key.error_units_per_s) * seconds;
                let name = RowName { part: part.name.clone(), key: key.key.clone() };
                if units <= 0.0 || !self.has_room(&name, now, units, &mut coldest) {
                    continue;
                }
                let shards = shards(&name.part, &name.key);
                let before = self.rows.get(&name).map(|row| row.bytes());
                self.bytes += before.map_or_else(|| name.bytes(), |_| 0);
                let row = self.rows.entry(name).or_default();
                row.has_shards(window.from, shards);
                row.add(window, [units, key.refused.all.per_s * seconds], &key.shards);
                self.bytes = self.bytes + row.bytes() - before.unwrap_or_default();
            }
        }
        self.shrink(now);
    }

    /// Whether the key has a row, or gets one.
    fn has_room(&mut self, name: &RowName, now: u64, units: f64, coldest: &mut Coldest) -> bool {
        if self.rows.contains_key(name) || self.fits(name) {
            return true;
        }
        let Some((sum, other)) = coldest.next(self, now) else { return self.fits(name) };
        // To list them may have made room.
        let is_colder = sum < units * WINDOWS;
        if is_colder && !self.fits(name) {
            return self.remove(&other);
        }
        coldest.order.push((sum, other));
        self.fits(name)
    }

    fn fits(&self, name: &RowName) -> bool {
        self.rows.len() < ROWS && self.bytes + name.bytes() + NEW <= BYTES
    }

    /// Drops the coldest rows where all have grown too large. They are listed anew: the order of
    /// before leaves out those that were added to since.
    fn shrink(&mut self, now: u64) {
        let mut coldest = Coldest::default();
        while self.bytes > BYTES
            && let Some((_, name)) = coldest.next(self, now)
        {
            self.remove(&name);
        }
    }

    fn remove(&mut self, name: &RowName) -> bool {
        let removed = self.rows.remove(name);
        if let Some(row) = &removed {
            self.bytes = self.bytes.saturating_sub(row.bytes() + name.bytes());
        }
        removed.is_some()
    }

    /// Forgets what no map shows any more.
    fn trim(&mut self, now: u64) {
        self.rows.values_mut().for_each(|row| row.trim(now));
        self.rows.retain(|_, row| !row.is_empty());
        self.bytes = self.counted();
    }

    fn counted(&self) -> usize {
        self.rows.iter().map(|(name, row)| name.bytes() + row.bytes()).sum()
    }

    /// When requests for a key were last refused; `None` where none were, or nothing is kept of it.
    pub fn burned(&self, name: &RowName, now: u64) -> Option<Burned> {
        self.rows.get(name)?.burned(now)
    }

    /// The bytes that the rows take.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// What [`read`](Self::read) takes.
    pub fn save(&self) -> Saved {
        Saved { rows: self.rows.iter().map(|(name, row)| (name.clone(), Row::clone(row))).collect() }
    }

    /// A history that was saved. Rows that no history has saved so are left out.
    pub fn read(saved: Saved) -> Self {
        let sound = saved.rows.into_iter().filter(|(_, row)| row.is_sound());
        let rows = sound.take(ROWS).map(|(name, row)| (name, Box::new(row))).collect();
        let mut history = History { rows, bytes: 0 };
        history.bytes = history.counted();
        let newest = history.rows.values().map(|row| row.at()).max().unwrap_or_default();
        history.shrink(newest);
        history
    }
}

/// The rows in the order in which they are dropped, as far as that is asked for within one window:
/// to list them is work.
#[derive(Default)]
struct Coldest {
    is_listed: bool,
    /// Fading sums and names, the coldest last.
    order: Vec<(f64, RowName)>,
}

impl Coldest {
    fn list(&mut self, history: &mut History, now: u64) {
        history.trim(now);
        self.is_listed = true;
        self.order = history.rows.iter().map(|(name, row)| (row.faded(now), name.clone())).collect();
        self.order.sort_by(|a, b| b.0.total_cmp(&a.0));
    }

    /// The coldest row that was not added to since it was listed.
    fn next(&mut self, history: &mut History, now: u64) -> Option<(f64, RowName)> {
        if !self.is_listed {
            self.list(history, now);
        }
        loop {
            let (sum, name) = self.order.pop()?;
            if history.rows.get(&name).is_some_and(|row| row.faded(now) <= sum) {
                return Some((sum, name));
            }
        }
    }
}
