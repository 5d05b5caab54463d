//! The heat map as a picture: SVG, by hand as the other pictures are
//! (docs/develop/dependencies.md).

use std::fmt::{Arguments, Write};

use jiff::Timestamp;

use super::map::{Cells, Line, Map};
use super::scale::{colour, place};

/// Cells across, at most: each is three pixels wide.
const CELLS: usize = 300;
const LABEL: f64 = 250.0;
const WIDTH: f64 = 900.0;
const HEADING: f64 = 28.0;
const KEY: f64 = 18.0;
const SHARD: f64 = 7.0;
const HEAD: f64 = 36.0;
const FOOT: f64 = 40.0;
/// Letters of a key that fit beside its cells.
const LETTERS: usize = 30;
/// Colours that are told apart: equal ones beside each other are one shape.
const LEVELS: f64 = 48.0;
/// How often a time is written above the cells.
const TIMES: u32 = 6;
const GROUND: &str = "#131119";
const INK: &str = "#ece9f1";
const QUIET: &str = "#a49eb2";
const REFUSED: &str = "#4cc9f0";

/// The picture of its hottest `rows` keys.
pub fn draw(map: &Map, rows: usize) -> String {
    let lines = map.lines(rows, CELLS);
    let (width, height) = (LABEL + WIDTH + 20.0, HEAD + FOOT + lines.iter().map(height).sum::<f64>());
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" height=\"{height:.0}\" \
         font-family=\"'DejaVu Sans', Verdana, Arial, sans-serif\">\n"
    );
    rect(&mut svg, (0.0, 0.0), (width, height), GROUND);
    times(&mut svg, map);
    let mut y = HEAD;
    for line in &lines {
        match line {
            Line::Heading(part) => text(&mut svg, (12.0, y + 19.0), 12.0, INK, &shortened(part, 3 * LETTERS)),
            Line::Cells(cells) => draw_cells(&mut svg, y, cells),
            Line::Cooler(count) => {
                text(&mut svg, (24.0, y + 13.0), 11.0, QUIET, &format!("+ {count} cooler keys"))
            }
        }
        y += self::height(line);
    }
    legend(&mut svg, y + 14.0);
    svg.push_str("</svg>\n");
    svg
}

fn height(line: &Line) -> f64 {
    match line {
        Line::Heading(_) => HEADING,
        Line::Cells(cells) if cells.shard.is_some() => SHARD,
        Line::Cells(_) | Line::Cooler(_) => KEY,
    }
}

fn draw_cells(svg: &mut String, y: f64, cells: &Cells) {
    let high = if cells.shard.is_some() { SHARD } else { KEY };
    let wide = WIDTH / cells.shares.len().max(1) as f64;
    match cells.shard {
        None => text(svg, (24.0, y + 13.0), 11.0, INK, &shortened(&cells.label, LETTERS)),
        // One label for all of them: a line is lower than a letter.
        Some(source) if cells.label == "#0" => text(svg, (36.0, y + 7.0), 8.0, QUIET, source.text()),
        Some(_) => {}
    }
    rect(svg, (LABEL, y), (WIDTH, high), &colour(0.0));
    let level = |share: f64| (place(share) * LEVELS).round();
    for (at, run) in runs(cells.shares.iter().map(|share| level(*share))) {
        if let (length, 1.0..) = run {
            rect(
                svg,
                (LABEL + at as f64 * wide, y),
                (length as f64 * wide, high - 1.0),
                &colour(run.1 / LEVELS),
            );
        }
    }
    for (at, (length, is_refused)) in runs(cells.refused.iter().copied()) {
        if is_refused {
            let mark = if cells.shard.is_some() { 2.0 } else { 4.0 };
            rect(
                svg,
                (LABEL + at as f64 * wide, y + high - 1.0 - mark),
                (length as f64 * wide, mark),
                REFUSED,
            );
        }
    }
}

/// Where each run of equal values begins, how long it is, and the value.
fn runs<T: PartialEq>(values: impl Iterator<Item = T>) -> Vec<(usize, (usize, T))> {
    let mut runs: Vec<(usize, (usize, T))> = Vec::new();
    for (at, value) in values.enumerate() {
        match runs.last_mut() {
            Some((_, (length, last))) if *last == value => *length += 1,
            _ => runs.push((at, (1, value))),
        }
    }
    runs
}

fn times(svg: &mut String, map: &Map) {
    let span = map.end_ms().saturating_sub(map.from_ms);
    for tick in 0..TIMES {
        let moment = map.from_ms.saturating_add(span / u64::from(TIMES) * u64::from(tick));
        let x = LABEL + WIDTH / f64::from(TIMES) * f64::from(tick);
        rect(svg, (x, HEAD - 12.0), (1.0, 8.0), QUIET);
        text(svg, (x + 5.0, HEAD - 4.0), 11.0, QUIET, &clock(moment, map.step_ms));
    }
}

/// A time in UTC: to the second, to the minute, or with its day, as the columns need it.
pub fn clock(millis: u64, step_ms: u64) -> String {
    let form = match step_ms {
        ..60_000 => "%H:%M:%S UTC",
        60_000..600_000 => "%H:%M UTC",
        _ => "%b %d %H:%M UTC",
    };
    let moment = i64::try_from(millis).ok().and_then(|millis| Timestamp::from_millisecond(millis).ok());
    moment.map(|moment| moment.strftime(form).to_string()).unwrap_or_default()
}

fn legend(svg: &mut String, y: f64) {
    for step in 0..50 {
        rect(svg, (LABEL + 3.0 * f64::from(step), y), (3.5, 11.0), &colour(place(f64::from(step) / 49.0)));
    }
    text(
        svg,
        (LABEL + 160.0, y + 10.0),
        11.0,
        QUIET,
        "up to what one partition gives: 1,000 write or 3,000 read units/s",
    );
    rect(svg, (LABEL + 570.0, y), (16.0, 11.0), &colour(0.7));
    rect(svg, (LABEL + 570.0, y + 8.0), (16.0, 3.0), REFUSED);
    text(svg, (LABEL + 592.0, y + 10.0), 11.0, QUIET, "requests were refused");
}

fn shortened(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

fn rect(svg: &mut String, (x, y): (f64, f64), (width, height): (f64, f64), fill: &str) {
    push(
        svg,
        format_args!(
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"{fill}\"/>"
        ),
    );
}

fn text(svg: &mut String, (x, y): (f64, f64), size: f64, fill: &str, text: &str) {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    push(
        svg,
        format_args!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{size}\" fill=\"{fill}\" xml:space=\"preserve\">{text}</text>"
        ),
    );
}

fn push(svg: &mut String, element: Arguments<'_>) {
    // Writing to a string does not fail.
    let _ = writeln!(svg, "{element}");
}
