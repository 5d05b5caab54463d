//! Partitions over time: each a row in the order of the key space, brighter the more is asked of it. Neighbours that stay cold are
//! one thin row.

use std::collections::BTreeMap;
use std::fmt::Write;

use heatsink_physics::{PARTITION_READS, PARTITION_WRITES};

use super::frame::Frame;
use super::svg::{Anchor, Svg};
use crate::record::Heat;
use crate::report::Map;

/// Below this share of a ceiling at all times a row is cold.
const COLD: f64 = 0.1;

/// A merged row is as high as this share of a row of its own.
const THIN: f64 = 0.5;

/// Some neighbouring places of the key space, and how hot they are step by step.
struct Row {
    /// How many there are of them at the end.
    count: usize,
    cold: bool,
    heat: Vec<f64>,
}

/// Draws the partitions of a table or index.
pub(crate) fn heat(svg: &mut Svg, frame: &Frame, map: &Map) {
    let rows = merge(rows(map));
    let weight = |row: &Row| if row.cold { THIN } else { 1.0 };
    let total: f64 = rows.iter().map(weight).sum();
    svg.rect(frame.left, frame.top, frame.width, frame.height, COLOURS[0]);
    let mut cells: BTreeMap<usize, String> = BTreeMap::new();
    let (mut top, mut labelled) = (0.0, f64::NEG_INFINITY);
    for row in &rows {
        let (y, height) = (frame.y(top / total), frame.height * weight(row) / total);
        let gap = if height > 5.0 { 0.6 } else { 0.0 };
        let mut from = 0;
        while from < row.heat.len() {
            let colour = colour(row.heat[from]);
            let same = row.heat[from..].iter().take_while(|heat| self::colour(**heat) == colour).count();
            if colour > 0 {
                let start = from.checked_sub(1).map_or(0.0, |before| map.ends[before]);
                let (x, end) = (frame.x(start), frame.x(map.ends[from + same - 1]));
                let _ = write!(
                    cells.entry(colour).or_default(),
                    "M{x:.1} {y:.1}h{:.1}v{:.1}h{:.1}z",
                    end - x,
                    height - gap,
                    x - end
                );
            }
            from += same;
        }
        let middle = y + height / 2.0 + 3.0;
        if row.cold && row.count > 1 && middle - labelled > 9.0 {
            svg.text((frame.left - 5.0, middle), 8.5, "#8b939e", Anchor::End, &format!("{} cold", row.count));
            labelled = middle;
        }
        top += weight(row);
    }
    for (colour, data) in cells {
        svg.path(&data, COLOURS[colour]);
    }
    let count = map.steps.last().map_or(0, Vec::len);
    let what = if map.index { "index " } else { "" };
    let words =
        format!("partitions of {what}{}, in the order of the key space: {count} at the end", map.name);
    svg.text((frame.left + 4.0, frame.top - 4.0), 10.5, "#5b6470", Anchor::Start, &words);
}

/// One row for each stretch of key space that was ever a partition's own.
fn rows(map: &Map) -> Vec<Row> {
    let mut firsts: Vec<_> = map.steps.iter().flatten().map(|heat| heat.first).collect();
    firsts.sort_unstable();
    firsts.dedup();
    let mut rows: Vec<Row> = firsts.iter().map(|_| Row { count: 1, cold: true, heat: Vec::new() }).collect();
    let mut start = 0.0;
    for (step, end) in map.steps.iter().zip(&map.ends) {
        let mut at = 0;
        for (row, first) in rows.iter_mut().zip(&firsts) {
            while step.get(at + 1).is_some_and(|next| next.first <= *first) {
                at += 1;
            }
            let asked = step.get(at).map_or(0.0, |heat| asked(heat, end - start));
            row.cold &= asked < COLD;
            row.heat.push(asked);
        }
        start = *end;
    }
    rows
}

/// What is asked of a partition per second over what it can give: 1 is its ceiling. A throttled request counts as one unit.
fn asked(heat: &Heat, seconds: f64) -> f64 {
    let rate = |units: f32| f64::from(units) / seconds;
    let ceiling =
        (rate(heat.writes) / PARTITION_WRITES as f64).max(rate(heat.reads) / PARTITION_READS as f64);
    if heat.throttles > 0.0 {
        ceiling.max(0.9) + rate(heat.throttles) / PARTITION_WRITES as f64
    } else {
        ceiling
    }
}

fn merge(rows: Vec<Row>) -> Vec<Row> {
    let mut merged: Vec<Row> = Vec::new();
    for row in rows {
        match merged.last_mut() {
            Some(last) if last.cold && row.cold => {
                last.count += row.count;
                for (heat, other) in last.heat.iter_mut().zip(row.heat) {
                    *heat = heat.max(other);
                }
            }
            _ => merged.push(row),
        }
    }
    merged
}

/// From idle over the ceiling (the ninth) to five times as much.
const COLOURS: [&str; 14] = [
    "#14101f", "#24123d", "#3a1259", "#521569", "#6b186e", "#84206b", "#9d2964", "#b63458", "#cc4248",
    "#e35933", "#f37819", "#fb9e14", "#f8c93a", "#fdfbd0",
];

/// The colour of the ceiling.
const CEILING: usize = 9;

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bounded by the palette")]
fn colour(asked: f64) -> usize {
    let place = if asked <= 1.0 { asked * CEILING as f64 } else { CEILING as f64 + (asked - 1.0) };
    (place.round().max(0.0) as usize).min(COLOURS.len() - 1)
}

/// What the colours mean, from `x` on, 12 pixels high.
pub(crate) fn legend(svg: &mut Svg, x: f64, y: f64) -> f64 {
    let cell = 14.0;
    for (nth, colour) in COLOURS.iter().enumerate() {
        svg.rect(x + nth as f64 * cell, y, cell, 9.0, colour);
    }
    let words = [(0.0, "idle"), (CEILING as f64 + 0.5, "at the ceiling"), (15.2, "5 × over")];
    for (at, word) in words {
        let anchor = if at > 0.0 { Anchor::Middle } else { Anchor::Start };
        svg.text((x + at * cell, y + 19.0), 9.5, "#5b6470", anchor, word);
    }
    x + COLOURS.len() as f64 * cell
}
