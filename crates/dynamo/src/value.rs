//! Attribute values: what they are, reading them from JSON and writing them back.
//!
//! Not here: the order and arithmetic of numbers (`number`), the order of keys (`key`), the shape
//! of whole requests (`wire`).

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

use crate::Number;

mod binary;
mod read;
mod write;

pub(crate) use binary::fault as base64_fault;
pub use read::{MAX_NESTING, read_attributes, read_item};
pub use write::write_item;

/// An attribute value. Numbers keep the text that was sent; `number` gives them their order and
/// arithmetic.
///
/// `==` compares what was written; [`Value::same`] compares as DynamoDB does.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are DynamoDB's own")]
pub enum Value {
    S(String),
    N(String),
    B(Bytes),
    Bool(bool),
    Null,
    Ss(BTreeSet<String>),
    Ns(Vec<String>),
    Bs(BTreeSet<Bytes>),
    L(Vec<Value>),
    M(Item),
}

/// An item, or a map within one: attributes by name.
pub type Item = BTreeMap<String, Value>;

impl Value {
    /// The type's name on the wire: `S`, `BOOL`, `NS`.
    pub const fn type_name(&self) -> &'static str {
        match self {
            Value::S(_) => "S",
            Value::N(_) => "N",
            Value::B(_) => "B",
            Value::Bool(_) => "BOOL",
            Value::Null => "NULL",
            Value::Ss(_) => "SS",
            Value::Ns(_) => "NS",
            Value::Bs(_) => "BS",
            Value::L(_) => "L",
            Value::M(_) => "M",
        }
    }

    /// The number, if it is one.
    pub fn number(&self) -> Option<Number> {
        match self {
            Value::N(text) => Number::parse(text).ok(),
            _ => None,
        }
    }

    /// Equality as DynamoDB's `=` has it: numbers by value, sets without order, lists and maps by
    /// their elements.
    pub fn same(&self, other: &Value) -> bool {
        match (self, other) {
            (Value::N(a), Value::N(b)) => a == b || self.number() == other.number(),
            (Value::Ns(a), Value::Ns(b)) => a.len() == b.len() && numbers(a) == numbers(b),
            (Value::L(a), Value::L(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.same(b)),
            (Value::M(a), Value::M(b)) => same_items(a, b),
            _ => self == other,
        }
    }
}

/// [`Value::same`] for all attributes of two items.
pub fn same_items(a: &Item, b: &Item) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|((a_name, a), (b_name, b))| a_name == b_name && a.same(b))
}

/// The members of a number set, by value.
pub(crate) fn numbers(set: &[String]) -> BTreeSet<Option<Number>> {
    set.iter().map(|text| Number::parse(text).ok()).collect()
}

#[cfg(test)]
mod tests;
