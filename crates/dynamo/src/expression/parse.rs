//! What the parsers of all kinds of expressions share: tokens, paths, placeholders, limits.

use super::ast::{Path, Step};
use super::bindings::Bindings;
use super::faults::{Faults, Grave};
use super::is_reserved;
use super::kind::{Checks, Kind, MAX_EXPRESSION, MAX_OPERATORS};
use super::lexer::{Lexeme, Token, has_redundant_parentheses, lex, syntax_error};
use crate::{Error, Value};

/// How deep parentheses and functions may nest. DynamoDB's own bound is the number of operators;
/// this one keeps the parser's stack small.
const MAX_DEPTH: usize = 100;

/// The largest list index in a path, as tried on DynamoDB Local 1.11.478. AWS refuses large ones
/// without publishing the bound.
const MAX_INDEX: usize = i32::MAX as usize;

pub(super) struct Parser<'t, 'b> {
    pub(super) kind: Kind,
    pub(super) faults: Faults,
    text: &'t str,
    lexemes: Vec<Lexeme<'t>>,
    at: usize,
    depth: usize,
    operators: usize,
    bindings: &'b Bindings<'b>,
}

impl<'t, 'b> Parser<'t, 'b> {
    pub(super) fn new(kind: Kind, text: &'t str, bindings: &'b Bindings<'b>) -> Result<Self, Error> {
        if text.is_empty() {
            return Err(kind.error("The expression can not be empty;"));
        }
        if text.len() > MAX_EXPRESSION {
            let length = text.len();
            return Err(kind.error(&format!(
                "Expression size has exceeded the maximum allowed size; expression size: {length}"
            )));
        }
        let lexemes = lex(text);
        let mut faults = Faults::default();
        if matches!(kind, Kind::Condition | Kind::Filter | Kind::KeyCondition)
            && has_redundant_parentheses(&lexemes)
        {
            faults.note(Grave::Parentheses, kind, "The expression has redundant parentheses;");
        }
        Ok(Parser { kind, faults, text, lexemes, at: 0, depth: 0, operators: 0, bindings })
    }

    /// The whole text must have been read; then the gravest mistake is told.
    pub(super) fn finish(self, checks: Checks) -> Result<(), Error> {
        if self.at < self.lexemes.len() {
            return Err(self.syntax_error());
        }
        self.faults.finish(checks)
    }

    pub(super) fn syntax_error(&self) -> Error {
        syntax_error(self.kind, self.text, &self.lexemes, self.at)
    }

    pub(super) fn peek(&self) -> Option<Lexeme<'t>> {
        self.lexemes.get(self.at).copied()
    }

    pub(super) fn next(&mut self) {
        self.at += 1;
    }

    /// Takes a symbol if it comes next.
    pub(super) fn takes(&mut self, symbol: &str) -> bool {
        let found = self.peek().is_some_and(|next| next.token == Token::Symbol && next.text == symbol);
        if found {
            self.at += 1;
        }
        found
    }

    pub(super) fn expect(&mut self, symbol: &str) -> Result<(), Error> {
        if self.takes(symbol) { Ok(()) } else { Err(self.syntax_error()) }
    }

    /// Whether a keyword comes next; case does not matter.
    pub(super) fn at_word(&self, word: &str) -> bool {
        self.peek().is_some_and(|next| next.token == Token::Word && next.text.eq_ignore_ascii_case(word))
    }

    pub(super) fn takes_word(&mut self, word: &str) -> bool {
        let found = self.at_word(word);
        if found {
            self.at += 1;
        }
        found
    }

    /// The name of a function whose call starts here; its parenthesis is taken too.
    pub(super) fn takes_call(&mut self) -> Option<&'t str> {
        let name = self.peek().filter(|next| next.token == Token::Word && !self.is_keyword(next.text))?;
        self.lexemes.get(self.at + 1).filter(|next| next.text == "(")?;
        self.at += 2;
        Some(name.text)
    }

    /// Counts an operator or a function.
    pub(super) fn operator(&mut self) -> Result<(), Error> {
        self.operators += 1;
        if self.operators > MAX_OPERATORS {
            let message =
                format!("The expression contains too many operators; operator count: {}", self.operators);
            return Err(self.kind.error(&message));
        }
        Ok(())
    }

    /// Runs one level deeper.
    pub(super) fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, Error>) -> Result<T, Error> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.kind.error(&format!("The expression is nested deeper than {MAX_DEPTH} levels")));
        }
        let read = read(self);
        self.depth -= 1;
        read
    }

    /// A value's placeholder, if one comes next. An undefined one is noted and stands for `NULL`
    /// meanwhile.
    pub(super) fn takes_value(&mut self) -> Result<Option<Value>, Error> {
        let Some(next) = self.peek().filter(|next| next.token == Token::Value) else { return Ok(None) };
        self.next();
        let value = self.bindings.value(next.text)?;
        if value.is_none() {
            let message = format!(
                "An expression attribute value used in expression is not defined; attribute value: {}",
                next.text
            );
            self.faults.note_lost(Grave::Undefined, self.kind, &message);
        }
        Ok(Some(value.unwrap_or(Value::Null)))
    }

    /// A document path.
    pub(super) fn path(&mut self) -> Result<Path, Error> {
        let root = self.path_name()?;
        let mut rest = Vec::new();
        loop {
            if self.takes(".") {
                rest.push(Step::Name(self.path_name()?));
            } else if self.takes("[") {
                let digits = self
                    .peek()
                    .filter(|next| next.token == Token::Digits)
                    .ok_or_else(|| self.syntax_error())?;
                self.next();
                self.expect("]")?;
                match digits.text.parse().ok().filter(|index| *index <= MAX_INDEX) {
                    Some(index) => rest.push(Step::Index(index)),
                    None => {
                        let message =
                            format!("List index is not within the allowable range; index: [{}]", digits.text);
                        self.faults.note_lost(Grave::Function, self.kind, &message);
                    }
                }
            } else {
                return Ok(Path { root, rest });
            }
        }
    }

    fn path_name(&mut self) -> Result<String, Error> {
        let next = self.peek().ok_or_else(|| self.syntax_error())?;
        match next.token {
            Token::Name => {
                self.next();
                let name = self.bindings.name(next.text);
                if name.is_none() {
                    let message = format!(
                        "An expression attribute name used in the document path is not defined; attribute name: {}",
                        next.text
                    );
                    self.faults.note_lost(Grave::Undefined, self.kind, &message);
                }
                Ok(name.unwrap_or(next.text).to_owned())
            }
            Token::Word if !self.is_keyword(next.text) => {
                self.next();
                if is_reserved(next.text) {
                    let message =
                        format!("Attribute name is a reserved keyword; reserved keyword: {}", next.text);
                    self.faults.note(Grave::Reserved, self.kind, &message);
                }
                Ok(next.text.to_owned())
            }
            _ => Err(self.syntax_error()),
        }
    }

    fn is_keyword(&self, word: &str) -> bool {
        let keywords: &[&str] = match self.kind {
            Kind::Condition | Kind::Filter | Kind::KeyCondition => &["AND", "OR", "NOT", "IN", "BETWEEN"],
            Kind::Update => &["SET", "REMOVE", "ADD", "DELETE"],
            Kind::Projection => &[],
        };
        keywords.iter().any(|keyword| word.eq_ignore_ascii_case(keyword))
    }
}
