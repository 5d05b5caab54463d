//! What a statement says.
//!
//! Not here: the text (`lexer`), how it becomes this (`parse`, `condition`, `term`).

use std::ops::Range;

use crate::Value;
use crate::expression::{Comparator, Path};

/// Bytes of the statement's text.
pub type Span = Range<usize>;

/// A statement.
#[derive(Clone, Debug, PartialEq)]
pub struct Statement {
    /// The table.
    pub table: Named,
    /// The index behind the table's name.
    pub index: Option<Named>,
    /// What is done.
    pub action: Action,
    /// `WHERE`.
    pub condition: Option<Condition>,
    /// `RETURNING`.
    pub returned: Returned,
    /// Whether that is the item as it was (`OLD`), not as it becomes.
    pub shows_former: bool,
    /// How many `?` there are. They take the request's parameters in the order of the text.
    pub parameters: usize,
}

/// What `RETURNING` shows of the item.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Returned {
    /// Nothing: there is no such clause.
    #[default]
    Nothing,
    /// `MODIFIED`: what changes.
    Changes,
    /// `ALL`: the whole item.
    Item,
}

/// A name of a table or an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// The name.
    pub name: String,
    /// Where it stands, quotes included.
    pub span: Span,
}

/// What a statement does.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Reads.
    Select {
        /// The paths shown; empty is `*`.
        shown: Vec<Path>,
        /// `ORDER BY`.
        order: Vec<Order>,
    },
    /// `EXISTS(SELECT …)`: a transaction's condition.
    Exists,
    /// Puts a new item.
    Insert {
        /// Its attributes as written; a name may stand twice.
        item: Vec<(String, Term)>,
    },
    /// Changes an item.
    Update {
        /// The paths assigned to or removed, and what is put there.
        written: Vec<(Path, Put)>,
        /// The paths that stand in assigned values.
        read: Vec<Path>,
    },
    /// Deletes an item.
    Delete,
}

/// What an update puts under a path.
#[derive(Clone, Debug, PartialEq)]
pub enum Put {
    /// `SET a = 'x'`: a value.
    Value(Term),
    /// `SET a = b + 1`: what paths, calls and sums make.
    Made,
    /// `REMOVE a`: nothing.
    Nothing,
}

/// One term of `ORDER BY`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// What is ordered by.
    pub path: Path,
    /// `DESC`.
    pub descending: bool,
}

/// A `WHERE` clause, or a part of one.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Condition {
    And(Vec<Condition>),
    Or(Vec<Condition>),
    Not(Box<Condition>),
    Test(Test),
}

/// A single test.
#[derive(Clone, Debug, PartialEq)]
pub struct Test {
    /// What is tested.
    pub kind: TestKind,
    /// Where it stands.
    pub span: Span,
}

/// What a test tests.
#[derive(Clone, Debug, PartialEq)]
pub enum TestKind {
    /// `a = b` and its like.
    Compare(Operand, Comparator, Operand),
    /// `a BETWEEN b AND c`, both ends included.
    Between(Operand, Operand, Operand),
    /// `a IN [b, c]`.
    In(Operand, Vec<Operand>),
    /// `attribute_exists(a)`, `a IS NOT MISSING`.
    Exists(Place),
    /// `attribute_not_exists(a)`, `a IS MISSING`.
    Missing(Place),
    /// `a IS STRING`: the value's type, by DynamoDB's name.
    Is(Place, &'static str),
    /// `attribute_type(a, 'S')`.
    AttributeType(Operand, Operand),
    /// `begins_with(a, b)`.
    BeginsWith(Operand, Operand),
    /// `contains(a, b)`.
    Contains(Operand, Operand),
}

/// A path and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The path.
    pub path: Path,
    /// Where it stands.
    pub span: Span,
}

/// What a test compares.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Operand {
    Path(Place),
    Term(Term),
    Size(Box<Operand>),
}

/// A value as written.
#[derive(Clone, Debug, PartialEq)]
pub struct Term {
    /// The value.
    pub kind: TermKind,
    /// Where it stands.
    pub span: Span,
}

/// The kinds of values in a statement.
#[derive(Clone, Debug, PartialEq)]
pub enum TermKind {
    /// A string, number, boolean, null or set.
    Value(Value),
    /// `?`: the parameter of that number, from 0.
    Parameter(usize),
    /// `[…]`.
    List(Vec<Term>),
    /// `{…}`.
    Map(Vec<(String, Term)>),
}

impl Term {
    /// The value, with the request's parameters put in; `None` where one is missing.
    pub fn value(&self, parameters: &[Value]) -> Option<Value> {
        match &self.kind {
            TermKind::Value(value) => Some(value.clone()),
            TermKind::Parameter(number) => parameters.get(*number).cloned(),
            TermKind::List(terms) => {
                terms.iter().map(|term| term.value(parameters)).collect::<Option<_>>().map(Value::L)
            }
            TermKind::Map(members) => members
                .iter()
                .map(|(name, term)| Some((name.clone(), term.value(parameters)?)))
                .collect::<Option<_>>()
                .map(Value::M),
        }
    }

    /// The numbers of the parameters in it.
    pub fn parameters(&self) -> Vec<usize> {
        match &self.kind {
            TermKind::Value(_) => Vec::new(),
            TermKind::Parameter(number) => vec![*number],
            TermKind::List(terms) => terms.iter().flat_map(Term::parameters).collect(),
            TermKind::Map(members) => members.iter().flat_map(|(_, term)| term.parameters()).collect(),
        }
    }
}

impl Operand {
    /// The path in it, if it is one or the size of one.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Operand::Path(place) => Some(&place.path),
            Operand::Term(_) => None,
            Operand::Size(inner) => inner.path(),
        }
    }

    fn parameters(&self) -> Vec<usize> {
        match self {
            Operand::Path(_) => Vec::new(),
            Operand::Term(term) => term.parameters(),
            Operand::Size(inner) => inner.parameters(),
        }
    }
}

impl Test {
    /// The paths that it reads.
    pub fn paths(&self) -> Vec<&Path> {
        match &self.kind {
            TestKind::Exists(place) | TestKind::Missing(place) | TestKind::Is(place, _) => vec![&place.path],
            _ => self.operands().into_iter().filter_map(Operand::path).collect(),
        }
    }

    /// The numbers of the parameters in it.
    pub fn parameters(&self) -> Vec<usize> {
        self.operands().into_iter().flat_map(Operand::parameters).collect()
    }

    fn operands(&self) -> Vec<&Operand> {
        match &self.kind {
            TestKind::Compare(a, _, b)
            | TestKind::AttributeType(a, b)
            | TestKind::BeginsWith(a, b)
            | TestKind::Contains(a, b) => vec![a, b],
            TestKind::Between(a, b, c) => vec![a, b, c],
            TestKind::In(a, list) => std::iter::once(a).chain(list).collect(),
            TestKind::Exists(_) | TestKind::Missing(_) | TestKind::Is(..) => Vec::new(),
        }
    }
}

impl Condition {
    /// The parts that all must hold: those joined by `AND` alone, parentheses aside.
    pub fn conjuncts(&self) -> Vec<&Condition> {
        match self {
            Condition::And(parts) => parts.iter().flat_map(Condition::conjuncts).collect(),
            other => vec![other],
        }
    }

    /// Every test in it.
    pub fn tests(&self) -> Vec<&Test> {
        match self {
            Condition::And(parts) | Condition::Or(parts) => parts.iter().flat_map(Condition::tests).collect(),
            Condition::Not(inner) => inner.tests(),
            Condition::Test(test) => vec![test],
        }
    }
}
