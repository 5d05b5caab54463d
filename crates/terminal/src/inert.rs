//! Keys and names of others, for a terminal or a picture: what is not seen, or changes how its
//! neighbours are seen, becomes an escape.
//!
//! Not here: the page of the admin address, which does the same in its own language (`text.js` in
//! `heatsink-gateway`).

use std::collections::BTreeMap;

use console::measure_text_width;
use heatsink_dynamo::display::inert;

/// Text in which nothing is unseen: controls, line ends, directions, zero-width characters, piles
/// of marks and backslashes are escapes.
pub fn visible(text: &str) -> String {
    if text.is_empty() {
        return "(empty)".to_owned();
    }
    let escaped = text.replace('\\', r"\\");
    let shown = inert(&escaped);
    // A mark at the beginning would stand on what is written before.
    match shown.chars().next().filter(|one| !one.is_ascii() && one.escape_debug().len() > 1) {
        Some(mark) => mark.escape_debug().chain(shown.chars().skip(1)).collect(),
        None => shown.into_owned(),
    }
}

/// A key in DynamoDB's form, `{ "S": "game_x" }`, as people read it: text as it is, others with
/// their type.
pub fn key(key: &BTreeMap<String, String>) -> String {
    match key.first_key_value() {
        Some((kind, value)) if kind == "S" => visible(value),
        Some((kind, value)) => format!("{}:{}", visible(kind), visible(value)),
        None => "?".to_owned(),
    }
}

/// `Leaderboards / by_score`.
pub fn place(table: Option<&str>, index: Option<&str>) -> String {
    let table = table.map_or_else(|| "(other tables)".to_owned(), visible);
    index.map_or_else(|| table.clone(), |index| format!("{table} / {}", visible(index)))
}

/// Text that takes at most so many columns, shortened in its middle: keys differ at both ends.
pub fn shortened(text: &str, columns: usize) -> String {
    if measure_text_width(text) <= columns {
        return text.to_owned();
    }
    let Some(left) = columns.checked_sub(1) else { return String::new() };
    let end: String = within(text.chars().rev(), left / 3).into_iter().rev().collect();
    let begin: String = within(text.chars(), left - measure_text_width(&end)).into_iter().collect();
    format!("{begin}…{end}")
}

/// The first of these characters, as many as so many columns hold.
fn within(characters: impl Iterator<Item = char>, columns: usize) -> Vec<char> {
    let mut taken = 0;
    let fits = |one: &char| {
        taken += measure_text_width(one.encode_utf8(&mut [0; 4]));
        taken <= columns
    };
    characters.take_while(fits).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_seen_is_an_escape() {
        for (hostile, shown) in [
            ("a\nb\r\t", r"a\nb\r\t"),
            ("\u{1b}[31mred", r"\u{1b}[31mred"),
            ("\u{9b}31m", r"\u{9b}31m"),
            ("\u{202e}evil\u{2066}", r"\u{202e}evil\u{2066}"),
            ("a\u{200b}\u{feff}\u{ad}b", r"a\u{200b}\u{feff}\u{ad}b"),
            ("<b>&amp;</b>\"'", "<b>&amp;</b>\"'"),
            ("a\\n", r"a\\n"),
            ("e\u{301} Z\u{341}\u{342}\u{343}", "e\u{301} Z\u{341}\u{342}\\u{343}"),
            ("\u{301}", r"\u{301}"),
            ("日本", "日本"),
            ("", "(empty)"),
        ] {
            assert_eq!(visible(hostile), shown, "{hostile:?}");
        }
        let of = |kind: &str, value: &str| key(&BTreeMap::from([(kind.to_owned(), value.to_owned())]));
        assert_eq!((of("S", "a\tb"), of("N", "42")), (r"a\tb".to_owned(), "N:42".to_owned()));
        assert_eq!(place(Some("t\n"), Some("i")), r"t\n / i");
    }

    #[test]
    fn long_text_is_cut_in_its_middle_to_the_columns() {
        assert_eq!(shortened("game_1234567890_end", 10), "game_1…end");
        assert_eq!(shortened("short", 10), "short");
        for columns in 0..12 {
            for text in ["x".repeat(2_048), "日".repeat(600), "e\u{301}".repeat(700)] {
                assert!(measure_text_width(&shortened(&text, columns)) <= columns, "{columns}");
            }
        }
    }
}
