//! The words of a statement.
//!
//! Not here: what they mean in their order (`parse`).

use super::{Span, Unread};

/// A word of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    /// A keyword, a function or a bare name.
    Word(String),
    /// `"…"`: a name.
    Quoted(String),
    /// `'…'`: a string.
    Text(String),
    /// A number without its sign.
    Number(String),
    /// Anything else, one or two characters.
    Symbol(&'static str),
}

const SYMBOLS: [&str; 22] = [
    "<>", "<=", ">=", "!=", "=", "<", ">", "{", "}", "[", "]", "(", ")", ",", ":", "*", "?", "+", "-", ".",
    ";", "/",
];

/// All words of a text. White space and comments (`--` to the end of the line, `/* … */`) part
/// them.
pub(super) fn lex(text: &str) -> Result<Vec<(Token, Span)>, Unread> {
    let mut tokens: Vec<(Token, Span)> = Vec::with_capacity(text.len() / 4 + 1);
    let mut at = skip_blank(text, 0)?;
    while let Some(first) = text.get(at..).and_then(|rest| rest.chars().next()) {
        let (token, end) = match first {
            '"' => quoted(text, at, '"').map(|(name, end)| (Token::Quoted(name), end))?,
            '\'' => quoted(text, at, '\'').map(|(name, end)| (Token::Text(name), end))?,
            'a'..='z' | 'A'..='Z' | '_' => {
                let end = until(text, at, |byte| byte.is_ascii_alphanumeric() || byte == b'_');
                (Token::Word(slice(text, at..end)), end)
            }
            '0'..='9' => number(text, at),
            '.' if starts_number(text, at, tokens.last().map(|(_, span)| span.end)) => number(text, at),
            _ => symbol(text, at)?,
        };
        tokens.push((token, at..end));
        at = skip_blank(text, end)?;
    }
    Ok(tokens)
}

fn slice(text: &str, span: Span) -> String {
    text.get(span).unwrap_or_default().to_owned()
}

fn until(text: &str, from: usize, wanted: impl Fn(u8) -> bool) -> usize {
    let rest = text.as_bytes().get(from..).unwrap_or_default();
    from + rest.iter().position(|byte| !wanted(*byte)).unwrap_or(rest.len())
}

/// A point starts a number unless it follows right upon a name or a bracket, where it goes on with
/// a path.
fn starts_number(text: &str, at: usize, last: Option<usize>) -> bool {
    let digit = text.as_bytes().get(at + 1).is_some_and(u8::is_ascii_digit);
    let continues = last == Some(at)
        && text
            .as_bytes()
            .get(at.wrapping_sub(1))
            .is_some_and(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'"' | b']' | b')'));
    digit && !continues
}

fn number(text: &str, at: usize) -> (Token, usize) {
    let digits = |from| until(text, from, |byte| byte.is_ascii_digit());
    let byte = |at: usize| text.as_bytes().get(at).copied();
    let mut end = digits(at);
    if byte(end) == Some(b'.') {
        end = digits(end + 1);
    }
    if matches!(byte(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(byte(end + 1), Some(b'+' | b'-')));
        if byte(end + 1 + sign).is_some_and(|byte| byte.is_ascii_digit()) {
            end = digits(end + 1 + sign);
        }
    }
    (Token::Number(slice(text, at..end)), end)
}

fn symbol(text: &str, at: usize) -> Result<(Token, usize), Unread> {
    let rest = text.get(at..).unwrap_or_default();
    match SYMBOLS.into_iter().find(|symbol| rest.starts_with(symbol)) {
        Some(symbol) => Ok((Token::Symbol(symbol), at + symbol.len())),
        None => Err(Unread { what: "an unknown character".to_owned(), at }),
    }
}

/// A text between two `quote`s, a doubled one standing for itself.
fn quoted(text: &str, at: usize, quote: char) -> Result<(String, usize), Unread> {
    let mut inner = String::new();
    let mut from = at + 1;
    loop {
        let rest = text.get(from..).unwrap_or_default();
        let Some((part, after)) = rest.split_once(quote) else {
            return Err(Unread { what: "a quote that is not closed".to_owned(), at });
        };
        inner.push_str(part);
        from += part.len() + 1;
        if !after.starts_with(quote) {
            return Ok((inner, from));
        }
        inner.push(quote);
        from += 1;
    }
}

fn skip_blank(text: &str, mut at: usize) -> Result<usize, Unread> {
    loop {
        at = until(text, at, |byte| byte.is_ascii_whitespace());
        let rest = text.get(at..).unwrap_or_default();
        if rest.starts_with("--") {
            at += rest.find('\n').unwrap_or(rest.len());
        } else if let Some(comment) = rest.strip_prefix("/*") {
            let end = comment.find("*/");
            let unread = || Unread { what: "a comment that is not closed".to_owned(), at };
            at += end.ok_or_else(unread)? + 4;
        } else {
            return Ok(at);
        }
    }
}
