//! An expression's text as tokens.

use super::kind::Kind;
use crate::Error;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token {
    /// A keyword, a function's name or an attribute's.
    Word,
    /// `#name`
    Name,
    /// `:value`
    Value,
    /// Digits.
    Digits,
    /// `= <> < <= > >= + - ( ) [ ] . ,`
    Symbol,
    /// What belongs to no expression.
    Unknown,
}

/// A token and where it stands in the text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lexeme<'a> {
    pub(super) token: Token,
    pub(super) text: &'a str,
    start: usize,
}

pub(super) fn lex(text: &str) -> Vec<Lexeme<'_>> {
    let bytes = text.as_bytes();
    let (mut found, mut at) = (Vec::new(), 0);
    while let Some(&first) = bytes.get(at) {
        if first.is_ascii_whitespace() {
            at += 1;
            continue;
        }
        let run = |from: usize, of: fn(u8) -> bool| {
            from + bytes.iter().skip(from).take_while(|byte| of(**byte)).count()
        };
        let in_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let (token, end) = match (first, bytes.get(at + 1)) {
            (b'a'..=b'z' | b'A'..=b'Z' | b'_', _) => (Token::Word, run(at, in_word)),
            (b'0'..=b'9', _) => (Token::Digits, run(at, |byte| byte.is_ascii_digit())),
            (b'#', Some(next)) if in_word(*next) => (Token::Name, run(at + 1, in_word)),
            (b':', Some(next)) if in_word(*next) => (Token::Value, run(at + 1, in_word)),
            (b'<', Some(b'=' | b'>')) | (b'>', Some(b'=')) => (Token::Symbol, at + 2),
            (b'=' | b'<' | b'>' | b'+' | b'-' | b'(' | b')' | b'[' | b']' | b'.' | b',', _) => {
                (Token::Symbol, at + 1)
            }
            _ => {
                let length = text.get(at..).and_then(|rest| rest.chars().next()).map_or(1, char::len_utf8);
                (Token::Unknown, at + length)
            }
        };
        found.push(Lexeme { token, text: text.get(at..end).unwrap_or_default(), start: at });
        at = end;
    }
    found
}

/// DynamoDB's syntax error for the token at `at`: the token, and the text from the token before to
/// the one after it.
pub(super) fn syntax_error(kind: Kind, text: &str, lexemes: &[Lexeme<'_>], at: usize) -> Error {
    let end = |lexeme: &Lexeme<'_>| lexeme.start + lexeme.text.len();
    let (token, near) = match lexemes.get(at) {
        Some(offending) => {
            let first = at.checked_sub(1).and_then(|before| lexemes.get(before)).unwrap_or(offending);
            let last = lexemes.get(at + 1).unwrap_or(offending);
            (offending.text, text.get(first.start..end(last)).unwrap_or_default())
        }
        None => ("<EOF>", lexemes.last().map_or(text, |last| last.text)),
    };
    kind.error(&format!("Syntax error; token: \"{token}\", near: \"{near}\""))
}

/// Whether a pair of parentheses stands directly within another: `((a = :b))`.
pub(super) fn has_redundant_parentheses(lexemes: &[Lexeme<'_>]) -> bool {
    let mut open = Vec::new();
    let mut last_pair = None;
    for (at, lexeme) in lexemes.iter().enumerate() {
        match lexeme.text {
            "(" => open.push(at),
            ")" => {
                let Some(start) = open.pop() else { return false };
                let call =
                    start.checked_sub(1).and_then(|before| lexemes.get(before)).is_some_and(|before| {
                        before.token == Token::Word
                            && !["AND", "OR", "NOT"].iter().any(|word| before.text.eq_ignore_ascii_case(word))
                    });
                if !call && last_pair == Some((start + 1, at - 1)) {
                    return true;
                }
                last_pair = Some((start, at));
            }
            _ => {}
        }
    }
    false
}
