//! Whether a condition holds for an item.
//!
//! What is missing compares with nothing; only `<>` holds then. Types never convert.

use std::borrow::Cow;

use super::ast::{Comparator, Condition, Operand};
use super::path;
use crate::value::numbers;
use crate::{Item, Number, Value};

impl Condition {
    /// Whether it holds for the item; a missing item is an empty one.
    pub fn holds(&self, item: &Item) -> bool {
        match self {
            Condition::Compare(left, comparator, right) => match (left.of(item), right.of(item)) {
                (Some(left), Some(right)) => compare(&left, *comparator, &right),
                _ => *comparator == Comparator::Ne,
            },
            Condition::Between(operand, low, high) => match (operand.of(item), low.of(item), high.of(item)) {
                (Some(value), Some(low), Some(high)) => {
                    compare(&value, Comparator::Ge, &low) && compare(&value, Comparator::Le, &high)
                }
                _ => false,
            },
            Condition::In(operand, list) => operand.of(item).is_some_and(|value| {
                list.iter().any(|one| one.of(item).is_some_and(|one| compare(&value, Comparator::Eq, &one)))
            }),
            Condition::Exists(path) => path::get(item, path).is_some(),
            Condition::NotExists(path) => path::get(item, path).is_none(),
            Condition::Type(path, name) => {
                path::get(item, path).is_some_and(|value| value.type_name() == name)
            }
            Condition::BeginsWith(text, prefix) => match (text.of(item), prefix.of(item)) {
                (Some(text), Some(prefix)) => begins_with(&text, &prefix),
                _ => false,
            },
            Condition::Contains(whole, part) => match (whole.of(item), part.of(item)) {
                (Some(whole), Some(part)) => contains(&whole, &part),
                _ => false,
            },
            Condition::And(all) => all.iter().all(|one| one.holds(item)),
            Condition::Or(all) => all.iter().any(|one| one.holds(item)),
            Condition::Not(inner) => !inner.holds(item),
        }
    }
}

impl Operand {
    fn of<'a>(&'a self, item: &'a Item) -> Option<Cow<'a, Value>> {
        match self {
            Operand::Path(path) => path::get(item, path).map(Cow::Borrowed),
            Operand::Value(value) => Some(Cow::Borrowed(value)),
            Operand::Size(inner) => size(&*inner.of(item)?).map(Cow::Owned),
        }
    }
}

/// What `size` gives: UTF-16 units of a string, bytes of a binary, elements of the rest; nothing
/// for other types.
pub(super) fn size(value: &Value) -> Option<Value> {
    let size = match value {
        Value::S(text) => text.encode_utf16().count(),
        Value::B(bytes) => bytes.len(),
        Value::Ss(set) => set.len(),
        Value::Ns(set) => set.len(),
        Value::Bs(set) => set.len(),
        Value::L(list) => list.len(),
        Value::M(map) => map.len(),
        Value::N(_) | Value::Bool(_) | Value::Null => return None,
    };
    Some(Value::N(size.to_string()))
}

/// One comparison of two values that are there.
pub(super) fn compare(left: &Value, comparator: Comparator, right: &Value) -> bool {
    let order = match (left, right) {
        (Value::S(a), Value::S(b)) => a.as_bytes().cmp(b.as_bytes()),
        (Value::B(a), Value::B(b)) => a.cmp(b),
        (Value::N(a), Value::N(b)) => match (Number::parse(a), Number::parse(b)) {
            (Ok(a), Ok(b)) => a.cmp(&b),
            _ => return false,
        },
        _ => {
            return match comparator {
                Comparator::Eq => left.same(right),
                Comparator::Ne => !left.same(right),
                _ => false,
            };
        }
    };
    match comparator {
        Comparator::Eq => order.is_eq(),
        Comparator::Ne => order.is_ne(),
        Comparator::Lt => order.is_lt(),
        Comparator::Le => order.is_le(),
        Comparator::Gt => order.is_gt(),
        Comparator::Ge => order.is_ge(),
    }
}

fn begins_with(text: &Value, prefix: &Value) -> bool {
    match (text, prefix) {
        (Value::S(text), Value::S(prefix)) => text.starts_with(prefix.as_str()),
        (Value::B(bytes), Value::B(prefix)) => bytes.starts_with(prefix),
        _ => false,
    }
}

fn contains(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::S(text), Value::S(part)) => text.contains(part.as_str()),
        (Value::B(bytes), Value::B(part)) => memchr::memmem::find(bytes, part).is_some(),
        (Value::Ss(set), Value::S(member)) => set.contains(member),
        (Value::Ns(set), Value::N(member)) => numbers(set).contains(&Number::parse(member).ok()),
        (Value::Bs(set), Value::B(member)) => set.contains(member),
        (Value::L(list), value) => list.iter().any(|element| element.same(value)),
        _ => false,
    }
}
