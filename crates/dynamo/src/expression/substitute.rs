//! Putting a literal where an expression reads an attribute.
//!
//! A caller who knows what an attribute must look like to the client, though something else is
//! stored, lets the store evaluate the client's condition all the same. The attribute must be one
//! that every item has (a key attribute), so that it is missing exactly when the item is.

use super::ast::{Assigned, Condition, Operand, Path, Update};
use super::faults::Faults;
use super::kind::{Checks, Kind};
use super::{check, eval};
use crate::{Item, Value};

impl Condition {
    /// The condition with every read of the key attribute `attribute` replaced by `value`. It holds
    /// for what is stored, and for a missing item, exactly when the old one holds for the item
    /// whose attribute is `value`.
    ///
    /// `attribute_exists`, `attribute_not_exists` and `attribute_type` of the attribute stay: they
    /// do not read its value. So do paths into it, which name nothing in either form.
    pub fn substitute(&self, attribute: &str, value: &Value) -> Condition {
        match self {
            Condition::And(all) => {
                Condition::And(all.iter().map(|one| one.substitute(attribute, value)).collect())
            }
            Condition::Or(all) => {
                Condition::Or(all.iter().map(|one| one.substitute(attribute, value)).collect())
            }
            Condition::Not(inner) => Condition::Not(Box::new(inner.substitute(attribute, value))),
            predicate => predicate.with_literal(attribute, value),
        }
    }

    fn with_literal(&self, attribute: &str, value: &Value) -> Condition {
        let mut replaced = self.clone();
        let mut changed = false;
        for operand in replaced.operands_mut() {
            changed |= operand.replace(attribute, value);
        }
        if !changed {
            return replaced;
        }
        let exists = || Condition::Exists(Path::root(attribute));
        let missing = || Condition::NotExists(Path::root(attribute));
        let empty = Item::new();
        let on_missing = self.holds(&empty);
        // With literals alone, or with literals that DynamoDB would refuse, the answer is known for
        // every item.
        let known = if replaced.paths().is_empty() {
            Some(replaced.holds(&empty))
        } else {
            let mut faults = Faults::default();
            check::predicate(&replaced, Kind::Condition, &mut faults);
            // Bounds of BETWEEN that are out of order or of two types hold nothing between them.
            faults.finish(Checks::All).is_err().then_some(false)
        };
        match (known, on_missing) {
            (Some(true), true) => Condition::Or(vec![exists(), missing()]),
            (Some(true), false) => exists(),
            (Some(false), true) => missing(),
            (Some(false), false) => Condition::And(vec![exists(), missing()]),
            (None, true) => Condition::Or(vec![missing(), replaced]),
            (None, false) => Condition::And(vec![exists(), replaced]),
        }
    }
}

impl Operand {
    /// Whether anything was replaced.
    fn replace(&mut self, attribute: &str, value: &Value) -> bool {
        match self {
            Operand::Path(path) if path.is_root(attribute) => {
                *self = Operand::Value(value.clone());
                true
            }
            Operand::Size(inner) => {
                let read = inner.replace(attribute, value);
                if read
                    && let Operand::Value(literal) = inner.as_ref()
                    && let Some(size) = eval::size(literal)
                {
                    *self = Operand::Value(size);
                }
                read
            }
            _ => false,
        }
    }
}

impl Update {
    /// The update with every read of the key attribute `attribute` replaced by `value`. What it
    /// writes stays.
    pub fn substitute(&self, attribute: &str, value: &Value) -> Update {
        let set =
            self.set.iter().map(|(path, assigned)| (path.clone(), assigned.substitute(attribute, value)));
        Update { set: set.collect(), ..self.clone() }
    }
}

impl Assigned {
    fn substitute(&self, attribute: &str, value: &Value) -> Assigned {
        let inner = |assigned: &Assigned| Box::new(assigned.substitute(attribute, value));
        match self {
            Assigned::Path(path) if path.is_root(attribute) => Assigned::Value(value.clone()),
            Assigned::IfNotExists(path, _) if path.is_root(attribute) => Assigned::Value(value.clone()),
            Assigned::IfNotExists(path, default) => Assigned::IfNotExists(path.clone(), inner(default)),
            Assigned::ListAppend(a, b) => Assigned::ListAppend(inner(a), inner(b)),
            Assigned::Plus(a, b) => Assigned::Plus(inner(a), inner(b)),
            Assigned::Minus(a, b) => Assigned::Minus(inner(a), inner(b)),
            same @ (Assigned::Path(_) | Assigned::Value(_)) => same.clone(),
        }
    }
}
