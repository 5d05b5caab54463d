//! What expressions mean: placeholders are resolved, so equal meanings look the same however they
//! were written.
//!
//! Not here: the text (`parse`), a new text (`render`).

use std::collections::BTreeSet;

use crate::Value;

/// One step of a document path behind its root.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// `[n]`, counted from 0.
    Index(usize),
    /// `.name`
    Name(String),
}

/// A document path: `a.b[0]`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Path {
    /// The top-level attribute.
    pub root: String,
    /// What follows.
    pub rest: Vec<Step>,
}

impl Path {
    /// A top-level attribute.
    pub fn root(name: impl Into<String>) -> Self {
        Path { root: name.into(), rest: Vec::new() }
    }

    /// Whether this is the top-level attribute of that name, whole.
    pub fn is_root(&self, name: &str) -> bool {
        self.rest.is_empty() && self.root == name
    }
}

/// As error messages show a path: `[a, b, [0]]`.
impl std::fmt::Display for Path {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "[{}", self.root)?;
        for step in &self.rest {
            match step {
                Step::Name(name) => write!(f, ", {name}")?,
                Step::Index(index) => write!(f, ", [{index}]")?,
            }
        }
        f.write_str("]")
    }
}

/// What a condition compares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operand {
    /// An attribute.
    Path(Path),
    /// A literal.
    Value(Value),
    /// `size(operand)`
    Size(Box<Operand>),
}

/// A comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Comparator {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

impl Comparator {
    /// As it is written.
    pub const fn symbol(self) -> &'static str {
        match self {
            Comparator::Eq => "=",
            Comparator::Ne => "<>",
            Comparator::Lt => "<",
            Comparator::Le => "<=",
            Comparator::Gt => ">",
            Comparator::Ge => ">=",
        }
    }

    /// The comparison with its sides exchanged.
    pub const fn flipped(self) -> Comparator {
        match self {
            Comparator::Lt => Comparator::Gt,
            Comparator::Le => Comparator::Ge,
            Comparator::Gt => Comparator::Lt,
            Comparator::Ge => Comparator::Le,
            same => same,
        }
    }
}

/// A condition or filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// `a = :v`
    Compare(Operand, Comparator, Operand),
    /// `a BETWEEN low AND high`
    Between(Operand, Operand, Operand),
    /// `a IN (…)`
    In(Operand, Vec<Operand>),
    /// `attribute_exists(path)`
    Exists(Path),
    /// `attribute_not_exists(path)`
    NotExists(Path),
    /// `attribute_type(path, :type)`; the type's name.
    Type(Path, String),
    /// `begins_with(text, prefix)`
    BeginsWith(Operand, Operand),
    /// `contains(whole, part)`
    Contains(Operand, Operand),
    /// `a AND b AND …`; true when empty.
    And(Vec<Condition>),
    /// `a OR b OR …`; false when empty.
    Or(Vec<Condition>),
    /// `NOT a`
    Not(Box<Condition>),
}

impl Condition {
    /// Every document path in it.
    pub fn paths(&self) -> Vec<&Path> {
        let mut paths = Vec::new();
        self.collect(&mut paths);
        paths
    }

    /// The top-level attributes it reads: all that an evaluation needs of an item.
    pub fn roots(&self) -> BTreeSet<&str> {
        self.paths().into_iter().map(|path| path.root.as_str()).collect()
    }

    /// Whether it mentions that top-level attribute.
    pub fn mentions(&self, attribute: &str) -> bool {
        self.paths().iter().any(|path| path.root == attribute)
    }

    /// The operands of a predicate, in order; empty for the functions that take a path alone, and
    /// for AND, OR, NOT.
    pub(crate) fn operands_mut(&mut self) -> Vec<&mut Operand> {
        match self {
            Condition::Compare(a, _, b) | Condition::BeginsWith(a, b) | Condition::Contains(a, b) => {
                vec![a, b]
            }
            Condition::Between(a, b, c) => vec![a, b, c],
            Condition::In(a, list) => std::iter::once(a).chain(list).collect(),
            _ => Vec::new(),
        }
    }

