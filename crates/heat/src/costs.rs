//! What requests of one key and kind cost when they were carried out: what those are counted by of
//! which the store does not tell, because it refused them or was not asked.
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
/// So many costs of a part that all were what sizes show say that those of a key that is not known
/// are so too.
const MANY: u16 = 64;
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
    /// How many of the newest costs, one after another, were what sizes show; at most [`MEMORY`].
    as_sized: u16,
    mean: f32,
    /// The mean of their squares.
    square: f32,
}

impl Costs {
    /// Nothing is learned yet. `seed` decides which keys meet: clients must not know it.
    pub fn new(seed: u64) -> Self {
        Costs { hash: FixedState::with_seed(seed), cells: Vec::new() }
    }

    /// A request was carried out, and cost so many thousandths of units. `sized`: what the sizes
    /// that the request and its answer show are to cost.
    #[allow(clippy::cast_precision_loss, reason = "a mean")]
    pub fn learn(&mut self, of: CostOf<'_>, units: u64, sized: Option<u64>) {
        if self.cells.is_empty() {
            self.cells = vec![Cell::default(); CELLS];
        }
        for of in [of, CostOf { key: None, ..of }] {
            let (place, tag) = self.place(of);
            if let Some(cell) = self.cells.get_mut(place) {
                cell.learn(tag, units as f32, sized == Some(units));
            }
        }
    }

    /// What such a request costs, by those that were carried out; `None` where none was, or where
    /// it is forgotten.
    pub fn estimate(&self, of: CostOf<'_>) -> Option<Cost> {
        self.cell(of).map(Cell::estimate)
    }

    /// The same for a request that was carried out, and whose sizes show that it is to cost `sized`:
    /// that is right where it was right so far.
    pub fn estimate_sized(&self, of: CostOf<'_>, sized: Option<u64>) -> Option<Cost> {
        let exact = sized.map(|units| Cost { units, deviation: 0 });
        match self.cell(of) {
            Some(cell) if cell.as_sized >= cell.count.min(FEW) => exact.or_else(|| Some(cell.estimate())),
            Some(cell) => Some(cell.estimate()),
            None => {
                let all = self.cell(CostOf { key: None, ..of });
                match all {
                    Some(all) if exact.is_none() || all.as_sized < MANY => Some(all.estimate()),
                    _ => exact,
                }
            }
        }
    }

    fn cell(&self, of: CostOf<'_>) -> Option<&Cell> {
        let (place, tag) = self.place(of);
        self.cells.get(place).filter(|cell| cell.tag == tag && cell.count > 0)
    }

    #[allow(clippy::cast_possible_truncation, reason = "the upper and the lower half")]
    fn place(&self, of: CostOf<'_>) -> (usize, u32) {
        let hash = self.hash.hash_one((of.part, of.kind, of.key));
        (hash as usize % CELLS, (hash >> 32) as u32)
    }
}

impl Cell {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "no cost is negative")]
    fn estimate(&self) -> Cost {
        let mean = f64::from(self.mean);
        let variance = (f64::from(self.square) - mean * mean).max(0.0);
        // Below a thousandth of the mean it is what 32 bits round.
        let deviation = CAUTION * variance.sqrt();
        let deviation = if deviation * 1_000.0 > mean { deviation } else { 0.0 };
        let deviation = if self.count < FEW { deviation.max(mean / 2.0) } else { deviation };
        Cost { units: mean.round() as u64, deviation: deviation.round() as u64 }
    }

    fn learn(&mut self, tag: u32, units: f32, is_as_sized: bool) {
        if self.tag != tag && self.count > 0 {
            self.count -= 1;
            return;
        }
        if self.tag != tag {
            *self = Cell { tag, ..Cell::default() };
        }
        self.count = (self.count + 1).min(MEMORY);
        self.as_sized = if is_as_sized { (self.as_sized + 1).min(MEMORY) } else { 0 };
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
            costs.learn(of(RequestKind::Update, Some("large")), 60_000, None);
            costs.learn(of(RequestKind::Update, Some("small")), 2_000, None);
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
                costs.learn(CostOf { part, kind, key: Some("hot") }, 5_000, None);
            }
            costs.learn(CostOf { part, kind, key: Some(&format!("cold-{at}")) }, 500, None);
        }
        assert_eq!(
            costs.estimate(CostOf { part, kind, key: Some("hot") }),
            Some(Cost { units: 5_000, deviation: 0 })
        );
    }

    #[test]
    fn sizes_are_believed_where_they_were_right_so_far() {
        let (mut costs, part) = (Costs::new(3), part());
        let of = |key| CostOf { part, kind: RequestKind::Put, key: Some(key) };
        let sized = |costs: &Costs, key, units| {
            costs.estimate_sized(of(key), Some(units)).map(|cost| (cost.units, cost.deviation))
        };
        assert_eq!(sized(&costs, "new", 2_000), Some((2_000, 0)));
        (0..100).for_each(|at| costs.learn(of("plain"), 1_000 + at % 3, Some(1_000 + at % 3)));
        assert_eq!(sized(&costs, "plain", 7_000), Some((7_000, 0)));
        assert_eq!(sized(&costs, "new", 2_000), Some((2_000, 0)));
        // A larger item was there before.
        (0..20).for_each(|_| costs.learn(of("replaces"), 60_000, Some(1_000)));
        assert_eq!(sized(&costs, "replaces", 1_000), Some((60_000, 0)));
        assert_eq!(sized(&costs, "plain", 7_000), Some((7_000, 0)));
        let (units, deviation) = sized(&costs, "new", 1_000).unwrap();
        assert!(units > 5_000 && deviation > 20_000, "{units} {deviation}");
        costs.learn(of("plain"), 9_000, Some(1_000));
        assert_ne!(sized(&costs, "plain", 7_000), Some((7_000, 0)));
        assert_eq!(costs.estimate_sized(of("plain"), None), costs.estimate(of("plain")));
    }
}
