//! What the updates of one call do to one attribute, and which value it has after each of them.

use heatsink_dynamo::expression::{Assigned, Path, Update};
use heatsink_dynamo::size::value_size;
use heatsink_dynamo::{Number, Value};

/// What one update does to an attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// Adds to what is there.
    Add(Number, Start),
    /// Puts a value there, which is as the store gives it back.
    Set(Value),
}

/// What is added to where the attribute is not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Start {
    /// `ADD`: zero.
    Zero,
    /// `SET n = n + :v`: nothing; the update fails.
    Exists,
    /// `SET n = if_not_exists(n, :z) + :v`
    Or(Number),
}

/// An attribute, and the changes of it in order. Where the first one adds, all of them do.
#[derive(Clone, Debug)]
pub(super) struct Attribute {
    pub(super) name: String,
    first: Change,
    /// What is known of it after each change: a value, or how much was added so far.
    after: Vec<After>,
}

/// What is known of an attribute after a change.
#[derive(Clone, Debug)]
pub(super) enum After {
    /// So much was added by then.
    Added(Number),
    /// It has this value.
    Is(Value),
}

impl Attribute {
    pub(super) fn new(name: &str, first: &Change) -> Self {
        let after = match first {
            Change::Add(number, _) => After::Added(*number),
            Change::Set(value) => After::Is(value.clone()),
        };
        Attribute { name: name.to_owned(), first: first.clone(), after: vec![after] }
    }

    /// What is known after one more change, and how many bytes that makes the value shorter; `None`
    /// where it would hide an error of an earlier one, or has one itself.
    pub(super) fn next(&self, change: &Change) -> Option<(After, usize)> {
        match (self.after.last()?, change) {
            (After::Added(sum), Change::Add(number, _)) => Some((After::Added(sum.plus(*number).ok()?), 0)),
            (After::Added(_), Change::Set(_)) => None,
            (After::Is(value), Change::Add(number, _)) => {
                let sum = value.number()?.plus(*number).ok()?;
                Some((After::Is(Value::N(sum.to_string())), 0))
            }
            (After::Is(before), Change::Set(value)) => {
                Some((After::Is(value.clone()), value_size(before).saturating_sub(value_size(value))))
            }
        }
    }

    /// Whether the value that it has now can be told as the store would give it back.
    pub(super) fn is_plain(&self) -> bool {
        match self.after.last() {
            Some(After::Is(value)) => {
                !matches!(value, Value::L(_) | Value::M(_) | Value::Ss(_) | Value::Ns(_) | Value::Bs(_))
            }
            _ => true,
        }
    }

    /// Adds a change. Returns its number.
    pub(super) fn push(&mut self, after: After) -> usize {
        self.after.push(after);
        self.after.len() - 1
    }

    /// The number of the last change.
    pub(super) fn last(&self) -> usize {
        self.after.len() - 1
    }

    /// Adds what all changes together do.
    pub(super) fn write(&self, update: &mut Update) {
        let path = Path::root(&self.name);
        let (sum, start) = match (self.after.last(), &self.first) {
            (Some(After::Is(value)), _) => {
                update.set.push((path, Assigned::Value(value.clone())));
                return;
            }
            (Some(After::Added(sum)), Change::Add(_, start)) => (Value::N(sum.to_string()), start),
            _ => return,
        };
        let own = Assigned::Path(path.clone());
        let base = match start {
            Start::Zero => {
                update.add.push((path, sum));
                return;
            }
            Start::Exists => own,
            Start::Or(default) => {
                let default = Assigned::Value(Value::N(default.to_string()));
                Assigned::IfNotExists(path.clone(), Box::new(default))
            }
        };
        update.set.push((path, Assigned::Plus(Box::new(base), Box::new(Assigned::Value(sum)))));
    }

    /// The value after the change of that number, where the last one left `last`; `None` where that
    /// is no value of DynamoDB, or `last` is none that the changes can leave.
    pub(super) fn value(&self, at: usize, last: &Value) -> Option<Value> {
        match (self.after.get(at)?, self.after.last()?) {
            _ if at == self.last() => Some(last.clone()),
            (After::Is(value), _) => Some(value.clone()),
            (After::Added(then), After::Added(all)) => {
                let before = last.number()?.minus(all.minus(*then).ok()?).ok()?;
                Some(Value::N(before.to_string()))
            }
            (After::Added(_), After::Is(_)) => None,
        }
    }
}