    fn collect<'a>(&'a self, paths: &mut Vec<&'a Path>) {
        match self {
            Condition::Compare(a, _, b) | Condition::BeginsWith(a, b) | Condition::Contains(a, b) => {
                paths.extend([a, b].into_iter().filter_map(Operand::path));
            }
            Condition::Between(a, b, c) => paths.extend([a, b, c].into_iter().filter_map(Operand::path)),
            Condition::In(a, list) => paths.extend(std::iter::once(a).chain(list).filter_map(Operand::path)),
            Condition::Exists(path) | Condition::NotExists(path) | Condition::Type(path, _) => {
                paths.push(path)
            }
            Condition::And(all) | Condition::Or(all) => all.iter().for_each(|one| one.collect(paths)),
            Condition::Not(inner) => inner.collect(paths),
        }
    }
}

impl Operand {
    /// The path it reads, if it reads one.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Operand::Path(path) => Some(path),
            Operand::Value(_) => None,
            Operand::Size(inner) => inner.path(),
        }
    }
}

/// What `SET` assigns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Assigned {
    /// Another attribute.
    Path(Path),
    /// A literal.
    Value(Value),
    /// `if_not_exists(path, default)`
    IfNotExists(Path, Box<Assigned>),
    /// `list_append(a, b)`
    ListAppend(Box<Assigned>, Box<Assigned>),
    /// `a + b`
    Plus(Box<Assigned>, Box<Assigned>),
    /// `a - b`
    Minus(Box<Assigned>, Box<Assigned>),
}

impl Assigned {
    pub(crate) fn collect<'a>(&'a self, paths: &mut Vec<&'a Path>) {
        match self {
            Assigned::Path(path) => paths.push(path),
            Assigned::Value(_) => {}
            Assigned::IfNotExists(path, default) => {
                paths.push(path);
                default.collect(paths);
            }
            Assigned::ListAppend(a, b) | Assigned::Plus(a, b) | Assigned::Minus(a, b) => {
                a.collect(paths);
                b.collect(paths);
            }
        }
    }
}

/// An update, clause by clause.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Update {
    /// `SET path = …`
    pub set: Vec<(Path, Assigned)>,
    /// `REMOVE path`
    pub remove: Vec<Path>,
    /// `ADD path :v`
    pub add: Vec<(Path, Value)>,
    /// `DELETE path :v`
    pub delete: Vec<(Path, Value)>,
}

impl Update {
    /// The paths it writes.
    pub fn targets(&self) -> impl Iterator<Item = &Path> {
        let set = self.set.iter().map(|(path, _)| path);
        let add = self.add.iter().map(|(path, _)| path);
        set.chain(&self.remove).chain(add).chain(self.delete.iter().map(|(path, _)| path))
    }

    /// Whether it writes that top-level attribute, or something in it.
    pub fn writes(&self, attribute: &str) -> bool {
        self.targets().any(|path| path.root == attribute)
    }

    /// Whether it mentions that top-level attribute at all.
    pub fn mentions(&self, attribute: &str) -> bool {
        let mut read = Vec::new();
        self.set.iter().for_each(|(_, value)| value.collect(&mut read));
        self.writes(attribute) || read.iter().any(|path| path.root == attribute)
    }
}

/// A projection: the paths to give back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Projection {
    /// The paths, as listed; none overlaps another.
    pub paths: Vec<Path>,
}

impl Projection {
    /// Makes sure that a top-level attribute is given back whole; false if it was before.
    ///
    /// Paths into that attribute go, since DynamoDB refuses overlapping ones. For key attributes
    /// nothing is lost by it: they are no documents.
    pub fn add_root(&mut self, name: &str) -> bool {
        if self.covers(name) {
            return false;
        }
        self.paths.retain(|path| path.root != name);
        self.paths.push(Path::root(name));
        true
    }

    /// Whether that top-level attribute is given back whole.
    pub fn covers(&self, name: &str) -> bool {
        self.paths.iter().any(|path| path.is_root(name))
    }
}
