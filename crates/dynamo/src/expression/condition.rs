//! The grammar of conditions and filters.

use super::ast::{Comparator, Condition, Operand};
use super::bindings::Bindings;
use super::check;
use super::faults::Grave;
use super::kind::{Checks, Kind, MAX_IN_OPERANDS};
use super::lexer::Token;
use super::parse::Parser;
use crate::{Error, Value};

impl Condition {
    /// Reads a `ConditionExpression` or a `FilterExpression` and checks it as DynamoDB does.
    ///
    /// # Errors
    /// `ValidationException` in DynamoDB's words.
    pub fn parse(kind: Kind, text: &str, bindings: &Bindings<'_>) -> Result<Condition, Error> {
        Condition::read(kind, text, bindings, Checks::All)
    }

    /// [`parse`](Self::parse) with as many checks as are asked for.
    ///
    /// # Errors
    /// `ValidationException` in DynamoDB's words.
    pub fn read(kind: Kind, text: &str, bindings: &Bindings<'_>, checks: Checks) -> Result<Condition, Error> {
        let mut parser = Parser::new(kind, text, bindings)?;
        let node = parser.disjunction()?;
        let condition = parser.condition(node)?;
        parser.finish(checks)?;
        Ok(condition)
    }

    /// Whether a `ConditionExpression` is no sentence of the grammar, so that every DynamoDB
    /// refuses it, whatever its placeholders stand for. Not so of one that is only too long or
    /// nests too deep for this parser.
    pub fn is_broken(text: &str) -> bool {
        let bindings = Bindings::default();
        let Ok(mut parser) = Parser::new(Kind::Condition, text, &bindings) else { return false };
        match parser.disjunction().and_then(|node| parser.condition(node)) {
            Ok(_) => parser.peek().is_some(),
            Err(error) => error.message == parser.syntax_error().message,
        }
    }
}

/// What may stand in parentheses: an operand or a condition.
enum Node {
    Term(Term),
    Condition(Condition),
}

/// An operand as it is written.
pub(super) enum Term {
    Operand(Operand),
    Call(String, Vec<Term>),
}

impl Parser<'_, '_> {
    fn disjunction(&mut self) -> Result<Node, Error> {
        self.chain("OR", Self::conjunction, Condition::Or)
    }

    fn conjunction(&mut self) -> Result<Node, Error> {
        self.chain("AND", Self::negation, Condition::And)
    }

    fn chain(
        &mut self,
        word: &str,
        read: fn(&mut Self) -> Result<Node, Error>,
        join: fn(Vec<Condition>) -> Condition,
    ) -> Result<Node, Error> {
        let first = read(self)?;
        if !self.at_word(word) {
            return Ok(first);
        }
        let mut all = vec![self.condition(first)?];
        while self.takes_word(word) {
            self.operator()?;
            let next = read(self)?;
            all.push(self.condition(next)?);
        }
        Ok(Node::Condition(join(all)))
    }

    fn negation(&mut self) -> Result<Node, Error> {
        let mut negations = 0_usize;
        while self.takes_word("NOT") {
            self.operator()?;
            negations += 1;
        }
        let inner = self.predicate()?;
        if negations == 0 {
            return Ok(inner);
        }
        let inner = self.condition(inner)?;
        let negated = !negations.is_multiple_of(2);
        Ok(Node::Condition(if negated { Condition::Not(Box::new(inner)) } else { inner }))
    }

    fn predicate(&mut self) -> Result<Node, Error> {
        let left = if self.takes("(") {
            let inner = self.deeper(Self::disjunction)?;
            self.expect(")")?;
            match inner {
                Node::Term(term) => term,
                condition => return Ok(condition),
            }
        } else {
            self.term()?
        };
        let comparator =
            self.peek().filter(|next| next.token == Token::Symbol).and_then(|next| match next.text {
                "=" => Some(Comparator::Eq),
                "<>" => Some(Comparator::Ne),
                "<" => Some(Comparator::Lt),
                "<=" => Some(Comparator::Le),
                ">" => Some(Comparator::Gt),
                ">=" => Some(Comparator::Ge),
                _ => None,
            });
        let condition = if let Some(comparator) = comparator {
            self.next();
            self.operator()?;
            let right = self.operand_in_parentheses()?;
            Condition::Compare(self.operand(left), comparator, self.operand(right))
        } else if self.takes_word("BETWEEN") {
            self.operator()?;
            let low = self.operand_in_parentheses()?;
            if !self.takes_word("AND") {
                return Err(self.syntax_error());
            }
            let high = self.operand_in_parentheses()?;
            Condition::Between(self.operand(left), self.operand(low), self.operand(high))
        } else if self.takes_word("IN") {
            self.operator()?;
            self.expect("(")?;
            let list = self.arguments()?;
            if list.len() > MAX_IN_OPERANDS {
                let message = format!(
                    "The IN operator is provided with too many operands; number of operands: {}",
                    list.len()
                );
                self.faults.note(Grave::Operand, self.kind, &message);
            }
            Condition::In(self.operand(left), list.into_iter().map(|term| self.operand(term)).collect())
        } else {
            return Ok(Node::Term(left));
        };
        check::predicate(&condition, self.kind, &mut self.faults);
        self.faults.end_predicate();
        Ok(Node::Condition(condition))
    }

