//! Statements and their clauses.
//!
//! Not here: `WHERE` (`condition`), values and paths (`term`).

use super::lexer::{Token, lex};
use super::{Action, Named, Order, Put, Returned, Span, Statement, Unread};
use crate::expression::Path;

/// A parser at a word of a statement.
pub(super) struct Parser {
    tokens: Vec<(Token, Span)>,
    at: usize,
    end: usize,
    pub(super) parameters: usize,
}

/// Reads a statement. The text may be of any length; nesting is bounded ([`super::MAX_DEPTH`]).
///
/// # Errors
/// [`Unread`] for what is no statement of DynamoDB's dialect, and for forms of it that are not
/// understood here.
pub fn parse(text: &str) -> Result<Statement, Unread> {
    let mut parser = Parser { tokens: lex(text)?, at: 0, end: text.len(), parameters: 0 };
    let mut statement = parser.statement()?;
    parser.take(";");
    if parser.at < parser.tokens.len() {
        return Err(parser.unread("something behind the end of the statement"));
    }
    statement.parameters = parser.parameters;
    Ok(statement)
}

impl Parser {
    pub(super) fn peek(&self) -> Option<&Token> {
        self.peek_at(0)
    }

    pub(super) fn peek_at(&self, ahead: usize) -> Option<&Token> {
        self.tokens.get(self.at + ahead).map(|(token, _)| token)
    }

    pub(super) fn next(&mut self) -> Option<(Token, Span)> {
        let found = self.tokens.get(self.at).cloned();
        if found.is_some() {
            self.at += 1;
        }
        found
    }

    /// Where the next word starts.
    pub(super) fn start(&self) -> usize {
        self.tokens.get(self.at).map_or(self.end, |(_, span)| span.start)
    }

    /// From `start` to the end of the last word read.
    pub(super) fn since(&self, start: usize) -> Span {
        let last = self.at.checked_sub(1).and_then(|last| self.tokens.get(last));
        start..last.map_or(start, |(_, span)| span.end).max(start)
    }

    pub(super) fn unread(&self, what: &str) -> Unread {
        Unread { what: what.to_owned(), at: self.start() }
    }

    pub(super) fn is_symbol(&self, ahead: usize, symbol: &str) -> bool {
        matches!(self.peek_at(ahead), Some(Token::Symbol(found)) if *found == symbol)
    }

    pub(super) fn is_word(&self, ahead: usize, word: &str) -> bool {
        matches!(self.peek_at(ahead), Some(Token::Word(found)) if found.eq_ignore_ascii_case(word))
    }

    /// Takes a symbol, if it comes next.
    pub(super) fn take(&mut self, symbol: &str) -> bool {
        let found = self.is_symbol(0, symbol);
        if found {
            self.at += 1;
        }
        found
    }

    /// Takes a keyword, if it comes next.
    pub(super) fn take_word(&mut self, word: &str) -> bool {
        let found = self.is_word(0, word);
        if found {
            self.at += 1;
        }
        found
    }

    pub(super) fn expect(&mut self, symbol: &str) -> Result<(), Unread> {
        if self.take(symbol) { Ok(()) } else { Err(self.unread(&format!("no {symbol}"))) }
    }

    pub(super) fn expect_word(&mut self, word: &str) -> Result<(), Unread> {
        if self.take_word(word) { Ok(()) } else { Err(self.unread(&format!("no {word}"))) }
    }

    fn statement(&mut self) -> Result<Statement, Unread> {
        if self.take_word("SELECT") {
            self.select()
        } else if self.take_word("INSERT") {
            self.insert()
        } else if self.take_word("UPDATE") {
            let (table, index) = self.target()?;
            let action = self.changes()?;
            self.finish(table, index, action)
        } else if self.take_word("DELETE") {
            self.expect_word("FROM")?;
            let (table, index) = self.target()?;
            self.finish(table, index, Action::Delete)
        } else if self.take_word("FROM") {
            let (table, index) = self.target()?;
            let condition = self.condition_clause()?;
            let action = self.changes()?;
            let (returned, shows_former) = self.returning()?;
            Ok(Statement { table, index, action, condition, returned, shows_former, parameters: 0 })
        } else if self.take_word("EXISTS") {
            self.expect("(")?;
            self.expect_word("SELECT")?;
            let select = self.select()?;
            self.expect(")")?;
            Ok(Statement { action: Action::Exists, ..select })
        } else {
            Err(self.unread("no SELECT, INSERT, UPDATE or DELETE"))
        }
    }

    /// The clauses behind what an UPDATE or DELETE does.
    fn finish(&mut self, table: Named, index: Option<Named>, action: Action) -> Result<Statement, Unread> {
        let condition = self.condition_clause()?;
        let (returned, shows_former) = self.returning()?;
        Ok(Statement { table, index, action, condition, returned, shows_former, parameters: 0 })
    }

