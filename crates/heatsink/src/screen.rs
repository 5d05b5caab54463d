//! The width of output, the tables and paragraphs that fit it, and text in which nothing acts on a terminal.

use std::borrow::Cow;

use comfy_table::presets::UTF8_BORDERS_ONLY;
use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Table, Width};
use console::{Term, measure_text_width};
use heatsink_dynamo::display::inert;
use textwrap::{Options, WordSplitter, WrapAlgorithm};

/// Columns of a table where nothing tells the width: stdout is a file or a pipe.
const DEFAULT_COLUMNS: u16 = 100;
/// Below this nothing is readable, so nothing is cut to fit.
const FEWEST_COLUMNS: u16 = 40;

/// Text of several lines in which nothing acts on a terminal.
pub fn inert_lines(text: &str) -> String {
    let lines: Vec<Cow<'_, str>> = text.split('\n').map(inert).collect();
    lines.join("\n")
}

/// The width of the screen: what `COLUMNS` says, else the terminal's. `None` where stdout is no terminal and `COLUMNS` is not set.
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

/// A table as wide as the screen at most. Long cells are wrapped between words where that is enough. The columns `numbers` are aligned to
/// the right.
pub fn drawn(mut table: Table, numbers: &[usize]) -> String {
    let width = columns().unwrap_or(DEFAULT_COLUMNS);
    table.set_content_arrangement(ContentArrangement::Dynamic);
    table.set_width(width);
    let words = longest_words(&mut table);
    // Each column has a space before it, each but the first a separator, and the table two borders.
    let needed: usize = words.iter().map(|word| word + 2).sum::<usize>() + 1;
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

/// Wraps every line that is longer than `columns`. What follows an indented beginning is indented a little more.
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
