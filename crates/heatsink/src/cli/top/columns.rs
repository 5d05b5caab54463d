//! The columns of the table of keys: which of them a terminal has room for, and their text.

use super::app::{App, Column};
use crate::cli::hot_keys::{HotKey, Kind, percent, rate};
use crate::cli::inert;

/// The fewest columns of the terminal that a key's name has.
const NAME: usize = 16;

/// A column beside the name. They are in the order of the screen.
struct Shown {
    title: &'static str,
    width: usize,
    /// Where there is no room for all, those of the highest rank go first.
    rank: u8,
    sorts: Option<Column>,
    is_text: bool,
    cell: Cell,
}

const COLUMNS: [Shown; 8] = [
    text("TABLE", 12, 6, Some(Column::Table), |_, key, width| inert::shortened(&key.place, width)),
    text("", 1, 1, None, |_, key, _| if key.id.kind == Kind::Write { "w" } else { "r" }.to_owned()),
    figure("UNITS/S", 8, 0, Some(Column::Units), |_, key, _| rate(key.units)),
    figure("±", 5, 4, None, |_, key, _| rate(key.error)),
    figure("LOAD", 6, 2, Some(Column::Filled), |_, key, _| percent(key.filled())),
    figure("THROTT", 7, 3, Some(Column::Throttled), |_, key, _| percent(key.throttled())),
    figure("SHARD", 6, 5, Some(Column::Shards), |_, key, _| {
        key.shards.map_or_else(|| "–".to_owned(), |shards| shards.to_string())
    }),
    text("MINUTE", 10, 7, None, |app, key, width| app.history.letters(&key.id, width)),
];

type Cell = fn(&App, &HotKey, usize) -> String;

const fn text(title: &'static str, width: usize, rank: u8, sorts: Option<Column>, cell: Cell) -> Shown {
    Shown { title, width, rank, sorts, is_text: true, cell }
}

const fn figure(title: &'static str, width: usize, rank: u8, sorts: Option<Column>, cell: Cell) -> Shown {
    Shown { title, width, rank, sorts, is_text: false, cell }
}

/// The widths of the name and of the columns; 0 for one without room.
pub struct Widths {
    name: usize,
    columns: [usize; COLUMNS.len()],
}

/// What a terminal of that width has room for.
pub fn fitting(width: usize) -> Widths {
    let mut columns = [0; COLUMNS.len()];
    let mut left = width.saturating_sub(NAME);
    let mut by_rank: Vec<(usize, &Shown)> = COLUMNS.iter().enumerate().collect();
    by_rank.sort_by_key(|(_, column)| column.rank);
    for (at, column) in by_rank {
        // A space stands before each.
        let Some(rest) = left.checked_sub(column.width + 1) else { break };
        left = rest;
        if let Some(given) = columns.get_mut(at) {
            *given = column.width;
        }
    }
    Widths { name: NAME.min(width) + left, columns }
}

/// The titles, with a mark at the one that sorts.
pub fn header(app: &App, widths: &Widths) -> String {
    let mark = if app.is_rising() { '▲' } else { '▼' };
    let titled = |title: &str, sorts: Option<Column>| match sorts == Some(app.sort) {
        true => format!("{title}{mark}"),
        false => title.to_owned(),
    };
    let cells = COLUMNS.iter().map(|column| titled(column.title, column.sorts));
    joined(titled("KEY", Some(Column::Key)), cells, widths)
}

/// The text of one key.
pub fn row(app: &App, key: &HotKey, widths: &Widths) -> String {
    let cells = COLUMNS.iter().zip(widths.columns).map(|(column, width)| (column.cell)(app, key, width));
    joined(key.key.clone(), cells, widths)
}

fn joined(name: String, cells: impl Iterator<Item = String>, widths: &Widths) -> String {
    let mut text = padded(&name, widths.name, true);
    for ((column, width), cell) in COLUMNS.iter().zip(widths.columns).zip(cells) {
        if width > 0 {
            text.push(' ');
            text += &padded(&cell, width, column.is_text);
        }
    }
    text
}

/// Text in exactly so many columns.
fn padded(text: &str, width: usize, is_text: bool) -> String {
    let text = inert::shortened(text, width);
    let space = " ".repeat(width.saturating_sub(console::measure_text_width(&text)));
    if is_text { text + &space } else { space + &text }
}

#[cfg(test)]
mod tests {
    use console::measure_text_width;

    use super::*;
    use crate::cli::top::app::tests::{at, heat};

    #[test]
    fn each_line_is_as_wide_as_the_terminal_whatever_is_in_it() {
        let mut app = App::new("s", at(0));
        app.tell(heat(
            1,
            &[
                ("game_x", 123_456_789.0, 0.0, 1),
                ("日本語のとても長い名前です", 1.0, 1.0, 1_000),
                (&"e\u{301}".repeat(99), 1.0, 1.0, 1),
            ],
        ));
        for width in 0..200 {
            let widths = fitting(width);
            for text in
                app.rows().into_iter().map(|key| row(&app, key, &widths)).chain([header(&app, &widths)])
            {
                assert_eq!(measure_text_width(&text), width, "{text:?}");
            }
        }
        let header = |width| header(&app, &fitting(width));
        assert!(
            header(80).contains("TABLE") && header(80).contains("SHARD") && header(80).contains("MINUTE"),
            "{}",
            header(80)
        );
        assert!(header(40).contains("UNITS/S") && !header(40).contains("TABLE"), "{}", header(40));
    }
}
