//! The map as `/_heatsink/heat/map` gives it, and the lines of a picture of it.
//!
//! Not here: how a line is drawn (`svg`, `text`).

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::burned::Burned;
use crate::inert;

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
    /// `None` for the tables that are counted together.
    table: Option<String>,
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
    /// What was measured of each shard.
    #[serde(default)]
    measured: Vec<Shard>,
    /// When requests for it were last refused.
    #[serde(default)]
    burned: Option<Burned>,
}

#[derive(Debug, Deserialize)]
struct Shard {
    /// Per column, a second. Where all shards of a key have nothing in a column, they were not
    /// measured then.
    units: Vec<f64>,
    #[serde(default)]
    throttled: Vec<f64>,
}

/// The most shards of a key that have lines of their own.
const MOST_SHARDS: u16 = 64;

/// A key that took less than this share of a partition in the whole span is cool, unless it was
/// refused.
const COOL: f64 = 0.1;
/// Cool keys of a part that have lines of their own.
const COOL_SHOWN: usize = 3;

/// A line of a picture.
#[derive(Debug)]
pub enum Line {
    /// The table, index and kind of the keys below.
    Heading(String),
    /// A key, or one of its shards.
    Cells(Cells),
    /// So many keys of the part are cooler, and not shown.
    Cooler(usize),
}

/// The cells of one line.
#[derive(Debug)]
pub struct Cells {
    /// The key, with what cannot be seen as escapes, or the shard.
    pub label: String,
    pub shard: Option<Source>,
    /// Shares of what one partition gives; 0 where nothing was measured.
    pub shares: Vec<f64>,
    /// Whether requests were refused.
    pub refused: Vec<bool>,
}

/// Where the figures of a shard come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// It was measured whenever its key had shards and a load.
    Measured,
    /// It was for some of that time; else it is an equal share.
    MeasuredInPart,
    /// The key's load divided by its shards, which a hash makes even.
    EqualShare,
}

impl Source {
    /// What the shards of a key are.
    pub const fn text(self) -> &'static str {
        match self {
            Source::Measured => "shards, measured",
            Source::MeasuredInPart => "shards, part measured",
            Source::EqualShare => "shards, equal shares",
        }
    }
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
            for shard in &mut row.measured {
                for values in [&mut shard.units, &mut shard.throttled] {
                    values.truncate(end);
                    values.drain(..first.min(values.len()));
                }
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

    /// The lines of its hottest `rows` keys, of at most `most` cells each: of columns that share
    /// one the hottest counts.
    pub fn lines(&self, rows: usize, most: usize) -> Vec<Line> {
        let cells = self.columns.min(most).max(1);
        let mut hottest: Vec<(&Row, f64)> = self.rows.iter().map(|row| (row, row.peak())).collect();
        hottest.sort_by(|(_, a), (_, b)| b.total_cmp(a));
        let mut parts: Vec<(String, Part<'_>)> = Vec::new();
        for (at, (row, peak)) in hottest.into_iter().enumerate() {
            let name = row.part();
            let part = match parts.iter_mut().find(|(part, _)| *part == name) {
                Some((_, part)) => part,
                None => &mut parts.push_mut((name, Part::default())).1,
            };
            let is_cool = peak < COOL && !row.is_refused();
            if at >= rows || is_cool && part.cool >= COOL_SHOWN {
                part.cooler += 1;
            } else {
                part.cool += usize::from(is_cool);
                part.shown.push(row);
            }
        }
        let mut lines = Vec::new();
        for (name, Part { shown, cooler, .. }) in parts.into_iter().filter(|(_, part)| !part.shown.is_empty())
        {
            lines.push(Line::Heading(name));
            lines.extend(shown.into_iter().flat_map(|row| row.lines(self.columns, cells)));
            lines.extend((cooler > 0).then_some(Line::Cooler(cooler)));
        }
        lines
    }

    /// Each key of its hottest `rows` that burned in the span, and when, in words.
    pub fn burned(&self, rows: usize) -> Vec<String> {
        let burned = self.rows.iter().filter_map(|row| Some((row, row.burned?)));
        let mut burned: Vec<_> = burned.filter(|(_, burned)| burned.to_ms >= self.from_ms).collect();
        burned.sort_by_key(|(_, burned)| std::cmp::Reverse(burned.to_ms));
        burned.truncate(rows);
        let told = |(row, burned): &(&Row, Burned)| {
            format!("{}, {}: {}", row.label(), row.part(), burned.told(self.end_ms()))
        };
        burned.iter().map(told).collect()
    }
}

/// The rows of one part: those that are shown, how many of these are cool, and how many are not
/// shown.
#[derive(Default)]
struct Part<'a> {
    shown: Vec<&'a Row>,
    cool: usize,
    cooler: usize,
}

