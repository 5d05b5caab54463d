//! A heat map of partitions over time: one row per partition in key order, darker for higher load.
//! Neighbours that stay cold share one thin row.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::frame::Frame;
use super::svg::{Anchor, Svg};
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
            svg.text((frame.left - 5.0, middle), 8.5, INK, Anchor::End, &format!("{} cold", row.count));
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
    svg.text((frame.left + 4.0, frame.top - 4.0), 10.5, INK, Anchor::Start, &words);
}

/// One row for each stretch of key space that was ever a partition's own.
fn rows(map: &Map) -> Vec<Row> {
    let mut firsts: Vec<_> = map.steps.iter().flatten().map(|heat| heat.first).collect();
    firsts.sort_unstable();
    firsts.dedup();
    let mut rows: Vec<Row> = firsts.iter().map(|_| Row { count: 1, cold: true, heat: Vec::new() }).collect();
    for step in &map.steps {
        let mut at = 0;
        for (row, first) in rows.iter_mut().zip(&firsts) {
            while step.get(at + 1).is_some_and(|next| next.first <= *first) {
                at += 1;
            }
            let asked = step.get(at).map_or(0.0, |heat| f64::from(heat.asked));
            row.cold &= asked < COLD;
            row.heat.push(asked);
        }
    }
    rows
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

/// From idle over the ceiling ([`CEILING`]) to [`MOST`] times as much: ever darker, so that the
/// hottest stands out from idle and from the page.
const COLOURS: [&str; 14] = [
    "#f0f3f6", "#fbe9b9", "#fde3a4", "#fdd57f", "#fdc463", "#fdb04e", "#fb9840", "#f57e34", "#e95f2b",
    "#d73a1f", "#ad1a1b", "#820c24", "#560a26", "#26061a",
];

/// The colour of the ceiling.
const CEILING: usize = 9;

/// So many times the ceiling have the last colour, as has all above.
const MOST: usize = COLOURS.len() - CEILING;

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bounded by the palette")]
fn colour(asked: f64) -> usize {
    let place = if asked <= 1.0 { asked * CEILING as f64 } else { CEILING as f64 + (asked - 1.0) };
    (place.round().max(0.0) as usize).min(COLOURS.len() - 1)
}

/// What the colours mean, from `x` on: each word below the colour that it names.
pub(crate) fn legend(svg: &mut Svg, x: f64, y: f64) {
    let cell = 14.0;
    for (nth, colour) in COLOURS.iter().enumerate() {
        svg.rect(x + nth as f64 * cell, y, cell, 9.0, colour);
    }
    let most = format!("{MOST} × the ceiling or more");
    for (at, word) in [(0, "idle"), (CEILING, "at the ceiling")] {
        svg.text((x + (at as f64 + 0.5) * cell, y + 19.0), 9.5, INK, Anchor::Middle, word);
    }
    let end = x + COLOURS.len() as f64 * cell;
    svg.text((end + 5.0, y + 8.0), 9.5, INK, Anchor::Start, &most);
}

const INK: &str = "#5b6470";

#[cfg(test)]
mod tests {
    use super::*;

    /// Relative luminance, as WCAG 2.1 defines it.
    fn luminance(colour: &str) -> f64 {
        let channel = |at: usize| {
            let share = f64::from(u8::from_str_radix(&colour[at..at + 2], 16).unwrap()) / 255.0;
            if share <= 0.040_45 { share / 12.92 } else { ((share + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5)
    }

    fn contrast(a: &str, b: &str) -> f64 {
        let (a, b) = (luminance(a), luminance(b));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    #[test]
    fn hotter_is_darker_and_the_ceiling_stands_out_from_idle_and_from_the_page() {
        assert!(COLOURS.windows(2).all(|two| luminance(two[0]) > luminance(two[1])), "{COLOURS:?}");
        for hot in &COLOURS[CEILING..] {
            for ground in [COLOURS[0], "#ffffff"] {
                assert!(contrast(hot, ground) >= 3.0, "{hot} on {ground}: {}", contrast(hot, ground));
            }
        }
        assert!(contrast(INK, "#ffffff") >= 4.5);
    }

    #[test]
    fn colours_and_their_words_agree() {
        assert_eq!([0.0, 1.0, 2.0, 5.0, 50.0].map(colour), [0, CEILING, CEILING + 1, 13, 13]);
        assert_eq!((MOST, colour(MOST as f64), colour(MOST as f64 - 1.0)), (5, 13, 12));
        let mut svg = Svg::default();
        legend(&mut svg, 100.0, 0.0);
        let text = svg.finish(400.0, 30.0);
        // Centres of the first cell and of the ceiling's.
        assert!(text.contains("x=\"107.0\"") && text.contains("x=\"233.0\""), "{text}");
        assert!(text.contains(">5 × the ceiling or more<"), "{text}");
    }
}
