//! The rows of a history over one span, as rates.

use super::ring::Cell;
use super::{Burned, History, RowName, Span};

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
    /// From which column on the key had how many shards; one before the first. In a column in which
    /// that changed, it is the later number.
    pub shards: Vec<(usize, u16)>,
    /// What was measured of each shard, by its number; empty where nothing was in this span. Where
    /// all of them have nothing in a column, they were not measured then.
    pub measured: Vec<MapShard>,
    /// When requests for the key were last refused, whatever the span.
    pub burned: Option<Burned>,
}

/// A shard of a [`MapRow`].
#[derive(Clone, Debug, PartialEq)]
pub struct MapShard {
    /// Capacity units a second that its physical requests took, by column.
    pub units: Vec<f64>,
    /// Throttled requests a second, by column; empty where there were none.
    pub throttled: Vec<f64>,
}

impl History {
    /// The span that ends at `now`, with at most so many rows.
    #[allow(clippy::cast_precision_loss, reason = "milliseconds")]
    pub fn map(&self, span: Span, now: u64, rows: usize) -> Map {
        let (step, columns) = (span.step(), span.columns());
        let first = (now / step + 1).saturating_sub(columns as u64);
        let seconds = step as f64 / 1_000.0;
        let mut shown: Vec<(f64, MapRow)> = Vec::new();
        for (name, row) in &self.rows {
            let [units, throttled] = rates(row.cells(span, first), seconds);
            let total: f64 = units.iter().sum();
            if total > 0.0 {
                let shards = row.changes(first, step);
                let measured = row.shard_cells(span, first).map(|cells| {
                    let [units, mut throttled] = rates(cells, seconds);
                    if throttled.iter().all(|rate| *rate == 0.0) {
                        throttled = Vec::new();
                    }
                    MapShard { units, throttled }
                });
                let mut measured: Vec<MapShard> = measured.collect();
                if measured.iter().flat_map(|shard| &shard.units).all(|rate| *rate == 0.0) {
                    measured = Vec::new();
                }
                let (name, burned) = (name.clone(), row.burned(now));
                shown.push((total, MapRow { name, units, throttled, shards, measured, burned }));
            }
        }
        shown.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.name.key.text.cmp(&b.1.name.key.text)));
        shown.truncate(rows);
        let rows = shown.into_iter().map(|(_, row)| row).collect();
        Map { from: first * step, step, columns, rows }
    }
}

/// Units and throttled requests a second.
fn rates(cells: impl Iterator<Item = Cell>, seconds: f64) -> [Vec<f64>; 2] {
    let (units, throttled) =
        cells.map(|[units, throttled]| (f64::from(units) / seconds, f64::from(throttled) / seconds)).unzip();
    [units, throttled]
}