    fn condition_clause(&mut self) -> Result<Option<super::Condition>, Unread> {
        if self.take_word("WHERE") { self.any_of(0).map(Some) } else { Ok(None) }
    }

    /// What `RETURNING` shows, and whether as it was.
    fn returning(&mut self) -> Result<(Returned, bool), Unread> {
        if !self.take_word("RETURNING") {
            return Ok((Returned::Nothing, false));
        }
        let returned = if self.take_word("ALL") { Returned::Item } else { Returned::Changes };
        if returned == Returned::Changes && !self.take_word("MODIFIED") {
            return Err(self.unread("no ALL or MODIFIED"));
        }
        let shows_former = self.take_word("OLD");
        if !shows_former && !self.take_word("NEW") {
            return Err(self.unread("no OLD or NEW"));
        }
        self.expect("*")?;
        Ok((returned, shows_former))
    }

    fn select(&mut self) -> Result<Statement, Unread> {
        let mut shown = Vec::new();
        if !self.take("*") {
            shown.push(self.place()?.path);
            while self.take(",") {
                shown.push(self.place()?.path);
            }
        }
        self.expect_word("FROM")?;
        let (table, index) = self.target()?;
        let condition = self.condition_clause()?;
        let mut order = Vec::new();
        if self.take_word("ORDER") {
            self.expect_word("BY")?;
            loop {
                let path = self.place()?.path;
                let descending = self.take_word("DESC");
                if !descending {
                    self.take_word("ASC");
                }
                order.push(Order { path, descending });
                if !self.take(",") {
                    break;
                }
            }
        }
        Ok(Statement {
            table,
            index,
            action: Action::Select { shown, order },
            condition,
            returned: Returned::Nothing,
            shows_former: false,
            parameters: 0,
        })
    }

    fn insert(&mut self) -> Result<Statement, Unread> {
        self.expect_word("INTO")?;
        let (table, index) = self.target()?;
        self.expect_word("VALUE")?;
        let item = self.map(0)?;
        if self.take_word("IF") {
            self.expect_word("NOT")?;
            self.expect_word("EXISTS")?;
        }
        Ok(Statement {
            table,
            index,
            action: Action::Insert { item },
            condition: None,
            returned: Returned::Nothing,
            shows_former: false,
            parameters: 0,
        })
    }

    /// `SET` and `REMOVE`, in any order and number.
    fn changes(&mut self) -> Result<Action, Unread> {
        let (mut written, mut read) = (Vec::new(), Vec::new());
        loop {
            if self.take_word("SET") {
                loop {
                    let path = self.place()?.path;
                    self.expect("=")?;
                    written.push((path, self.assigned(&mut read, 0)?));
                    if !self.take(",") {
                        break;
                    }
                }
            } else if self.take_word("REMOVE") {
                written.push((self.place()?.path, Put::Nothing));
            } else if written.is_empty() {
                return Err(self.unread("no SET or REMOVE"));
            } else {
                return Ok(Action::Update { written, read });
            }
        }
    }

    /// An assigned value: a path, a value, a call, or a sum of two of them.
    fn assigned(&mut self, read: &mut Vec<Path>, depth: usize) -> Result<Put, Unread> {
        self.bounded(depth)?;
        let mut put = None;
        loop {
            let mut term = None;
            if matches!(self.peek(), Some(Token::Word(_))) && self.is_symbol(1, "(") {
                self.next();
                self.expect("(")?;
                loop {
                    self.assigned(read, depth + 1)?;
                    if !self.take(",") {
                        break;
                    }
                }
                self.expect(")")?;
            } else if self.names_path() {
                read.push(self.place()?.path);
            } else {
                term = Some(self.term(depth + 1)?);
            }
            let first = put.is_none();
            put = Some(term.filter(|_| first).map_or(Put::Made, Put::Value));
            if !(self.take("+") || self.take("-")) {
                return Ok(put.unwrap_or(Put::Made));
            }
        }
    }

    /// A table, and an index behind it.
    fn target(&mut self) -> Result<(Named, Option<Named>), Unread> {
        let table = self.name()?;
        let index = if self.take(".") { Some(self.name()?) } else { None };
        Ok((table, index))
    }

    fn name(&mut self) -> Result<Named, Unread> {
        let start = self.start();
        let name = match self.next() {
            // The embedded engine takes a name in single quotes too.
            Some((Token::Word(name) | Token::Quoted(name) | Token::Text(name), _)) if !name.is_empty() => {
                name
            }
            _ => return Err(Unread { what: "no name".to_owned(), at: start }),
        };
        Ok(Named { name, span: self.since(start) })
    }

    pub(super) fn bounded(&self, depth: usize) -> Result<(), Unread> {
        if depth > super::MAX_DEPTH { Err(self.unread("too deep a nesting")) } else { Ok(()) }
    }
}
