//! The width of output, the tables and paragraphs that fit it, and text in which nothing acts on a
//! terminal.

use std::borrow::Cow;

use comfy_table::presets::UTF8_BORDERS_ONLY;
use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Row, Table, Width};
use console::{Term, measure_text_width};
use heatsink_dynamo::display::{inert, is_inert};
use textwrap::{Options, WordSplitter, WrapAlgorithm};

/// Columns of a table where nothing tells the width: stdout is a file or a pipe.
const DEFAULT_COLUMNS: u16 = 100;
/// Below this nothing is readable, so nothing is cut to fit.
const FEWEST_COLUMNS: u16 = 40;

/// The least width of a column of names or keys.
const NAME: usize = 16;

/// Text of several lines in which nothing acts on a terminal.
pub fn inert_lines(text: &str) -> String {
    let lines: Vec<Cow<'_, str>> = text.split('\n').map(inert).collect();
    lines.join("\n")
}

/// A JSON document in which nothing acts on a terminal: what is not printable stands in its strings
/// as an escape, which means the same.
pub fn inert_json(document: &str) -> Cow<'_, str> {
    let acts = |c: &char| *c == '\u{7f}' || !c.is_ascii() && !is_inert(*c);
    if !document.chars().any(|c| acts(&c)) {
        return Cow::Borrowed(document);
    }
    let mut shown = String::with_capacity(document.len() + 16);
    for c in document.chars() {
        if acts(&c) {
            shown.extend(c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")));
        } else {
            shown.push(c);
        }
    }
    Cow::Owned(shown)
}

/// The width of the screen: what `COLUMNS` says, else the terminal's. `None` where stdout is no
/// terminal and `COLUMNS` is not set.
pub fn columns() -> Option<u16> {
    let asked = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse::<u16>().ok());
    let asked = asked.filter(|columns| *columns > 0);
    let term = Term::stdout();
    let measured = || if term.is_term() { term.size_checked().map(|(_, columns)| columns) } else { None };
    asked.or_else(measured).map(|columns| columns.max(FEWEST_COLUMNS))
}

/// An empty table; [`drawn`] makes text of it.
pub fn table<T: Into<String>>(header: impl IntoIterator<Item = T>) -> Table {
    let mut table = Table::new();
    table.load_style(UTF8_BORDERS_ONLY);
    let header: Vec<String> = header.into_iter().map(Into::into).collect();
    if !header.is_empty() {
        table.set_header(header);
    }
    table
}

/// A table as wide as the screen at most. Long cells are wrapped between words; where numbers and
/// the beginnings of names are too wide side by side, each row is a list. The columns `numbers` are
/// aligned to the right.
pub fn drawn(mut table: Table, numbers: &[usize]) -> String {
    let width = columns().unwrap_or(DEFAULT_COLUMNS);
    table.set_content_arrangement(ContentArrangement::Dynamic);
    table.set_width(width);
    let words = longest_words(&mut table);
    // Each column has a space before it, each but the first a separator, and the table two borders.
    let needed: usize = words.iter().map(|word| word + 2).sum::<usize>() + 1;
    // Of names and keys a part on each line can be read, of numbers it cannot.
    let least = words
        .iter()
        .enumerate()
        .map(|(nth, word)| 2 + if numbers.contains(&nth) { *word } else { *word.min(&NAME) });
    if least.sum::<usize>() + 1 > usize::from(width) {
        return listed(&table, usize::from(width));
    }
    for (nth, column) in table.column_iter_mut().enumerate() {
        column.set_padding((1, 0));
        if numbers.contains(&nth) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        let word = words.get(nth).and_then(|word| u16::try_from(word + 1).ok());
        if let (Some(word), true, None) = (word, needed <= usize::from(width), column.constraint()) {
            column.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(word)));
        }
    }
    format!("{table}\n")
}

