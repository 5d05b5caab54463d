//! Expressions about one item that read or write the spread key of an index: the item's primary key
//! is known, and with it the stored form of every value that the attribute may have. So what the
//! client says of logical values is said of stored ones.
//!
//! A stored value is the logical one with something appended. Against a bound `w` that changes the
//! order only of values that `w` begins with, and those are few: they are named one by one. What
//! cannot be said so is refused, by name. While an attribute migrates a value may have two stored
//! forms, and a condition names both.
//!
//! Not here: reads, whose filters are evaluated on decoded items (`filter`, `query`); legacy
//! parameters (`legacy`).

use heatsink_dynamo::expression::{Assigned, Comparator, Condition, Operand, Path, Update};
use heatsink_dynamo::{Error, KeyType, Value};
use heatsink_layout::{IndexKey, PrimaryKey, Table};

use crate::key::{Located, literal};

pub(crate) mod legacy;

/// The most operands of one `IN`.
const IN: usize = heatsink_dynamo::expression::MAX_IN_OPERANDS;

/// The spread attributes of one item.
pub(crate) struct Spread<'a> {
    pub(crate) table: &'a Table,
    pub(crate) primary: PrimaryKey<'a>,
}

/// The refusal of what cannot be said of stored values.
pub(crate) fn cannot(what: &str, attribute: &str) -> Error {
    Error::gateway_rejection(format!(
        "{what} is not supported on a sharded table: the stored value of {attribute} has a shard suffix. Nothing was written"
    ))
}

/// The bytes of a value, if it is of the type of an index's key.
pub(crate) fn bytes_of<'v>(key: &IndexKey, value: &'v Value) -> Option<&'v [u8]> {
    match (key.attribute().key_type, value) {
        (KeyType::S, Value::S(text)) => Some(text.as_bytes()),
        (KeyType::B, Value::B(bytes)) => Some(bytes),
        _ => None,
    }
}

impl<'a> Spread<'a> {
    /// The spread attributes of an item; `None` in tables that have none.
    pub(crate) fn of(table: &'a Table, located: &'a Located<'_>) -> Option<Self> {
        (!table.index_keys().is_empty()).then(|| located.primary())?.map(|primary| Spread { table, primary })
    }
}

