//! The partition keys that a request gives: logical ones, as clients know them.

use std::collections::HashMap;

use heatsink_dynamo::expression::{Bindings, Checks, Comparator, Condition, Kind, Operand};
use heatsink_dynamo::{KeyValue, Value};
use serde_json::Value as Json;

use crate::TableFacts;
use crate::access::Asked;

/// What is known of the tables of a request; `None` where nobody has asked yet.
pub(crate) type Facts<'a> = Option<&'a HashMap<String, TableFacts>>;

/// The name of a table's partition key, or what is to be said without it.
fn partition_key<'a>(facts: Facts<'a>, table: &str) -> Result<&'a str, Asked> {
    match facts {
        None => Err(Asked::Unread),
        Some(known) => known.get(table).map(|facts| facts.partition_key.as_str()).ok_or(Asked::All),
    }
}

/// The bytes of a key value that globs are matched with; `None` for what is no key.
pub(crate) fn bytes(value: &Value) -> Option<Vec<u8>> {
    KeyValue::from_value(value).map(|key| key.canonical_bytes().into_owned())
}

fn read(value: &Json) -> Option<Vec<u8>> {
    bytes(&Value::read(&serde_json::to_vec(value).ok()?).ok()?)
}

/// The partition keys of items or primary keys.
pub(crate) fn of_items<'a>(
    facts: Facts<'_>,
    table: &str,
    items: impl IntoIterator<Item = Option<&'a Json>>,
) -> Asked {
    let name = match partition_key(facts, table) {
        Ok(name) => name,
        Err(unknown) => return unknown,
    };
    let keys = items.into_iter().map(|item| read(item?.get(name)?));
    keys.collect::<Option<Vec<_>>>().map_or(Asked::All, Asked::These)
}

/// The partition key of a Query of a table: what its condition demands, and what its cursor holds.
pub(crate) fn of_query(facts: Facts<'_>, table: &str, body: &Json) -> Asked {
    let name = match partition_key(facts, table) {
        Ok(name) => name,
        Err(unknown) => return unknown,
    };
    let given = match (body.get("KeyConditionExpression"), body.get("KeyConditions")) {
        (Some(Json::String(text)), None | Some(Json::Null)) => demanded(body, text, name),
        (None | Some(Json::Null), Some(conditions)) => conditions.get(name).and_then(|condition| {
            let list = condition.get("AttributeValueList")?.as_array()?;
            match (condition.get("ComparisonOperator")?.as_str()?, list.as_slice()) {
                ("EQ", [value]) => read(value),
                _ => None,
            }
        }),
        _ => None,
    };
    let Some(given) = given else { return Asked::All };
    match body.get("ExclusiveStartKey") {
        None | Some(Json::Null) => Asked::These(vec![given]),
        Some(cursor) => match cursor.get(name).and_then(read) {
            Some(at) => Asked::These(vec![given, at]),
            None => Asked::All,
        },
    }
}

/// The one value that a condition demands of an attribute.
fn demanded(body: &Json, text: &str, name: &str) -> Option<Vec<u8>> {
    let member = |name: &str| {
        let member = body.get(name).filter(|member| !member.is_null())?;
        serde_json::to_vec(member).ok()
    };
    let (names, values) = (member("ExpressionAttributeNames"), member("ExpressionAttributeValues"));
    let bindings = Bindings::read(names.as_deref(), values.as_deref()).ok()?;
    let condition = Condition::read(Kind::KeyCondition, text, &bindings, Checks::Meaning).ok()?;
    let mut found = Vec::new();
    equal(&condition, name, &mut found);
    match found.as_slice() {
        [value] => bytes(value),
        _ => None,
    }
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
