//! The heat map for a terminal: a line a key, a letter a cell.

use super::map::{Cells, Line, Map};
use super::svg::clock;

/// From nothing to what one partition gives.
const LEVELS: [char; 9] = ['·', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const REFUSED: char = '!';
const LABEL: usize = 26;

/// The text of its hottest `rows` keys, `columns` wide.
pub fn draw(map: &Map, rows: usize, columns: usize) -> String {
    let cells = columns.saturating_sub(LABEL + 3).max(10);
    let mut text = String::new();
    for line in map.lines(rows, cells) {
        match line {
            Line::Heading(part) => text.push_str(&format!(
                "{part}
"
            )),
            Line::Cooler(count) => text.push_str(&format!(
                "  {:>LABEL$}
",
                format!("+ {count} cooler keys")
            )),
            Line::Cells(cells) => text.push_str(&format!(
                "{}
",
                row(&cells)
            )),
        }
    }
    if text.is_empty() {
        return "no key was warm in this time
"
        .to_owned();
    }
    for burned in map.burned(rows) {
        text.push_str(&format!(
            "{burned}
"
        ));
    }
    let (from, to) = (clock(map.from_ms, map.step_ms), clock(map.end_ms(), map.step_ms));
    format!("{text}from {from} to {to}; █ is what one partition gives (1,000 write or 3,000 read units/s), {REFUSED} are refused requests
")
}

fn row(cells: &Cells) -> String {
    let mut label: String = cells.label.chars().take(LABEL).collect();
    if cells.label.chars().count() > LABEL {
        label.pop();
        label.push('…');
    }
    let drawn: String = cells
        .shares
        .iter()
        .zip(&cells.refused)
        .map(|(share, is_refused)| letter(*share, *is_refused))
        .collect();
    match cells.shard {
        None => format!("  {label:<LABEL$} {drawn}"),
        Some(source) => format!(
            "  {:>LABEL$} {drawn}",
            if label == "#0" { format!("{}, {label}", source.text()) } else { label }
        ),
    }
}

/// A cell, by its share of what one partition gives.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to the levels")]
pub fn letter(share: f64, is_refused: bool) -> char {
    if is_refused {
        return REFUSED;
    }
    let level = (share.clamp(0.0, 1.0) * 8.0).ceil() as usize;
    LEVELS.get(level).copied().unwrap_or('█')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hotter_the_higher() {
        let letters: String =
            [0.0, 0.001, 0.5, 1.0, 4.8].into_iter().map(|share| letter(share, false)).collect();
        assert_eq!(letters, "·▁▄██");
        assert_eq!(letter(4.8, true), '!');
    }
}
