//! The sequential specification of one item: the effect and the answer of each call.

use std::fmt;

/// What an item holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Value {
    /// A number. Tests write each number once, so that a read tells which write it saw.
    pub number: i64,
    /// An attribute by which an index finds the item; 0 where it has none.
    pub label: u8,
}

/// An item, or none.
pub type State = Option<Value>;

/// What is asked of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Replaces the item.
    Put(Value),
    /// Puts the item if there is none (`attribute_not_exists`).
    Create(Value),
    /// Replaces the item if there is one (`attribute_exists`).
    Update(Value),
    /// Removes the item.
    Delete,
    /// Adds to the number, which is 0 where there is no item, and keeps the label. Its answer tells
    /// the new number.
    Add(i64),
    /// Reads the item: a GetItem, or its row in a Query or Scan of the table.
    Get,
    /// Reads the item if it has that label: its row in a Query of an index.
    Find(u8),
    /// Removes the item if it holds that: the store does so with what has expired, and tells
    /// nobody.
    Expire(Value),
}

/// What was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Answer {
    /// The write was done.
    Done,
    /// The condition did not hold; nothing was written.
    Refused,
    /// The number after an [`Operation::Add`].
    Number(i64),
    /// What a read saw.
    Saw(State),
}

impl Operation {
    /// Whether it changes nothing, whatever the item is.
    pub fn only_reads(self) -> bool {
        matches!(self, Operation::Get | Operation::Find(_))
    }

    /// Whether neither what the item holds afterwards nor the answer depends on what it held
    /// before.
    pub fn overwrites(self) -> bool {
        matches!(self, Operation::Put(_) | Operation::Delete)
    }

    /// Carries the operation out on an item: what it holds afterwards, and the answer.
    pub fn apply(self, state: State) -> (State, Answer) {
        match self {
            Operation::Put(value) => (Some(value), Answer::Done),
            Operation::Create(_) if state.is_some() => (state, Answer::Refused),
            Operation::Create(value) => (Some(value), Answer::Done),
            Operation::Update(_) if state.is_none() => (state, Answer::Refused),
            Operation::Update(value) => (Some(value), Answer::Done),
            Operation::Delete => (None, Answer::Done),
            Operation::Add(amount) => {
                let old = state.unwrap_or(Value { number: 0, label: 0 });
                let number = old.number.saturating_add(amount);
                (Some(Value { number, ..old }), Answer::Number(number))
            }
            Operation::Get => (state, Answer::Saw(state)),
            Operation::Find(label) => (state, Answer::Saw(state.filter(|value| value.label == label))),
            Operation::Expire(value) => (state.filter(|held| *held != value), Answer::Done),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.label {
            0 => write!(f, "{}", self.number),
            label => write!(f, "{} (label {label})", self.number),
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Operation::Put(value) => write!(f, "put {value}"),
            Operation::Create(value) => write!(f, "create {value}"),
            Operation::Update(value) => write!(f, "update to {value}"),
            Operation::Delete => f.write_str("delete"),
            Operation::Add(amount) => write!(f, "add {amount}"),
            Operation::Get => f.write_str("get"),
            Operation::Find(label) => write!(f, "find by label {label}"),
            Operation::Expire(value) => write!(f, "expiry of {value}"),
        }
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Answer::Done => f.write_str("done"),
            Answer::Refused => f.write_str("refused"),
            Answer::Number(number) => write!(f, "now {number}"),
            Answer::Saw(Some(value)) => write!(f, "saw {value}"),
            Answer::Saw(None) => f.write_str("saw nothing"),
        }
    }
}
