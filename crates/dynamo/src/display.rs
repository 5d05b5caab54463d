//! Text of clients (keys, attribute names) as a terminal or a log may show it.
//!
//! A key can hold anything: line ends, control sequences that recolour or clear a terminal, marks
//! that turn the direction of the text round, and up to 2 KB of it. Not here: what a format such as
//! JSON, TOML or HTML escapes.

use std::borrow::Cow;

/// Marks on one letter that are shown. Piles of them hide the lines around.
const MARKS: usize = 2;

/// The text with every character that is not printed as one visible mark written as an escape:
/// `\n`, `\u{1b}`, `\u{202e}`. What is inert already stays as it is, so it may be called twice.
/// Backslashes and quotes stay, and up to two combining marks on a letter.
pub fn inert(text: &str) -> Cow<'_, str> {
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    let mut marks = 0;
    for c in text.chars() {
        marks = if is_mark(c) { marks + 1 } else { 0 };
        if is_inert(c) && marks <= MARKS {
            shown.push(c);
        } else {
            shown.extend(c.escape_debug());
        }
    }
    Cow::Owned(shown)
}

/// [`inert`], of at most so many characters; the last of a text that is longer is `…`.
pub fn excerpt(text: &str, most: usize) -> String {
    let start: String = text.chars().take(most.saturating_add(1)).collect();
    let shown = inert(&start);
    if shown.chars().nth(most).is_none() {
        return shown.into_owned();
    }
    let mut cut: String = shown.chars().take(most.saturating_sub(1)).collect();
    cut.push('…');
    cut
}

/// Whether it stands on the letter before it.
fn is_mark(c: char) -> bool {
    !c.is_ascii() && is_inert(c) && c.escape_debug().len() > 1
}

/// Whether a character only shows itself: no control or format character, separator of lines or
/// unassigned code point. Combining marks are inert.
pub fn is_inert(c: char) -> bool {
    if c.is_ascii() {
        return !c.is_ascii_control();
    }
    // Behind another character, the standard library escapes what is not printable, and nothing
    // else.
    let mut pair = [b'a'; 5];
    let length = pair.get_mut(1..).map_or(0, |rest| c.encode_utf8(rest).len());
    let pair = pair.get(..=length).and_then(|pair| std::str::from_utf8(pair).ok());
    pair.is_some_and(|pair| pair.escape_debug().count() == 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_acts_on_a_terminal_is_escaped_and_the_rest_left() {
        for (text, shown) in [
            ("game_x", "game_x"),
            ("a \"b\" 'c' \\d", "a \"b\" 'c' \\d"),
            ("é日本語 न\u{93f}", "é日本語 न\u{93f}"),
            ("<b>&amp;</b>", "<b>&amp;</b>"),
            ("a\nb\r\tc\0", "a\\nb\\r\\tc\\0"),
            ("\u{1b}[31mred\u{7f}\u{9b}2J", "\\u{1b}[31mred\\u{7f}\\u{9b}2J"),
            ("\u{202e}txt\u{2066}\u{200b}\u{feff}", "\\u{202e}txt\\u{2066}\\u{200b}\\u{feff}"),
            ("z\u{300}\u{301}\u{302}", "z\u{300}\u{301}\\u{302}"),
            ("a\u{2028}b\u{2029}\u{85}", "a\\u{2028}b\\u{2029}\\u{85}"),
        ] {
            assert_eq!(inert(text), shown);
            assert_eq!(inert(&inert(text)), shown);
        }
    }

    #[test]
    fn long_texts_are_cut_by_what_is_shown() {
        assert_eq!(excerpt("abcd", 4), "abcd");
        assert_eq!(excerpt("abcde", 4), "abc…");
        assert_eq!(excerpt("\u{1b}\u{1b}", 8), "\\u{1b}\\…");
        assert_eq!(excerpt(&"k".repeat(2_048), 60).chars().count(), 60);
        assert_eq!((excerpt("", 0), excerpt("a", 0)), (String::new(), "…".to_owned()));
    }
}
