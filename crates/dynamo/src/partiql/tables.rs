//! The tables that a statement names, whether or not the parser takes it: what stands behind
//! `FROM`, `INTO` and `UPDATE`.
//!
//! Only a scanner, and a generous one: whoever looks for a table that must not be touched must not
//! miss it in a statement that only a store can read.

use super::Span;

/// The table names in a statement, in order.
pub fn tables(statement: &str) -> Vec<String> {
    tables_at(statement).into_iter().map(|(name, _)| name).collect()
}

/// [`tables`], and where each stands, quotes included.
pub fn tables_at(statement: &str) -> Vec<(String, Span)> {
    let mut found = Vec::new();
    let mut rest = statement;
    let mut expects = false;
    while let Some((token, after)) = next(rest) {
        let start = statement.len() - skip_blank(rest).len();
        let span = start..statement.len() - after.len();
        rest = after;
        match token {
            Token::Word(word) => {
                let keyword =
                    ["FROM", "INTO", "UPDATE"].iter().any(|keyword| word.eq_ignore_ascii_case(keyword));
                if expects && !keyword {
                    found.push((word.to_owned(), span));
                }
                expects = keyword;
            }
            Token::Quoted(name) => {
                if expects {
                    found.push((name, span));
                }
                expects = false;
            }
            Token::Other => expects = false,
        }
    }
    found
}

/// Whether a statement is a SELECT, which writes nothing.
pub fn is_select(statement: &str) -> bool {
    matches!(next(statement), Some((Token::Word(word), _)) if word.eq_ignore_ascii_case("SELECT"))
}

enum Token<'a> {
    Word(&'a str),
    Quoted(String),
    Other,
}

fn next(text: &str) -> Option<(Token<'_>, &str)> {
    let text = skip_blank(text);
    let first = text.chars().next()?;
    match first {
        '"' => quoted(text, '"').map(|(name, rest)| (Token::Quoted(name), rest)),
        '\'' => quoted(text, '\'').map(|(name, rest)| (Token::Quoted(name), rest)),
        _ => {
            let end =
                text.find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-'))).unwrap_or(text.len());
            // A comment ends a word.
            let end = text.get(..end).and_then(|word| word.find("--")).unwrap_or(end);
            if end == 0 {
                return Some((Token::Other, text.get(first.len_utf8()..)?));
            }
            let (word, rest) = text.split_at(end);
            Some((Token::Word(word), rest))
        }
    }
}

/// A text between two `quote`s, a doubled one standing for itself; up to the end where the second
/// is missing.
fn quoted(text: &str, quote: char) -> Option<(String, &str)> {
    let mut name = String::new();
    let mut rest = text.get(1..)?;
    loop {
        let Some((inner, after)) = rest.split_once(quote) else { return Some((name + rest, "")) };
        name.push_str(inner);
        match after.strip_prefix(quote) {
            Some(more) => {
                name.push(quote);
                rest = more;
            }
            None => return Some((name, after)),
        }
    }
}

/// Skips white space and comments.
fn skip_blank(mut text: &str) -> &str {
    loop {
        text = text.trim_start();
        if let Some(comment) = text.strip_prefix("--") {
            text = comment.split_once('\n').map_or("", |(_, rest)| rest);
        } else if let Some(comment) = text.strip_prefix("/*") {
            text = comment.split_once("*/").map_or("", |(_, rest)| rest);
        } else {
            return text;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{is_select, tables};

    #[test]
    fn a_select_begins_with_its_word() {
        assert!(is_select("-- c\n select * from T") && is_select("SELECT*FROM T"));
        assert!(!is_select("UPDATE T SET a = 'SELECT'") && !is_select("'SELECT' FROM T") && !is_select(""));
    }

    #[test]
    fn names_are_found_behind_their_keywords() {
        assert_eq!(tables("SELECT * FROM \"my.table\".\"idx\" WHERE a = 'FROM b'"), ["my.table"]);
        assert_eq!(tables("insert into T value {'a': 'x'}"), ["T"]);
        assert_eq!(tables("DELETE FROM/* c */ t-1_x WHERE a=1"), ["t-1_x"]);
        assert_eq!(tables("EXISTS(SELECT * FROM -- c\n \"we\"\"ird\" WHERE pk='it''s from x')"), ["we\"ird"]);
        assert!(tables("UPDATE").is_empty());
        assert!(tables("").is_empty());
        assert_eq!(tables("FROM \"open"), ["open"]);
        assert_eq!(tables("SELECT * FROM 'single'"), ["single"]);
        assert_eq!(tables("SELECT * FROM hidden--note"), ["hidden"]);
    }
}
