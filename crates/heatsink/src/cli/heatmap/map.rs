//! The map as `/_heatsink/heat/map` gives it, and the lines of a picture of it.
//!
//! Not here: how a line is drawn (`svg`, `text`).

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::cli::inert;

/// The heat of keys over time.
#[derive(Debug, Deserialize)]
pub struct Map {
    /// Where it begins: milliseconds since 1970.
    pub from_ms: u64,
    /// The length of a column.
    pub step_ms: u64,
    columns: usize,
    rows: Vec<Row>,
}

#[derive(Debug, Deserialize)]
struct Row {
    table: String,
    index: Option<String>,
    kind: String,
    key: BTreeMap<String, String>,
    /// Per column, a second; `null` where nothing was measured.
    units: Vec<Option<f64>>,
    #[serde(default)]
    throttled: Vec<Option<f64>>,
    /// From which column on the key had how many shards; one before the first.
    #[serde(default)]
    shards: Vec<(usize, u16)>,
}

/// The most shards of a key that have lines of their own: beyond that they all look alike.
const MOST_SHARDS: u16 = 64;

/// A line of a picture.
#[derive(Debug)]
pub enum Line {
    /// The table, index and kind of the keys below.
    Heading(String),
    /// A key, or one of its shards.
    Cells(Cells),
}

/// The cells of one line.
#[derive(Debug)]
pub struct Cells {
    /// The key, with what cannot be seen as escapes, or the shard.
    pub label: String,
    pub is_shard: bool,
    /// Shares of what one partition gives; 0 where nothing was measured.
    pub shares: Vec<f64>,
    /// Whether requests were refused.
    pub refused: Vec<bool>,
}

impl Map {
    /// The same without the columns before the first load and after the last.
    pub fn trimmed(mut self) -> Self {
        let columns = self.columns;
        let loaded = |column: &usize| {
            self.rows.iter().any(|row| row.units.get(*column).is_some_and(|units| units.unwrap_or(0.0) > 0.0))
        };
        let first = (0..columns).find(loaded).unwrap_or(0);
        let end = (0..columns).rev().find(loaded).map_or(columns, |last| last + 1);
        self.columns = end - first;
        self.from_ms = self.from_ms.saturating_add(self.step_ms.saturating_mul(first as u64));
        for row in &mut self.rows {
            for values in [&mut row.units, &mut row.throttled] {
                values.truncate(end);
                values.drain(..first.min(values.len()));
            }
            for (from, _) in &mut row.shards {
                *from = from.saturating_sub(first);
            }
        }
        self
    }

    /// When it ends: milliseconds since 1970.
    pub fn end_ms(&self) -> u64 {
        self.from_ms.saturating_add(self.step_ms.saturating_mul(self.columns as u64))
    }

    /// The lines of its hottest `rows` keys, of at most `most` cells each: of columns that share one the hottest counts.
    pub fn lines(&self, rows: usize, most: usize) -> Vec<Line> {
        let cells = self.columns.min(most).max(1);
        let mut hottest: Vec<(&Row, f64)> = self.rows.iter().map(|row| (row, row.peak())).collect();
        hottest.sort_by(|(_, a), (_, b)| b.total_cmp(a));
        hottest.truncate(rows);
        let mut parts: Vec<(String, Vec<&Row>)> = Vec::new();
        for (row, _) in hottest {
            let part = row.part();
            match parts.iter_mut().find(|(name, _)| *name == part) {
                Some((_, rows)) => rows.push(row),
                None => parts.push((part, vec![row])),
            }
        }
        let mut lines = Vec::new();
        for (part, rows) in parts {
            lines.push(Line::Heading(part));
            lines.extend(rows.into_iter().flat_map(|row| row.lines(self.columns, cells)));
        }
        lines
    }
}

impl Row {
    fn ceiling(&self) -> f64 {
        if self.kind == "read" { 3_000.0 } else { 1_000.0 }
    }

    fn peak(&self) -> f64 {
        self.units.iter().flatten().fold(0.0, |peak: f64, units| peak.max(*units)) / self.ceiling()
    }

    fn part(&self) -> String {
        format!(
            "{} · {}s",
            inert::place(Some(&self.table), self.index.as_deref()),
            inert::visible(&self.kind)
        )
    }

    fn label(&self) -> String {
        inert::key(&self.key)
    }

