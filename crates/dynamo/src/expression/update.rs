//! Applying an update to an item.
//!
//! Every value is computed from the item as it was; then SET, ADD and DELETE write in path order,
//! and what is removed goes last, highest index first, so that an index always means the element it
//! named before.

use bytes::Bytes;
use std::collections::BTreeSet;

use super::ast::{Assigned, Path, Update};
use super::cost::{Extent, Measured};
use super::path;
use crate::size::MAX_ITEM;
use crate::value::numbers;
use crate::{Error, Item, Number, Value};

impl Update {
    /// The item after the update; a missing item is one of its key attributes alone.
    ///
    /// # Errors
    /// `ValidationException` in DynamoDB's words, for attributes that are missing or of the wrong
    /// type. Key attributes and the item's size are the caller's to check.
    pub fn apply(&self, item: &Item) -> Result<Item, Error> {
        let mut writes: Vec<(&Path, Option<Value>)> = Vec::new();
        for (path, value) in &self.add {
            writes.push((path, Some(added(path::get(item, path), value)?)));
        }
        let mut leads_nowhere = false;
        for (path, value) in &self.delete {
            match path::get(item, path) {
                Some(existing) => writes.push((path, removed(existing, value)?)),
                None => leads_nowhere |= !path::can_hold(item, path),
            }
        }
        for (path, value) in &self.set {
            writes.push((path, Some(value.of(item)?)));
        }
        if leads_nowhere {
            return Err(invalid_path());
        }
        writes.sort_by_key(|(path, _)| *path);

        let mut after = item.clone();
        let mut removals = Vec::new();
        for (path, value) in writes {
            match value {
                Some(value) => path::set(&mut after, path, value).map_err(|_| invalid_path())?,
                None => removals.push(path),
            }
        }
        for path in &self.remove {
            if path::get(item, path).is_some() {
                removals.push(path);
            } else if !path::can_hold(item, path) {
                return Err(invalid_path());
            }
        }
        removals.sort_by(|a, b| b.cmp(a));
        for path in removals {
            path::remove(&mut after, path).map_err(|_| invalid_path())?;
        }
        Ok(after)
    }
}

impl Update {
    /// An update that does the same to this item, but only writes and removes: values are worked
    /// out, sets are joined. For an evaluator that is slow at both. A number that is added to and a
    /// set that is not there stay as they are.
    ///
    /// # Errors
    /// As [`Update::apply`], and `ValidationException` when what it sets alone is larger than an
    /// item may be; it is refused before it is made.
    pub fn resolved(&self, item: &Item) -> Result<Update, Error> {
        let measured = Measured::new(item);
        let extent = Extent::Of(&measured);
        let mut size = 0_usize;
        for (_, value) in &self.set {
            size = size.saturating_add(value.weigh(extent).size);
            if size > MAX_ITEM {
                return Err(Error::validation("Item size to update has exceeded the maximum allowed size"));
            }
        }
        let mut resolved = Update { remove: self.remove.clone(), ..Update::default() };
        for (path, value) in &self.set {
            resolved.set.push((path.clone(), Assigned::Value(value.of(item)?)));
        }
        for (path, value) in &self.add {
            match (path::get(item, path), value) {
                (Some(existing), Value::Ss(_) | Value::Ns(_) | Value::Bs(_)) => {
                    resolved.set.push((path.clone(), Assigned::Value(added(Some(existing), value)?)));
                }
                _ => resolved.add.push((path.clone(), value.clone())),
            }
        }
        for (path, value) in &self.delete {
            match path::get(item, path).map(|existing| removed(existing, value)).transpose()? {
                Some(Some(left)) => resolved.set.push((path.clone(), Assigned::Value(left))),
                Some(None) => resolved.remove.push(path.clone()),
                None => resolved.delete.push((path.clone(), value.clone())),
            }
        }
        Ok(resolved)
    }
}

impl Assigned {
    fn of(&self, item: &Item) -> Result<Value, Error> {
        match self {
            Assigned::Value(value) => Ok(value.clone()),
            Assigned::Path(path) => path::get(item, path).cloned().ok_or_else(|| {
                Error::validation(
                    "The provided expression refers to an attribute that does not exist in the item",
                )
            }),
            Assigned::IfNotExists(path, default) => match path::get(item, path) {
                Some(value) => Ok(value.clone()),
                None => default.of(item),
            },
            Assigned::ListAppend(first, second) => match (first.of(item)?, second.of(item)?) {
                (Value::L(mut first), Value::L(second)) => {
                    first.extend(second);
                    Ok(Value::L(first))
                }
                _ => Err(wrong_type()),
            },
            Assigned::Plus(left, right) => calculated(left.of(item)?, right.of(item)?, Number::plus),
            Assigned::Minus(left, right) => calculated(left.of(item)?, right.of(item)?, Number::minus),
        }
    }
}

fn calculated(
    left: Value,
    right: Value,
    how: fn(Number, Number) -> Result<Number, Error>,
) -> Result<Value, Error> {
    match (left.number(), right.number()) {
        (Some(left), Some(right)) => Ok(Value::N(how(left, right)?.to_string())),
        _ => Err(wrong_type()),
    }
}

fn added(existing: Option<&Value>, value: &Value) -> Result<Value, Error> {
    match (existing, value) {
        (None, value) => Ok(value.clone()),
        (Some(existing @ Value::N(_)), Value::N(_)) => {
            calculated(existing.clone(), value.clone(), Number::plus)
        }
        (Some(Value::Ss(a)), Value::Ss(b)) => Ok(Value::Ss(a | b)),
        (Some(Value::Bs(a)), Value::Bs(b)) => {
            let all: BTreeSet<Bytes> = a.union(b).cloned().collect();
            Ok(Value::Bs(all))
        }
        (Some(Value::Ns(a)), Value::Ns(b)) => {
            let known = numbers(a);
            let new = b.iter().filter(|text| !known.contains(&Number::parse(text).ok()));
            Ok(Value::Ns(a.iter().chain(new).cloned().collect()))
        }
        _ => Err(wrong_type()),
    }
}

/// The set without those members; `None` when nothing is left, for then the attribute goes.
fn removed(existing: &Value, value: &Value) -> Result<Option<Value>, Error> {
    match (existing, value) {
        (Value::Ss(a), Value::Ss(b)) => {
            let left = a - b;
            Ok((!left.is_empty()).then_some(Value::Ss(left)))
        }
        (Value::Bs(a), Value::Bs(b)) => {
            let left: BTreeSet<Bytes> = a.difference(b).cloned().collect();
            Ok((!left.is_empty()).then_some(Value::Bs(left)))
        }
        (Value::Ns(a), Value::Ns(b)) => {
            let gone = numbers(b);
            let left: Vec<String> =
                a.iter().filter(|text| !gone.contains(&Number::parse(text).ok())).cloned().collect();
            Ok((!left.is_empty()).then_some(Value::Ns(left)))
        }
        _ => Err(wrong_type()),
    }
}

fn invalid_path() -> Error {
    Error::validation("The document path provided in the update expression is invalid for update")
}

fn wrong_type() -> Error {
    Error::validation("An operand in the update expression has an incorrect data type")
}