    /// An operand alone is a condition only where it calls a function that is one.
    fn condition(&mut self, node: Node) -> Result<Condition, Error> {
        let condition = match node {
            Node::Condition(condition) => condition,
            Node::Term(Term::Operand(Operand::Size(_))) => {
                self.misused("size");
                Condition::And(Vec::new())
            }
            Node::Term(Term::Operand(_)) => return Err(self.syntax_error()),
            Node::Term(Term::Call(name, arguments)) => {
                let condition = self.function(&name, arguments);
                check::predicate(&condition, self.kind, &mut self.faults);
                condition
            }
        };
        self.faults.end_predicate();
        Ok(condition)
    }

    fn term(&mut self) -> Result<Term, Error> {
        if let Some(name) = self.takes_call() {
            let arguments = self.arguments()?;
            if name != "size" {
                return Ok(Term::Call(name.to_owned(), arguments));
            }
            if arguments.len() != 1 {
                self.wrong_count(name, arguments.len());
            }
            let argument = arguments.into_iter().next().map(|term| self.operand(term));
            let argument = argument.unwrap_or(Operand::Value(Value::Null));
            check::size(&argument, self.kind, &mut self.faults);
            return Ok(Term::Operand(Operand::Size(Box::new(argument))));
        }
        if let Some(value) = self.takes_value()? {
            return Ok(Term::Operand(Operand::Value(value)));
        }
        Ok(Term::Operand(Operand::Path(self.path()?)))
    }

    fn operand_in_parentheses(&mut self) -> Result<Term, Error> {
        if !self.takes("(") {
            return self.term();
        }
        let inner = self.deeper(Self::operand_in_parentheses)?;
        self.expect(")")?;
        Ok(inner)
    }

    /// The rest of a call, behind its opening parenthesis.
    fn arguments(&mut self) -> Result<Vec<Term>, Error> {
        let mut all = vec![self.deeper(Self::operand_in_parentheses)?];
        while self.takes(",") {
            all.push(self.deeper(Self::operand_in_parentheses)?);
        }
        self.expect(")")?;
        Ok(all)
    }

    fn operand(&mut self, term: Term) -> Operand {
        match term {
            Term::Operand(operand) => operand,
            Term::Call(name, _) => {
                if arity(&name).is_none() {
                    self.unknown(&name);
                } else {
                    self.misused(&name);
                }
                Operand::Value(Value::Null)
            }
        }
    }

    fn function(&mut self, name: &str, arguments: Vec<Term>) -> Condition {
        let Some(count) = arity(name) else {
            self.unknown(name);
            return Condition::And(Vec::new());
        };
        let given = arguments.len();
        let mut arguments =
            arguments.into_iter().map(|term| self.operand(term)).collect::<Vec<_>>().into_iter();
        if given != count {
            self.wrong_count(name, given);
            return Condition::And(Vec::new());
        }
        let (Some(first), second) = (arguments.next(), arguments.next()) else {
            return Condition::And(Vec::new());
        };
        match (name, first, second) {
            ("attribute_exists", Operand::Path(path), _) => Condition::Exists(path),
            ("attribute_not_exists", Operand::Path(path), _) => Condition::NotExists(path),
            ("attribute_type", of, Some(kind)) => {
                let (at, faults) = (self.kind, &mut self.faults);
                check::distinct(name, &of, &[&kind], &mut |grave, message| faults.note(grave, at, &message));
                match check::type_name(kind) {
                    Ok(kind) => has_type(of, kind),
                    Err(message) => {
                        self.faults.note_lost(Grave::Function, self.kind, &message);
                        Condition::And(Vec::new())
                    }
                }
            }
            ("begins_with", first, Some(second)) => Condition::BeginsWith(first, second),
            ("contains", first, Some(second)) => Condition::Contains(first, second),
            _ => {
                let message =
                    format!("Operator or function requires a document path; operator or function: {name}");
                self.faults.note_lost(Grave::Function, self.kind, &message);
                Condition::And(Vec::new())
            }
        }
    }

    pub(super) fn unknown(&mut self, name: &str) {
        let message = format!("Invalid function name; function: {name}");
        self.faults.note_lost(Grave::UnknownFunction, self.kind, &message);
    }

    fn misused(&mut self, name: &str) {
        let message =
            format!("The function is not allowed to be used this way in an expression; function: {name}");
        self.faults.note_lost(Grave::Misused, self.kind, &message);
    }

    pub(super) fn wrong_count(&mut self, name: &str, given: usize) {
        let message = format!(
            "Incorrect number of operands for operator or function; operator or function: {name}, number of operands: {given}"
        );
        self.faults.note_lost(Grave::Operand, self.kind, &message);
    }
}

/// That an operand has a type. Of what is no path that is a comparison: a literal's type is known,
/// and a size is a number.
fn has_type(operand: Operand, kind: String) -> Condition {
    // With a comparator that does not hold for what is missing.
    let with_itself = |comparator| Condition::Compare(operand.clone(), comparator, operand.clone());
    match &operand {
        Operand::Path(path) => Condition::Type(path.clone(), kind),
        Operand::Size(_) if kind == "N" => with_itself(Comparator::Eq),
        Operand::Size(_) => with_itself(Comparator::Lt),
        Operand::Value(value) if value.type_name() == kind => with_itself(Comparator::Eq),
        Operand::Value(_) => with_itself(Comparator::Ne),
    }
}

fn arity(function: &str) -> Option<usize> {
    match function {
        "attribute_exists" | "attribute_not_exists" | "size" => Some(1),
        "attribute_type" | "begins_with" | "contains" => Some(2),
        _ => None,
    }
}