impl Spread<'_> {
    /// A condition on stored values that holds exactly where `condition` holds for logical ones.
    ///
    /// # Errors
    /// `ValidationException`, by name, for what cannot be said of stored values.
    pub(crate) fn condition(&self, condition: &Condition) -> Result<Condition, Error> {
        let all = |parts: &[Condition]| {
            parts.iter().map(|one| self.condition(one)).collect::<Result<Vec<_>, Error>>()
        };
        Ok(match condition {
            Condition::And(parts) => Condition::And(all(parts)?),
            Condition::Or(parts) => Condition::Or(all(parts)?),
            Condition::Not(inner) => Condition::Not(Box::new(self.condition(inner)?)),
            predicate => {
                let mut paths = operands(predicate).into_iter().filter_map(Operand::path);
                match paths.find_map(|path| self.key(path)) {
                    Some(key) => self.predicate(key, predicate)?,
                    None => predicate.clone(),
                }
            }
        })
    }

    fn key(&self, path: &Path) -> Option<&IndexKey> {
        self.table.index_key(&path.root).filter(|_| path.rest.is_empty())
    }

    /// Refuses a value that is the stored form of another one: a test of it would hold for items
    /// with that one.
    pub(crate) fn refuse_shard(&self, key: &IndexKey, value: &Value) -> Result<(), Error> {
        let refused = bytes_of(key, value).map_or(Ok(()), |bytes| key.refuse_shard(bytes));
        refused.map_err(|error| Error::validation(error.to_string()))
    }

    /// A test that reads `key`.
    fn predicate(&self, key: &IndexKey, predicate: &Condition) -> Result<Condition, Error> {
        let name = &key.attribute().name;
        for operand in operands(predicate) {
            if let Operand::Value(value) = operand {
                self.refuse_shard(key, value)?;
            }
        }
        let is_key = |operand: &Operand| matches!(operand, Operand::Path(path) if path.is_root(name));
        let refused = |what: &str| Err(cannot(&format!("a condition with {what} of {name}"), name));
        match predicate {
            Condition::Compare(left, comparator, Operand::Value(value)) if is_key(left) => {
                Ok(self.compare(key, *comparator, value))
            }
            Condition::Compare(Operand::Value(value), comparator, right) if is_key(right) => {
                Ok(self.compare(key, comparator.flipped(), value))
            }
            Condition::Between(operand, Operand::Value(low), Operand::Value(high)) if is_key(operand) => {
                Ok(Condition::And(vec![
                    self.compare(key, Comparator::Ge, low),
                    self.compare(key, Comparator::Le, high),
                ]))
            }
            Condition::In(operand, list) if is_key(operand) => {
                let stored = list.iter().map(|one| match one {
                    Operand::Value(value) => Some(self.held(key, value)),
                    _ => None,
                });
                let Some(stored) = stored.collect::<Option<Vec<_>>>() else {
                    return refused("a comparison with another attribute");
                };
                let stored = stored.concat();
                if stored.len() > list.len() && stored.len() > IN {
                    return Ok(Condition::Or(tests(name, stored)));
                }
                Ok(Condition::In(operand.clone(), stored.into_iter().map(Operand::Value).collect()))
            }
            Condition::BeginsWith(operand, Operand::Value(prefix)) if is_key(operand) => {
                let Some(bytes) = bytes_of(key, prefix) else { return Ok(predicate.clone()) };
                let shorter = self.prefixes(key, bytes, |stored| stored.starts_with(bytes));
                Ok(and_none_of(predicate.clone(), name, shorter))
            }
            Condition::Contains(operand, Operand::Value(part)) if is_key(operand) => {
                // The end of what is looked for may lie in the suffix.
                let in_suffix = |byte: &u8| matches!(byte, b'#' | b'~' | b'0'..=b'9');
                match bytes_of(key, part).and_then(<[u8]>::last) {
                    Some(last) if in_suffix(last) => refused("contains, for text that ends as a suffix may,"),
                    _ => Ok(predicate.clone()),
                }
            }
            _ if operands(predicate).into_iter().any(|one| matches!(one, Operand::Size(_))) => {
                refused("the size")
            }
            _ => refused("a comparison with another attribute"),
        }
    }

    /// `attribute comparator value`, of stored values.
    fn compare(&self, key: &IndexKey, comparator: Comparator, value: &Value) -> Condition {
        let name = &key.attribute().name;
        let with = |value: &Value| {
            Condition::Compare(Operand::Path(Path::root(name)), comparator, Operand::Value(value.clone()))
        };
        // A stored value of another type than the key's is stored as it was sent.
        let Some(bound) = bytes_of(key, value) else { return with(value) };
        let held = self.held(key, value);
        let below = || self.prefixes(key, bound, |stored| stored >= bound);
        match (comparator, &held[..]) {
            (Comparator::Eq | Comparator::Ne, [stored]) => with(stored),
            (Comparator::Eq, _) => Condition::Or(tests(name, held)),
            (Comparator::Ne, _) => Condition::And(held.iter().map(with).collect()),
            (Comparator::Lt, _) => or_one_of(with(value), name, below()),
            (Comparator::Le, _) => or_one_of(self.compare(key, Comparator::Lt, value), name, held),
            (Comparator::Gt, _) => and_none_of(with(value), name, below().into_iter().chain(held).collect()),
            (Comparator::Ge, _) => and_none_of(with(value), name, below()),
        }
    }

    /// The stored forms of the values that `bound` begins with and that are shorter, as far as they
    /// are wanted.
    fn prefixes(&self, key: &IndexKey, bound: &[u8], wanted: impl Fn(&[u8]) -> bool) -> Vec<Value> {
        let kind = key.attribute().key_type;
        let text = std::str::from_utf8(bound).ok();
        let ends = (1..bound.len())
            .filter(|end| kind == KeyType::B || text.is_some_and(|text| text.is_char_boundary(*end)));
        let stored = ends.filter_map(|end| Some(self.forms(key, bound.get(..end)?))).flatten();
        stored.filter(|stored| wanted(stored)).map(|stored| literal(kind, &stored)).collect()
    }

    /// What a value is written as; one of another type than the key's is stored as it is.
    pub(crate) fn stored(&self, key: &IndexKey, value: &Value) -> Value {
        self.held(key, value).into_iter().next().unwrap_or_else(|| value.clone())
    }

    /// All that a value may be stored as, what it is written as first.
    pub(crate) fn held(&self, key: &IndexKey, value: &Value) -> Vec<Value> {
        match bytes_of(key, value) {
            Some(bytes) if !bytes.is_empty() => {
                let kind = key.attribute().key_type;
                self.forms(key, bytes).iter().map(|stored| literal(kind, stored)).collect()
            }
            _ => vec![value.clone()],
        }
    }

    fn forms(&self, key: &IndexKey, logical: &[u8]) -> Vec<Vec<u8>> {
        let suffixes = key.suffixes(logical, self.primary);
        suffixes.iter().map(|suffix| [logical, suffix.as_bytes()].concat()).collect()
    }

    /// An update that stores what `update` sets.
    ///
    /// # Errors
    /// `ValidationException` for a value that its suffix makes too long; and, by name, where a
    /// value would be copied to or from a spread attribute.
    pub(crate) fn update(&self, update: &Update) -> Result<Update, Error> {
        let mut set = Vec::with_capacity(update.set.len());
        for (path, assigned) in &update.set {
            set.push((
                path.clone(),
                match self.key(path) {
                    Some(key) => self.assigned(key, assigned)?,
                    None => {
                        self.copies_none(path, assigned)?;
                        assigned.clone()
                    }
                },
            ));
        }
        Ok(Update { set, ..update.clone() })
    }

    /// What is assigned to the attribute of `key`.
    fn assigned(&self, key: &IndexKey, assigned: &Assigned) -> Result<Assigned, Error> {
        let name = &key.attribute().name;
        match assigned {
            Assigned::Value(value) => self.checked(key, value).map(Assigned::Value),
            Assigned::IfNotExists(path, default) if path.is_root(name) => {
                Ok(Assigned::IfNotExists(path.clone(), Box::new(self.assigned(key, default)?)))
            }
            Assigned::Path(path) if path.is_root(name) => Ok(assigned.clone()),
            Assigned::Path(_) | Assigned::IfNotExists(..) => {
                Err(cannot(&format!("SET {name} to the value of another attribute"), name))
            }
            // A list or a number, which no such key is: the store refuses it.
            Assigned::ListAppend(..) | Assigned::Plus(..) | Assigned::Minus(..) => Ok(assigned.clone()),
        }
    }

    /// The stored form of a value that is written.
    pub(crate) fn checked(&self, key: &IndexKey, value: &Value) -> Result<Value, Error> {
        if let Some(bytes) = bytes_of(key, value) {
            key.checked_suffix(bytes, self.primary).map_err(|error| Error::validation(error.to_string()))?;
            if bytes.len() > heatsink_layout::MAX_PARTITION_KEY {
                return Ok(value.clone());
            }
        }
        Ok(self.stored(key, value))
    }

    /// Refuses to copy a stored value into another attribute. In sums and lists a key's value is an
    /// error of the store's anyway.
    fn copies_none(&self, target: &Path, assigned: &Assigned) -> Result<(), Error> {
        let copied = match assigned {
            Assigned::Path(path) => self.key(path),
            Assigned::IfNotExists(path, default) => match self.key(path) {
                None => return self.copies_none(target, default),
                key => key,
            },
            _ => None,
        };
        copied.map_or(Ok(()), |key| {
            let name = &key.attribute().name;
            Err(cannot(&format!("SET {} to the value of {name}", target.root), name))
        })
    }
}

