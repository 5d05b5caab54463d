//! The partition keys that a request gives: logical ones, as clients know them.

use std::collections::HashMap;

use heatsink_dynamo::expression::{Bindings, Checks, Comparator, Condition, Kind, Operand};
use heatsink_dynamo::{KeyValue, Value};
use serde_json::Value as Json;

use crate::TableFacts;
use crate::access::{Asked, Resource};

/// What is known of the tables of a request; `None` where nobody has asked yet.
pub(crate) type Facts<'a> = Option<&'a HashMap<String, TableFacts>>;

/// The partition keys that `given` finds under the name of the table's partition key; all, where it
/// finds none, or there is no table.
pub(super) fn of(
    facts: Facts<'_>,
    resource: &Resource,
    given: impl FnOnce(&str) -> Option<Vec<Vec<u8>>>,
) -> Asked {
    let Resource::Table { name, .. } = resource else { return Asked::All };
    let Some(known) = facts else { return Asked::Unread };
    known.get(name).and_then(|table| given(&table.partition_key)).map_or(Asked::All, Asked::These)
}

/// The bytes of a key value that globs are matched with; `None` for what is no key.
pub(crate) fn bytes(value: &Value) -> Option<Vec<u8>> {
    KeyValue::from_value(value).map(|key| key.canonical_bytes().into_owned())
}

fn read(json: &Json) -> Option<Vec<u8>> {
    bytes(&value(json)?)
}

/// An attribute value; `None` for what is none.
pub(super) fn value(json: &Json) -> Option<Value> {
    Value::read(&serde_json::to_vec(json).ok()?).ok()
}

/// What `read` makes of the placeholders of a request; `None` where they cannot be read.
pub(super) fn bound<T>(request: &Json, read: impl FnOnce(&Bindings<'_>) -> Option<T>) -> Option<T> {
    let member = |name: &str| {
        let member = request.get(name).filter(|member| !member.is_null())?;
        serde_json::to_vec(member).ok()
    };
    let (names, values) = (member("ExpressionAttributeNames"), member("ExpressionAttributeValues"));
    Bindings::read(names.as_deref(), values.as_deref()).ok().and_then(|bindings| read(&bindings))
}

/// The partition keys of items or primary keys.
pub(super) fn of_items<'a>(
    facts: Facts<'_>,
    resource: &Resource,
    items: impl IntoIterator<Item = Option<&'a Json>>,
) -> Asked {
    of(facts, resource, |name| items.into_iter().map(|item| read(item?.get(name)?)).collect())
}

/// The partition key of a Query of a table: what its condition demands, and what its cursor holds.
pub(super) fn of_query(facts: Facts<'_>, resource: &Resource, body: &Json) -> Asked {
    of(facts, resource, |name| {
        let given = match (body.get("KeyConditionExpression"), body.get("KeyConditions")) {
            (Some(Json::String(text)), None | Some(Json::Null)) => demanded(body, text, name)?,
            (None | Some(Json::Null), Some(conditions)) => equal_to(conditions.get(name)?)?,
            _ => return None,
        };
        match body.get("ExclusiveStartKey") {
            None | Some(Json::Null) => Some(vec![given]),
            Some(cursor) => Some(vec![given, read(cursor.get(name)?)?]),
        }
    })
}

/// The one value that an element of `KeyConditions` demands.
fn equal_to(condition: &Json) -> Option<Vec<u8>> {
    let list = condition.get("AttributeValueList")?.as_array()?;
    match (condition.get("ComparisonOperator")?.as_str()?, list.as_slice()) {
        ("EQ", [value]) => read(value),
        _ => None,
    }
}

/// The one value that a condition demands of an attribute.
fn demanded(body: &Json, text: &str, name: &str) -> Option<Vec<u8>> {
    bound(body, |bindings| {
        let condition = Condition::read(Kind::KeyCondition, text, bindings, Checks::Meaning).ok()?;
        let mut found = Vec::new();
        equal(&condition, name, &mut found);
        match found.as_slice() {
            [value] => bytes(value),
            _ => None,
        }
    })
}

fn equal<'a>(condition: &'a Condition, name: &str, found: &mut Vec<&'a Value>) {
    match condition {
        Condition::And(all) => all.iter().for_each(|one| equal(one, name, found)),
        Condition::Compare(Operand::Path(path), Comparator::Eq, Operand::Value(value))
        | Condition::Compare(Operand::Value(value), Comparator::Eq, Operand::Path(path))
            if path.is_root(name) =>
        {
            found.push(value);
        }
        _ => {}
    }
}
