//! `WHERE` clauses.
//!
//! Not here: what a clause means for an item (`lower`).

use super::lexer::Token;
use super::parse::Parser;
use super::{Condition, Operand, Place, Test, TestKind, Unread};
use crate::expression::Comparator;

impl Parser {
    /// Conditions joined by `OR`.
    pub(super) fn any_of(&mut self, depth: usize) -> Result<Condition, Unread> {
        self.bounded(depth)?;
        let mut parts = vec![self.all_of(depth)?];
        while self.take_word("OR") {
            parts.push(self.all_of(depth)?);
        }
        Ok(joined(parts, Condition::Or))
    }

    fn all_of(&mut self, depth: usize) -> Result<Condition, Unread> {
        let mut parts = vec![self.negated(depth)?];
        while self.take_word("AND") {
            parts.push(self.negated(depth)?);
        }
        Ok(joined(parts, Condition::And))
    }

    fn negated(&mut self, depth: usize) -> Result<Condition, Unread> {
        let mut odd = false;
        while self.take_word("NOT") {
            odd = !odd;
        }
        let inner = if self.take("(") {
            let inner = self.any_of(depth + 1)?;
            self.expect(")")?;
            inner
        } else {
            self.test(depth)?
        };
        Ok(if odd { Condition::Not(Box::new(inner)) } else { inner })
    }

    fn test(&mut self, depth: usize) -> Result<Condition, Unread> {
        let start = self.start();
        if let Some(kind) = self.function(depth)? {
            return Ok(Condition::Test(Test { kind, span: self.since(start) }));
        }
        let left = self.operand(depth)?;
        if let Some(comparator) = self.comparator() {
            let kind = TestKind::Compare(left, comparator, self.operand(depth)?);
            return Ok(Condition::Test(Test { kind, span: self.since(start) }));
        }
        if self.take_word("IS") {
            let negated = self.take_word("NOT");
            let Operand::Path(place) = left else {
                return Err(self.unread("IS behind something else than a path"));
            };
            let (kind, negated) = match (self.type_name()?, negated) {
                (None, false) => (TestKind::Missing(place), false),
                (None, true) => (TestKind::Exists(place), false),
                (Some(name), negated) => (TestKind::Is(place, name), negated),
            };
            return Ok(self.tested(kind, start, negated));
        }
        let negated = self.take_word("NOT");
        let kind = if self.take_word("BETWEEN") {
            let low = self.operand(depth)?;
            self.expect_word("AND")?;
            TestKind::Between(left, low, self.operand(depth)?)
        } else if self.take_word("IN") {
            TestKind::In(left, self.list(depth)?)
        } else {
            return Err(self.unread("no comparison"));
        };
        Ok(self.tested(kind, start, negated))
    }

    fn tested(&self, kind: TestKind, start: usize, negated: bool) -> Condition {
        let test = Condition::Test(Test { kind, span: self.since(start) });
        if negated { Condition::Not(Box::new(test)) } else { test }
    }

    /// A test that is a call.
    fn function(&mut self, depth: usize) -> Result<Option<TestKind>, Unread> {
        let Some(Token::Word(word)) = self.peek() else { return Ok(None) };
        if !self.is_symbol(1, "(") || word.eq_ignore_ascii_case("size") {
            return Ok(None);
        }
        let word = word.to_ascii_lowercase();
        if !["attribute_exists", "attribute_not_exists", "attribute_type", "begins_with", "contains"]
            .contains(&word.as_str())
        {
            return Err(self.unread("an unknown function"));
        }
        self.next();
        self.expect("(")?;
        let kind = if word == "attribute_exists" {
            TestKind::Exists(self.place()?)
        } else if word == "attribute_not_exists" {
            TestKind::Missing(self.place()?)
        } else {
            let first = self.operand(depth + 1)?;
            self.expect(",")?;
            let second = self.operand(depth + 1)?;
            match word.as_str() {
                "attribute_type" => TestKind::AttributeType(first, second),
                "begins_with" => TestKind::BeginsWith(first, second),
                _ => TestKind::Contains(first, second),
            }
        };
        self.expect(")")?;
        Ok(Some(kind))
    }

    fn operand(&mut self, depth: usize) -> Result<Operand, Unread> {
        self.bounded(depth)?;
        if self.is_word(0, "size") && self.is_symbol(1, "(") {
            self.next();
            self.expect("(")?;
            let inner = self.operand(depth + 1)?;
            self.expect(")")?;
            return Ok(Operand::Size(Box::new(inner)));
        }
        if self.names_path() {
            self.place().map(Operand::Path)
        } else {
            self.term(depth + 1).map(Operand::Term)
        }
    }

    fn list(&mut self, depth: usize) -> Result<Vec<Operand>, Unread> {
        let close = if self.take("[") {
            "]"
        } else {
            self.expect("(")?;
            ")"
        };
        let mut operands = Vec::new();
        while !self.take(close) {
            if !operands.is_empty() {
                self.expect(",")?;
            }
            operands.push(self.operand(depth)?);
        }
        Ok(operands)
    }

    fn comparator(&mut self) -> Option<Comparator> {
        let comparator = match self.peek()? {
            Token::Symbol("=") => Comparator::Eq,
            Token::Symbol("<>" | "!=") => Comparator::Ne,
            Token::Symbol("<") => Comparator::Lt,
            Token::Symbol("<=") => Comparator::Le,
            Token::Symbol(">") => Comparator::Gt,
            Token::Symbol(">=") => Comparator::Ge,
            _ => return None,
        };
        self.next();
        Some(comparator)
    }

    /// A type behind `IS`, by DynamoDB's name; `None` is `MISSING`.
    fn type_name(&mut self) -> Result<Option<&'static str>, Unread> {
        const TYPES: [(&str, Option<&str>); 10] = [
            ("MISSING", None),
            ("NULL", Some("NULL")),
            ("BOOL", Some("BOOL")),
            ("BOOLEAN", Some("BOOL")),
            ("BLOB", Some("B")),
            ("STRING", Some("S")),
            ("NUMERIC", Some("N")),
            ("STRUCT", Some("M")),
            ("TUPLE", Some("M")),
            ("LIST", Some("L")),
        ];
        match TYPES.into_iter().find(|(word, _)| self.is_word(0, word)) {
            Some((_, name)) => {
                self.next();
                Ok(name)
            }
            None => Err(self.unread("no type that DynamoDB tests for")),
        }
    }
}

fn joined(mut parts: Vec<Condition>, join: fn(Vec<Condition>) -> Condition) -> Condition {
    match (parts.pop(), parts.is_empty()) {
        (Some(only), true) => only,
        (last, _) => {
            parts.extend(last);
            join(parts)
        }
    }
}

impl Place {
    /// Whether it is that attribute and nothing inside it.
    pub fn is(&self, attribute: &str) -> bool {
        self.path.is_root(attribute)
    }
}