/// Each row as lines `header: cell`, without cells that are empty.
fn listed(table: &Table, width: usize) -> String {
    let options = Options::new(width).subsequent_indent("    ").word_splitter(WordSplitter::NoHyphenation);
    let headers: Vec<String> = table.header().map(cells).unwrap_or_default();
    let mut text = String::new();
    for row in table.row_iter() {
        let named = cells(row).into_iter().enumerate().filter(|(_, cell)| !cell.is_empty());
        for (at, (nth, cell)) in named.enumerate() {
            let begin = if at == 0 { "" } else { "  " };
            let line = match headers.get(nth).filter(|name| !name.is_empty()) {
                Some(name) => format!("{begin}{name}: {cell}"),
                None => format!("{begin}{cell}"),
            };
            text += &textwrap::fill(&line, &options);
            text.push('\n');
        }
    }
    text
}

/// What is in the cells of a row, each on one line.
fn cells(row: &Row) -> Vec<String> {
    row.cell_iter().map(|cell| cell.content().trim().replace('\n', ", ")).collect()
}

/// The width of the longest word in each column.
fn longest_words(table: &mut Table) -> Vec<usize> {
    let mut longest = vec![0; table.column_count()];
    let table = &*table;
    for row in table.header().into_iter().chain(table.row_iter()) {
        for (longest, cell) in longest.iter_mut().zip(row.cell_iter()) {
            let words = cell.content();
            let widest = words.split_whitespace().map(measure_text_width).max().unwrap_or(0);
            *longest = widest.max(*longest);
        }
    }
    longest
}

/// Wraps every line that is longer than `columns`. What follows an indented beginning is indented a
/// little more.
pub fn wrapped(text: &str, columns: Option<u16>) -> String {
    let Some(columns) = columns.map(usize::from) else { return text.to_owned() };
    let fit = |line: &str| {
        if measure_text_width(line) <= columns {
            return line.to_owned();
        }
        let indent = match line.chars().take_while(|c| *c == ' ').count() {
            0 => String::new(),
            spaces => " ".repeat(spaces + 2),
        };
        let options = Options::new(columns)
            .subsequent_indent(&indent)
            .wrap_algorithm(WrapAlgorithm::FirstFit)
            .word_splitter(WordSplitter::NoHyphenation)
            .break_words(false);
        textwrap::fill(line, options)
    };
    text.split('\n').map(fit).collect::<Vec<String>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_wrapped_and_others_left() {
        let text = "short  line\n  an indented line that is longer than the others\n";
        assert_eq!(wrapped(text, None), text);
        assert_eq!(
            wrapped(text, Some(24)),
            "short  line\n  an indented line that\n    is longer than the\n    others\n"
        );
    }

    #[test]
    fn what_acts_on_a_terminal_is_an_escape_in_json() {
        let keys =
            ["game", "é日", "\u{9b}31m", "\u{202e}evil", "\u{7f}", "\u{1b}[2J", "\u{e0001}", "\u{1f525}"];
        let document = serde_json::to_string(&keys).unwrap();
        let shown = inert_json(&document);
        assert_eq!(serde_json::from_str::<Vec<String>>(&shown).unwrap(), keys);
        assert!(
            shown.contains(r"\u009b31m") && shown.contains(r"\u202eevil") && shown.contains(r"\udb40\udc01")
        );
        assert!(shown.contains("é日") && shown.chars().all(is_inert), "{shown}");
    }

    /// Whatever the text is, wrapping loses no word, and a line that is too long is one word.
    #[test]
    fn no_word_is_lost_and_lines_fit() {
        let mut rng = fastrand::Rng::with_seed(7);
        for _ in 0..2_000 {
            let text: String =
                (0..rng.usize(0..300)).map(|_| ['a', 'é', 'b', ' ', '\n'][rng.usize(..5)]).collect();
            let columns = rng.u16(20..90);
            let found = wrapped(&text, Some(columns));
            assert!(found.split_whitespace().eq(text.split_whitespace()), "{text:?} {found:?}");
            for line in found.lines() {
                let fits = measure_text_width(line) <= usize::from(columns);
                assert!(fits || line.split_whitespace().count() <= 1, "{columns}: {line:?}");
            }
        }
    }
}
