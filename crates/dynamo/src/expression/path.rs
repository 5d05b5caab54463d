//! Reading, writing and removing what a document path names.

use super::ast::{Path, Step};
use crate::{Item, Value};

/// What the path names, if the item has it.
pub(super) fn get<'a>(item: &'a Item, path: &Path) -> Option<&'a Value> {
    path.rest.iter().try_fold(item.get(&path.root)?, |value, step| match (value, step) {
        (Value::M(map), Step::Name(name)) => map.get(name),
        (Value::L(list), Step::Index(index)) => list.get(*index),
        _ => None,
    })
}

/// A path does not lead into what the item holds.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NoWay;

/// Sets what the path names. Its parent must be there; behind the end of a list the value is
/// appended.
pub(super) fn set(item: &mut Item, path: &Path, value: Value) -> Result<(), NoWay> {
    let Some((last, _)) = path.rest.split_last() else {
        item.insert(path.root.clone(), value);
        return Ok(());
    };
    match (parent(item, path)?, last) {
        (Value::M(map), Step::Name(name)) => {
            map.insert(name.clone(), value);
        }
        (Value::L(list), Step::Index(index)) => match list.get_mut(*index) {
            Some(place) => *place = value,
            None => list.push(value),
        },
        _ => return Err(NoWay),
    }
    Ok(())
}

/// Removes what the path names; its parent must be there.
pub(super) fn remove(item: &mut Item, path: &Path) -> Result<(), NoWay> {
    let Some((last, _)) = path.rest.split_last() else {
        item.remove(&path.root);
        return Ok(());
    };
    match (parent(item, path)?, last) {
        (Value::M(map), Step::Name(name)) => {
            map.remove(name);
        }
        (Value::L(list), Step::Index(index)) => {
            if *index < list.len() {
                list.remove(*index);
            }
        }
        _ => return Err(NoWay),
    }
    Ok(())
}

/// Whether what the path names could be set.
pub(super) fn can_hold(item: &Item, path: &Path) -> bool {
    let Some((last, before)) = path.rest.split_last() else { return true };
    let parent = Path { root: path.root.clone(), rest: before.to_vec() };
    matches!(
        (get(item, &parent), last),
        (Some(Value::M(_)), Step::Name(_)) | (Some(Value::L(_)), Step::Index(_))
    )
}

/// The map or list that holds the last step.
fn parent<'a>(item: &'a mut Item, path: &Path) -> Result<&'a mut Value, NoWay> {
    let before = path.rest.split_last().map(|(_, before)| before).unwrap_or_default();
    let root = item.get_mut(&path.root).ok_or(NoWay)?;
    before.iter().try_fold(root, |value, step| match (value, step) {
        (Value::M(map), Step::Name(name)) => map.get_mut(name).ok_or(NoWay),
        (Value::L(list), Step::Index(index)) => list.get_mut(*index).ok_or(NoWay),
        _ => Err(NoWay),
    })
}