impl Row {
    /// Whether requests for it were refused in the span.
    fn is_refused(&self) -> bool {
        self.throttled.iter().flatten().any(|rate| *rate > 0.0)
    }

    fn ceiling(&self) -> f64 {
        if self.kind == "read" { 3_000.0 } else { 1_000.0 }
    }

    fn peak(&self) -> f64 {
        self.units.iter().flatten().fold(0.0, |peak: f64, units| peak.max(*units)) / self.ceiling()
    }

    fn part(&self) -> String {
        format!(
            "{} · {}s",
            inert::place(self.table.as_deref(), self.index.as_deref()),
            inert::visible(&self.kind)
        )
    }

    fn label(&self) -> String {
        inert::key(&self.key)
    }

    fn lines(&self, columns: usize, cells: usize) -> Vec<Line> {
        let mean = |(column, units): (usize, &Option<f64>)| {
            units.map(|units| units / f64::from(self.shards_in(column)) / self.ceiling())
        };
        let means: Vec<_> = self.units.iter().enumerate().map(mean).collect();
        let refused =
            gathered(&self.throttled, columns, cells).into_iter().map(|units| units > 0.0).collect();
        // What burns of a key with shards is one of them.
        let shares = gathered(&means, columns, cells);
        let own = Cells { label: self.label(), shard: None, shares, refused };
        let most = self.shards.iter().map(|(_, shards)| *shards).max().filter(|most| *most > 1);
        let source = self.source();
        let of_shard = |shard: u16| {
            let measured = self.measured.get(usize::from(shard));
            let at = |column: usize| {
                if self.is_measured(column) {
                    measured.and_then(|shard| shard.units.get(column)).map(|units| units / self.ceiling())
                } else {
                    means.get(column).copied().flatten().filter(|_| shard < self.shards_in(column))
                }
            };
            let shares: Vec<_> = (0..self.units.len()).map(at).collect();
            let throttled = measured.map(|shard| shard.throttled.iter().map(|rate| Some(*rate)).collect());
            let throttled: Vec<Option<f64>> = throttled.unwrap_or_default();
            Line::Cells(Cells {
                label: format!("#{shard}"),
                shard: Some(source),
                shares: gathered(&shares, columns, cells),
                refused: gathered(&throttled, columns, cells).into_iter().map(|rate| rate > 0.0).collect(),
            })
        };
        let shards = (0..most.unwrap_or(0).min(MOST_SHARDS)).map(of_shard);
        std::iter::once(Line::Cells(own)).chain(shards).collect()
    }

    /// Whether its shards were measured in this column.
    fn is_measured(&self, column: usize) -> bool {
        self.measured.iter().any(|shard| shard.units.get(column).is_some_and(|units| *units > 0.0))
    }

