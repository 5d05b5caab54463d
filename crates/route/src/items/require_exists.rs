//! A write that must not create an item: update or delete only if the item still exists here.

use bytes::Bytes;
use heatsink_dynamo::Error;
use heatsink_dynamo::expression::Condition;
use heatsink_dynamo::json::{self, Object};
use heatsink_layout::Table;

use crate::request::{Request, malformed, quoted, set_members};

/// The same physical write, on condition that the item exists. What the store refuses for certain
/// is left as it is.
///
/// # Errors
/// `ValidationException` where the legacy parameters leave no room for the condition.
pub(crate) fn require_exists(body: &Bytes, table: &Table) -> Result<Bytes, Error> {
    let request = Request::read(body)?;
    let legacy = ["Expected", "AttributeUpdates", "ConditionalOperator", "AttributesToGet"];
    if legacy.iter().any(|name| request.get(name).is_some()) {
        return expected(&request, table);
    }
    let condition = request.string("ConditionExpression")?;
    let names = json::members(request.get("ExpressionAttributeNames").unwrap_or(b"{}"));
    let names = names.map_err(|json::Malformed| malformed())?;
    let bound = ["ExpressionAttributeNames", "ExpressionAttributeValues"];
    if condition.as_deref().is_some_and(Condition::is_broken) {
        return Ok(body.clone());
    }
    let bare = condition.is_none() && request.get("UpdateExpression").is_none();
    let empty = |raw: &[u8]| json::members(raw).is_ok_and(|members| members.is_empty());
    if bound.iter().filter_map(|name| request.get(name)).any(|raw| bare || empty(raw)) {
        return Ok(body.clone());
    }
    let mut placeholder = "#there".to_owned();
    while names.iter().any(|(name, _)| *name == placeholder) {
        placeholder.push('_');
    }
    let mut all = Object::new();
    for (name, value) in &names {
        all.raw(name, value);
    }
    all.string(&placeholder, &table.key.partition.name);
    let exists = format!("attribute_exists({placeholder})");
    let text = match condition.as_deref().map(str::trim) {
        None => exists,
        // DynamoDB refuses redundant parentheses.
        Some(text) if enclosed(text) => format!("{exists} AND {text}"),
        Some(text) => format!("{exists} AND ({text})"),
    };
    let changes =
        vec![("ConditionExpression", Some(quoted(&text))), ("ExpressionAttributeNames", Some(all.finish()))];
    set_members(body, &changes)
}

/// Whether one pair of parentheses holds all of a condition. No condition has text in quotes.
fn enclosed(text: &str) -> bool {
    let mut depth = 0_i32;
    for (at, c) in text.char_indices() {
        depth += i32::from(c == '(') - i32::from(c == ')');
        if depth == 0 {
            return at > 0 && at + 1 == text.len();
        }
    }
    false
}

/// The same with `Expected`.
fn expected(request: &Request<'_>, table: &Table) -> Result<Bytes, Error> {
    let conditions = json::members(request.get("Expected").unwrap_or(b"{}"));
    let conditions = conditions.map_err(|json::Malformed| malformed())?;
    let operator = request.string("ConditionalOperator")?;
    if operator.is_some() && conditions.len() < 2 {
        return Ok(request.body.clone());
    }
    // Every item has all key attributes.
    let free = table.key.names().find(|key| conditions.iter().all(|(name, _)| name != key));
    let or = operator.as_deref() == Some("OR");
    let (Some(name), false) = (free, or) else {
        return Err(Error::gateway_rejection(
            "Not supported on a key whose shard other writers assign (hash = \"random\"): Expected with ConditionalOperator OR, or on all key \
             attributes. Use ConditionExpression. Nothing was written",
        ));
    };
    let mut all = Object::new();
    for (name, condition) in &conditions {
        all.raw(name, condition);
    }
    all.raw(name, br#"{"ComparisonOperator":"NOT_NULL"}"#);
    set_members(request.body, &vec![("Expected", Some(all.finish()))])
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use heatsink_dynamo::{AttributeDefinition, KeySchema, KeyType, TableSchema};

    use super::*;

    fn table() -> Table {
        let partition = AttributeDefinition { name: "pk".to_owned(), key_type: KeyType::S };
        let key = KeySchema { partition, sort: None };
        let schema = TableSchema { name: "T".to_owned(), id: "1".to_owned(), key, indexes: Vec::new() };
        Table::new(schema, Arc::default())
    }

    /// The store's error has to show the client's text, not the one with the added condition.
    #[test]
    fn a_condition_without_sense_is_left_to_the_store() {
        let table = table();
        let changed = |condition: &str| {
            let body = Bytes::from(serde_json::json!({ "ConditionExpression": condition }).to_string());
            require_exists(&body, &table).unwrap() != body
        };
        for sense in ["a = :v", "a = :v OR b = :v", "size(a) > :undefined"] {
            assert!(changed(sense), "{sense}");
        }
        for nonsense in ["size(a) > :v AND", "a = :v)", "a", "(a = :v"] {
            assert!(!changed(nonsense), "{nonsense}");
        }
    }

    #[test]
    fn the_placeholder_that_is_added_is_no_name_of_the_client() {
        let table = table();
        for (own, added) in [("#there", "#there_"), ("#other", "#there")] {
            let request = serde_json::json!({
                "ConditionExpression": format!("{own} = :v"), "ExpressionAttributeNames": { own: "a" },
            });
            let changed = require_exists(&Bytes::from(request.to_string()), &table).unwrap();
            let changed: serde_json::Value = serde_json::from_slice(&changed).unwrap();
            let condition = format!("attribute_exists({added}) AND ({own} = :v)");
            assert_eq!(changed["ConditionExpression"], condition);
            assert_eq!(changed["ExpressionAttributeNames"], serde_json::json!({ own: "a", added: "pk" }));
        }
    }

    #[test]
    fn parentheses_are_not_doubled() {
        for (text, expected) in [
            ("(a)", true),
            ("(a) OR (b)", false),
            ("a", false),
            ("", false),
            ("f(a)", false),
            ("((a) OR b)", true),
            ("(a", false),
        ] {
            assert_eq!(enclosed(text), expected, "{text}");
        }
    }
}