    fn lines(&self, columns: usize, cells: usize) -> Vec<Line> {
        // A hash spreads a key's items evenly, so each of its shards has its part.
        let each = |shard: u16| -> Vec<f64> {
            let of_column = |(column, units): (usize, &Option<f64>)| {
                let shards = self.shards_in(column);
                units.filter(|_| shard < shards).map(|units| units / f64::from(shards) / self.ceiling())
            };
            let shares: Vec<_> = self.units.iter().enumerate().map(of_column).collect();
            gathered(&shares, columns, cells)
        };
        let refused =
            gathered(&self.throttled, columns, cells).into_iter().map(|units| units > 0.0).collect();
        // What burns of a key with shards is one of them.
        let own = Cells { label: self.label(), is_shard: false, shares: each(0), refused };
        let most = self.shards.iter().map(|(_, shards)| *shards).max().filter(|most| *most > 1);
        let of_shard = |shard: u16| {
            let refused = vec![false; cells];
            Line::Cells(Cells { label: format!("#{shard}"), is_shard: true, shares: each(shard), refused })
        };
        let shards = (0..most.unwrap_or(0).min(MOST_SHARDS)).map(of_shard);
        std::iter::once(Line::Cells(own)).chain(shards).collect()
    }

    fn shards_in(&self, column: usize) -> u16 {
        self.shards.iter().rev().find(|(from, _)| *from <= column).map_or(1, |(_, shards)| (*shards).max(1))
    }
}

/// So many cells of so many columns; of columns that share one the hottest counts.
fn gathered(values: &[Option<f64>], columns: usize, cells: usize) -> Vec<f64> {
    let mut all = vec![0.0_f64; cells];
    for (column, value) in values.iter().take(columns).enumerate() {
        if let (Some(value), Some(cell)) = (value, all.get_mut(column * cells / columns.max(1))) {
            *cell = cell.max(*value);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_names_are_inert_and_the_hottest_shard_counts() {
        let map: Map = serde_json::from_value(serde_json::json!({
            "from_ms": 0, "step_ms": 1000, "columns": 4, "rows": [
                { "table": "t", "index": null, "kind": "write", "key": { "S": "a\n\u{1b}[31m\u{202e}\"b" }, "units": [10.0, 20.0, null, 5.0],
                  "throttled": [0.0, 0.0, 0.0, 1.0], "shards": [] },
                { "table": "t", "index": null, "kind": "write", "key": { "S": "x" }, "units": [900.0, 900.0, 900.0, 900.0], "throttled": [],
                  "shards": [[2, 2]] },
                { "table": "t", "index": "i", "kind": "read", "key": { "N": "42" }, "units": [3.0], "throttled": [] },
            ],
        }))
        .unwrap();
        let lines = map.lines(10, 2);
        let shown: Vec<String> = lines
            .iter()
            .map(|line| match line {
                Line::Heading(part) => part.clone(),
                Line::Cells(Cells { label, shares, refused, .. }) => {
                    format!("{label} {shares:?} {refused:?}")
                }
            })
            .collect();
        assert_eq!(
            shown,
            [
                "t · writes",
                "x [0.9, 0.45] [false, false]",
                "#0 [0.9, 0.45] [false, false]",
                "#1 [0.0, 0.45] [false, false]",
                "a\\n\\u{1b}[31m\\u{202e}\"b [0.02, 0.005] [false, true]",
                "t / i · reads",
                "N:42 [0.001, 0.0] [false, false]",
            ]
        );
        assert_eq!(map.lines(1, 2).len(), 4, "the hottest key and its shards");
        assert_eq!(map.end_ms(), 4_000);
    }

    #[test]
    fn idle_columns_at_both_ends_are_left_out() {
        let map: Map = serde_json::from_value(serde_json::json!({
            "from_ms": 0, "step_ms": 1000, "columns": 6, "rows": [
                { "table": "t", "index": null, "kind": "write", "key": { "S": "x" }, "units": [0.0, 0.0, 900.0, 0.0, 450.0, 0.0],
                  "throttled": [0.0, 0.0, 1.0, 0.0, 0.0, 0.0], "shards": [[4, 2]] },
            ],
        }))
        .unwrap();
        let map = map.trimmed();
        assert_eq!((map.from_ms, map.end_ms()), (2_000, 5_000));
        let Some(Line::Cells(own)) = map.lines(1, 9).into_iter().nth(1) else { panic!("no line") };
        assert_eq!((own.shares, own.refused), (vec![0.9, 0.0, 0.225], vec![true, false, false]));
    }
}
