//! `AttributeUpdates`, which update expressions replaced.

use super::ast::{Assigned, Path, Update};
use crate::{Value, json};

impl Update {
    /// The effect of an `AttributeUpdates`; `None` if it is not of the form that it must have.
    pub fn of_attribute_updates(raw: &[u8]) -> Option<Update> {
        let mut update = Update::default();
        for (name, one) in json::members(raw).ok()? {
            let path = Path::root(name);
            let [action, value] = json::attributes_of(one, ["Action", "Value"]).ok()?;
            let action = action.map(json::string).transpose().ok()?;
            let value = value.map(Value::read).transpose().ok()?;
            match (action.as_deref().unwrap_or("PUT"), value) {
                ("PUT", Some(value)) => update.set.push((path, Assigned::Value(value))),
                ("ADD", Some(value)) => update.add.push((path, value)),
                ("DELETE", Some(value)) => update.delete.push((path, value)),
                ("DELETE", None) => update.remove.push(path),
                _ => return None,
            }
        }
        Some(update)
    }
}
