//! What requests of one key and kind cost when they were carried out: what those are counted by of
//! which the store does not tell, because it refused them.
//!
//! Sans-IO. The costs of many keys share a table of fixed size. Where two keys meet in a cell, the
//! one that is asked for more often keeps it, so the keys that matter are known.
//!
//! Not here: what a request costs that the store tells of (`gateway`).

use std::hash::BuildHasher;

use foldhash::fast::FixedState;

use crate::detect::PartId;

/// Cells of the table, 16 bytes each.
const CELLS: usize = 16_384;
/// A mean is of about so many of the newest costs.
const MEMORY: u16 = 256;
/// Fewer costs than these say little of how far the next one may be off.
const FEW: u16 = 8;
/// How many standard deviations of one cost an estimate may be off: the mean is itself of few.
const CAUTION: f64 = 2.0;

/// What a request does. Those of one kind cost about the same for one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "says it all")]
pub enum RequestKind {
    Get,
    Query,
    Scan,
    Put,
    Update,
    Delete,
    ConditionCheck,
    /// A PartiQL statement that reads, and one that writes.
    Select,
    Change,
}

/// What a cost is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CostOf<'a> {
    /// Reads or writes of a table or an index.
    pub part: PartId,
    /// What the request does.
    pub kind: RequestKind,
    /// The text of the key; `None` for all keys of the part together.
    pub key: Option<&'a str>,
}

/// A cost, in thousandths of units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// The cost.
    pub units: u64,
    /// How far it may be off: a standard deviation. 0 where it is certain.
    pub deviation: u64,
}

/// The costs that were learned.
#[derive(Debug)]
pub struct Costs {
    hash: FixedState,
    cells: Vec<Cell>,
}

/// What was learned of one key, or of one part.
#[derive(Clone, Copy, Debug, Default)]
struct Cell {
    tag: u32,
    /// How many costs the mean is of, at most [`MEMORY`].
    count: u16,
    mean: f32,
    /// The mean of their squares.
    square: f32,
}

impl Costs {
    /// Nothing is learned yet. `seed` decides which keys meet: clients must not know it.
    pub fn new(seed: u64) -> Self {
        Costs { hash: FixedState::with_seed(seed), cells: Vec::new() }
    }

    /// A request was carried out, and cost so many thousandths of units.
    #[allow(clippy::cast_precision_loss, reason = "a mean")]
    pub fn learn(&mut self, of: CostOf<'_>, units: u64) {
        if self.cells.is_empty() {
            self.cells = vec![Cell::default(); CELLS];
        }
        for of in [of, CostOf { key: None, ..of }] {
            let (place, tag) = self.place(of);
            if let Some(cell) = self.cells.get_mut(place) {
                cell.learn(tag, units as f32);
            }
        }
    }

    /// What such a request costs, by those that were carried out; `None` where none was, or where
    /// it is forgotten.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "no cost is negative")]
    pub fn estimate(&self, of: CostOf<'_>) -> Option<Cost> {
        let (place, tag) = self.place(of);
        let cell = self.cells.get(place).filter(|cell| cell.tag == tag && cell.count > 0)?;
        let mean = f64::from(cell.mean);
        let variance = (f64::from(cell.square) - mean * mean).max(0.0);
        // Below a thousandth of the mean it is what 32 bits round.
        let deviation = CAUTION * variance.sqrt();
        let deviation = if deviation * 1_000.0 > mean { deviation } else { 0.0 };
        let deviation = if cell.count < FEW { deviation.max(mean / 2.0) } else { deviation };
        Some(Cost { units: mean.round() as u64, deviation: deviation.round() as u64 })
    }

    #[allow(clippy::cast_possible_truncation, reason = "the upper and the lower half")]
    fn place(&self, of: CostOf<'_>) -> (usize, u32) {
        let hash = self.hash.hash_one((of.part, of.kind, of.key));
        (hash as usize % CELLS, (hash >> 32) as u32)
    }
}

impl Cell {
    fn learn(&mut self, tag: u32, units: f32) {
        if self.tag != tag && self.count > 0 {
            self.count -= 1;
            return;
        }
        if self.tag != tag {
            *self = Cell { tag, ..Cell::default() };
        }
        self.count = (self.count + 1).min(MEMORY);
        let share = 1.0 / f32::from(self.count);
        self.mean += (units - self.mean) * share;
        self.square += (units * units - self.square) * share;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::detect::{Detector, Kind};

    fn part() -> PartId {
        Detector::new(1, 0).part(&Arc::from("games"), None, Kind::Write)
    }

    #[test]
    fn a_cost_is_of_its_key_and_kind_and_else_of_the_table() {
        let (mut costs, part) = (Costs::new(1), part());
        let of = |kind, key| CostOf { part, kind, key };
        for _ in 0..100 {
            costs.learn(of(RequestKind::Update, Some("large")), 60_000);
            costs.learn(of(RequestKind::Update, Some("small")), 2_000);
        }
        let units = |kind, key| costs.estimate(of(kind, key)).map(|cost| (cost.units, cost.deviation));
        assert_eq!(units(RequestKind::Update, Some("large")), Some((60_000, 0)));
        assert_eq!(units(RequestKind::Update, Some("small")), Some((2_000, 0)));
        assert_eq!(units(RequestKind::Update, Some("other")), None);
        assert_eq!(units(RequestKind::Delete, Some("large")), None);
        let (mean, deviation) = units(RequestKind::Update, None).unwrap();
        assert!((30_000..32_000).contains(&mean) && deviation > 29_000, "{mean} ± {deviation}");
    }

    #[test]
    fn a_key_that_is_asked_for_often_stays_known_among_very_many() {
        let (mut costs, part) = (Costs::new(2), part());
        let kind = RequestKind::Get;
        for at in 0..200_000 {
            if at % 20 == 0 {
                costs.learn(CostOf { part, kind, key: Some("hot") }, 5_000);
            }
            costs.learn(CostOf { part, kind, key: Some(&format!("cold-{at}")) }, 500);
        }
        assert_eq!(
            costs.estimate(CostOf { part, kind, key: Some("hot") }),
            Some(Cost { units: 5_000, deviation: 0 })
        );
    }
}