/// The operands of a predicate that reads values.
fn operands(predicate: &Condition) -> Vec<&Operand> {
    match predicate {
        Condition::Compare(a, _, b) | Condition::BeginsWith(a, b) | Condition::Contains(a, b) => vec![a, b],
        Condition::Between(a, b, c) => vec![a, b, c],
        Condition::In(a, list) => std::iter::once(a).chain(list).collect(),
        _ => Vec::new(),
    }
}

/// That a test holds, or an attribute is one of these values.
fn or_one_of(test: Condition, name: &str, values: Vec<Value>) -> Condition {
    Condition::Or(std::iter::once(test).chain(tests(name, values)).collect())
}

/// That a test holds, and an attribute is none of these values.
fn and_none_of(test: Condition, name: &str, values: Vec<Value>) -> Condition {
    let none = tests(name, values).into_iter().map(|one| Condition::Not(Box::new(one)));
    Condition::And(std::iter::once(test).chain(none).collect())
}

/// Tests that an attribute is one of these values, as many as are needed.
fn tests(name: &str, values: Vec<Value>) -> Vec<Condition> {
    let values: Vec<Operand> = values.into_iter().map(Operand::Value).collect();
    let attribute = || Operand::Path(Path::root(name));
    values.chunks(IN).map(|some| Condition::In(attribute(), some.to_vec())).collect()
}

#[cfg(test)]
mod tests;
