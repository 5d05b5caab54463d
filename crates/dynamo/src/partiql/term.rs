//! Values and paths as they are written in statements.

use std::collections::BTreeSet;

use super::lexer::Token;
use super::parse::Parser;
use super::{Place, Term, TermKind, Unread};
use crate::Value;
use crate::expression::{Path, Step};

/// Words that are no bare name.
const KEYWORDS: [&str; 27] = [
    "SELECT",
    "INSERT",
    "UPDATE",
    "DELETE",
    "FROM",
    "INTO",
    "WHERE",
    "SET",
    "REMOVE",
    "VALUE",
    "ORDER",
    "BY",
    "RETURNING",
    "AND",
    "OR",
    "NOT",
    "IN",
    "IS",
    "BETWEEN",
    "LIKE",
    "TRUE",
    "FALSE",
    "NULL",
    "MISSING",
    "ASC",
    "DESC",
    "EXISTS",
];

impl Parser {
    /// Whether a path comes next.
    pub(super) fn names_path(&self) -> bool {
        match self.peek() {
            Some(Token::Quoted(_)) => true,
            Some(Token::Word(word)) => !KEYWORDS.iter().any(|keyword| word.eq_ignore_ascii_case(keyword)),
            _ => false,
        }
    }

    /// `a`, `"a"`, `a.b[0]`.
    pub(super) fn place(&mut self) -> Result<Place, Unread> {
        let start = self.start();
        let root = self.step()?;
        let mut rest = Vec::new();
        loop {
            if self.take(".") {
                rest.push(Step::Name(self.step()?));
            } else if self.take("[") {
                let unread = self.unread("no list index");
                match self.next() {
                    Some((Token::Number(index), _)) => {
                        rest.push(Step::Index(index.parse().map_err(|_| unread)?));
                    }
                    _ => return Err(unread),
                }
                self.expect("]")?;
            } else {
                return Ok(Place { path: Path { root, rest }, span: self.since(start) });
            }
        }
    }

    fn step(&mut self) -> Result<String, Unread> {
        if !self.names_path() {
            return Err(self.unread("no attribute name"));
        }
        match self.next() {
            Some((Token::Word(name) | Token::Quoted(name), _)) if !name.is_empty() => Ok(name),
            _ => Err(self.unread("an empty attribute name")),
        }
    }

    /// A value.
    pub(super) fn term(&mut self, depth: usize) -> Result<Term, Unread> {
        self.bounded(depth)?;
        let start = self.start();
        let kind = self.term_kind(depth)?;
        Ok(Term { kind, span: self.since(start) })
    }

    fn term_kind(&mut self, depth: usize) -> Result<TermKind, Unread> {
        if self.take("?") {
            self.parameters += 1;
            return Ok(TermKind::Parameter(self.parameters - 1));
        }
        if self.take("[") {
            return self.terms(depth, "]").map(TermKind::List);
        }
        if self.is_symbol(0, "{") {
            return self.map(depth).map(TermKind::Map);
        }
        if self.is_symbol(0, "<") && self.is_symbol(1, "<") {
            self.next();
            self.next();
            return self.bag(depth);
        }
        for (word, value) in
            [("TRUE", Value::Bool(true)), ("FALSE", Value::Bool(false)), ("NULL", Value::Null)]
        {
            if self.take_word(word) {
                return Ok(TermKind::Value(value));
            }
        }
        let sign = if self.take("-") {
            "-"
        } else {
            self.take("+");
            ""
        };
        let unread = self.unread("no value");
        match self.next() {
            Some((Token::Number(number), _)) => Ok(TermKind::Value(Value::N(format!("{sign}{number}")))),
            Some((Token::Text(text), _)) if sign.is_empty() => Ok(TermKind::Value(Value::S(text))),
            _ => Err(unread),
        }
    }

    fn terms(&mut self, depth: usize, close: &str) -> Result<Vec<Term>, Unread> {
        let mut terms = Vec::new();
        while !self.take(close) {
            if !terms.is_empty() {
                self.expect(",")?;
            }
            terms.push(self.term(depth + 1)?);
        }
        Ok(terms)
    }

    /// `{'a': 1, …}`.
    pub(super) fn map(&mut self, depth: usize) -> Result<Vec<(String, Term)>, Unread> {
        self.bounded(depth)?;
        self.expect("{")?;
        let mut members = Vec::new();
        while !self.take("}") {
            if !members.is_empty() {
                self.expect(",")?;
            }
            let unread = self.unread("no attribute name");
            let name = match self.next() {
                Some((Token::Text(name) | Token::Quoted(name) | Token::Word(name), _)) => name,
                _ => return Err(unread),
            };
            self.expect(":")?;
            members.push((name, self.term(depth + 1)?));
        }
        Ok(members)
    }

    /// The rest of `<<…>>`: a set of strings or of numbers.
    fn bag(&mut self, depth: usize) -> Result<TermKind, Unread> {
        let members = self.terms(depth, ">")?;
        self.expect(">")?;
        let mut strings = BTreeSet::new();
        let mut numbers = Vec::new();
        for member in members {
            match member.kind {
                TermKind::Value(Value::S(text)) if numbers.is_empty() => {
                    strings.insert(text);
                }
                TermKind::Value(Value::N(number)) if strings.is_empty() => numbers.push(number),
                _ => return Err(self.unread("a set of something else than strings or numbers")),
            }
        }
        Ok(TermKind::Value(if numbers.is_empty() { Value::Ss(strings) } else { Value::Ns(numbers) }))
    }
}