    fn source(&self) -> Source {
        let loaded = |column: &usize| {
            let units = self.units.get(*column).copied().flatten();
            units.is_some_and(|units| units > 0.0) && self.shards_in(*column) > 1
        };
        let of = (0..self.units.len()).filter(loaded).map(|column| self.is_measured(column));
        match of.fold((false, false), |(is, is_not), measured| (is | measured, is_not | !measured)) {
            (true, false) => Source::Measured,
            (true, true) => Source::MeasuredInPart,
            (false, _) => Source::EqualShare,
        }
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
                Line::Cooler(count) => format!("+ {count}"),
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
        assert_eq!(map.lines(1, 2).len(), 5, "the hottest key, its shards, and how many are cooler");
        assert_eq!(map.end_ms(), 4_000);
    }

    #[test]
    fn shards_show_what_was_measured_and_say_where_nothing_was() {
        let map = |measured: serde_json::Value| -> Map {
            serde_json::from_value(serde_json::json!({
                "from_ms": 0, "step_ms": 1000, "columns": 3, "rows": [
                    { "table": null, "index": null, "kind": "write", "key": { "S": "x" }, "units": [900.0, 600.0, 600.0],
                      "throttled": [], "shards": [[1, 2]], "measured": measured },
                ],
            }))
            .unwrap()
        };
        let shards = |map: &Map| -> Vec<(Option<Source>, Vec<f64>, Vec<bool>)> {
            let cells = |line| match line {
                Line::Cells(cells) => Some((cells.shard, cells.shares, cells.refused)),
                Line::Cooler(_) => None,
                Line::Heading(part) => {
                    assert_eq!(part, "(other tables) · writes");
                    None
                }
            };
            map.lines(1, 3).into_iter().filter_map(cells).skip(1).collect()
        };
        let none = vec![false; 3];
        let skewed = serde_json::json!([{ "units": [0.0, 500.0, 500.0], "throttled": [0, 0, 3] }, { "units": [0.0, 100.0, 100.0], "throttled": [] }]);
        assert_eq!(
            shards(&map(skewed)),
            [
                (Some(Source::Measured), vec![0.9, 0.5, 0.5], vec![false, false, true]),
                (Some(Source::Measured), vec![0.0, 0.1, 0.1], none.clone())
            ]
        );
        let late = serde_json::json!([{ "units": [0.0, 0.0, 500.0] }, { "units": [0.0, 0.0, 0.0] }]);
        assert_eq!(
            shards(&map(late)),
            [
                (Some(Source::MeasuredInPart), vec![0.9, 0.3, 0.5], none.clone()),
                (Some(Source::MeasuredInPart), vec![0.0, 0.3, 0.0], none.clone())
            ]
        );
        assert_eq!(
            shards(&map(serde_json::json!([])))[1],
            (Some(Source::EqualShare), vec![0.0, 0.3, 0.3], none)
        );
    }

    #[test]
    fn cool_keys_are_counted_and_what_burned_is_told() {
        let row = |key: usize, units: f64, refused: f64| {
            serde_json::json!({ "table": "t", "index": null, "kind": "write", "key": { "S": format!("k{key}") },
                "units": [units], "throttled": [refused], "burned": (refused > 0.0).then_some(serde_json::json!({ "from_ms": 400, "to_ms": 900 })) })
        };
        let rows: Vec<_> = (0..40)
            .map(|key| row(key, if key < 2 { 900.0 } else { 50.0 }, if key == 39 { 1.0 } else { 0.0 }))
            .collect();
        let map = serde_json::json!({ "from_ms": 0, "step_ms": 60_000, "columns": 1, "rows": rows });
        let map: Map = serde_json::from_value(map).unwrap();
        let lines = map.lines(40, 9);
        let cooler =
            lines.iter().filter_map(|line| if let Line::Cooler(count) = line { Some(*count) } else { None });
        assert_eq!(cooler.collect::<Vec<_>>(), [34], "two are hot, three are shown, one was refused");
        assert_eq!(lines.len(), 1 + 6 + 1);
        assert_eq!(map.burned(40), ["k39, t · writes: last burned 59 s ago, for 1 s"]);
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
