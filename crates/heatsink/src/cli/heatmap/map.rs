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
    #[serde(default)]
    shards: Option<Vec<Vec<Option<f64>>>>,
}

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
        let shards: &[Vec<Option<f64>>] =
            self.shards.as_deref().filter(|shards| shards.len() > 1).unwrap_or_default();
        let shares = |units: &[Option<f64>]| -> Vec<f64> {
            gathered(units, columns, cells).into_iter().map(|units| units / self.ceiling()).collect()
        };
        let of_shards: Vec<Vec<f64>> = shards.iter().map(|units| shares(units)).collect();
        // Of a key with shards, what burns is its hottest one.
        let own = if of_shards.is_empty() {
            shares(&self.units)
        } else {
            let hottest = |at: usize| {
                of_shards
                    .iter()
                    .filter_map(|shard| shard.get(at))
                    .fold(0.0, |hottest: f64, share| hottest.max(*share))
            };
            (0..cells).map(hottest).collect()
        };
        let refused =
            gathered(&self.throttled, columns, cells).into_iter().map(|units| units > 0.0).collect();
        let mut lines =
            vec![Line::Cells(Cells { label: self.label(), is_shard: false, shares: own, refused })];
        lines.extend(of_shards.into_iter().enumerate().map(|(shard, shares)| {
            Line::Cells(Cells {
                label: format!("#{shard}"),
                is_shard: true,
                refused: vec![false; shares.len()],
                shares,
            })
        }));
        lines
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
                  "throttled": [0.0, 0.0, 0.0, 1.0], "shards": null },
                { "table": "t", "index": null, "kind": "write", "key": { "S": "x" }, "units": [900.0, 900.0, 900.0, 900.0], "throttled": [],
                  "shards": [[900.0, 900.0, 450.0, 450.0], [0.0, 0.0, 450.0, 450.0]] },
                { "table": "t", "index": "i", "kind": "read", "key": { "N": "42" }, "units": [3.0], "throttled": [], "shards": null },
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
}
