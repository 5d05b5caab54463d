//! Transactions with several mistakes. The server goes through the actions in their order and tells
//! the first that it meets, where DynamoDB checks the request as a whole before it looks at any
//! item. With sharding the first mistake can be another.

use std::collections::BTreeSet;

use serde_json::{Value as Json, json};

/// The table that is not there (`generate::spoil`).
const ABSENT: &str = "Missing";

/// What an action does, and with which members.
fn parts(action: &Json) -> Option<(&str, &Json)> {
    let (name, members) = action.as_object()?.iter().next()?;
    Some((name, members))
}

/// The key of an action's item, whatever else an item to put has.
fn key(members: &Json) -> Json {
    let members = members.get("Key").or(members.get("Item")).and_then(Json::as_object);
    let parts = members.into_iter().flatten().filter(|(name, _)| ["pk", "sk"].contains(&name.as_str()));
    parts.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// Leaves a transaction that names a table which is not there nothing else to be refused for:
/// Heatsink refuses it for that table before the store sees it, and the server for whatever comes
/// first, a token that was used for another transaction included.
pub fn on_absent_tables_alone(body: &mut Json) {
    let absent = |action: &Json| parts(action).is_some_and(|(_, members)| members["TableName"] == ABSENT);
    let Some(actions) = body.get_mut("TransactItems").and_then(Json::as_array_mut) else { return };
    if !actions.iter().any(absent) {
        return;
    }
    actions.retain(absent);
    for action in actions {
        let key = parts(action).map(|(_, members)| key(members)).unwrap_or_default();
        let name = if parts(action).is_some_and(|(name, _)| name == "Get") { "Get" } else { "Delete" };
        *action = json!({ name: {"TableName": ABSENT, "Key": key} });
    }
    body.as_object_mut().and_then(|members| members.remove("ClientRequestToken"));
}

/// Leaves an item one action, for rules under which an action can become several, each with an item
/// of its own. The server takes an item that is named twice for one that is named once where a
/// condition on it fails, or the second action fails on what the first wrote; so whether it refuses
/// the repetition depends on how many actions there are without a condition. Puts and deletes
/// without conditions stay as they are.
pub fn items_named_once(actions: &mut Vec<Json>) {
    let unconditional = |action: &Json| {
        parts(action).is_some_and(|(name, members)| {
            ["Put", "Delete"].contains(&name) && members.get("ConditionExpression").is_none()
        })
    };
    if actions.iter().all(unconditional) {
        return;
    }
    let mut named = BTreeSet::new();
    actions.retain(|action| match parts(action) {
        Some(("Get", _)) | None => true,
        Some((_, members)) => named.insert(json!([members["TableName"], key(members)]).to_string()),
    });
}

fn delete(table: &str, key: &str) -> Json {
    json!({"Delete": {"TableName": table, "Key": {"pk": {"S": key}, "sk": {"S": "s"}}}})
}

fn put(key: &str, condition: Option<&str>) -> Json {
    let item = json!({"pk": {"S": key}, "sk": {"S": "s"}, "v": {"N": "1"}});
    let mut put = json!({ "TableName": "Strings", "Item": item });
    condition.into_iter().for_each(|condition| put["ConditionExpression"] = json!(condition));
    json!({ "Put": put })
}

#[test]
fn a_transaction_keeps_the_absent_table_as_its_one_mistake() {
    let actions = [put("b", Some("attribute_exists(x)")), put("a", None), delete(ABSENT, "a")];
    let mut body = json!({ "ClientRequestToken": "t", "TransactItems": actions });
    on_absent_tables_alone(&mut body);
    assert_eq!(body, json!({ "TransactItems": [delete(ABSENT, "a")] }));
    let there =
        json!({ "ClientRequestToken": "t", "TransactItems": [put("a", None), delete("Strings", "b")] });
    let mut same = there.clone();
    on_absent_tables_alone(&mut same);
    assert_eq!(same, there);
}

#[test]
fn an_item_is_named_twice_where_no_condition_can_fail() {
    let plain = vec![put("a", None), delete("Strings", "a")];
    let fails = put("a", Some("attribute_exists(x)"));
    let get = json!({"Get": {"TableName": "Strings", "Key": {"pk": {"S": "a"}, "sk": {"S": "s"}}}});
    for (given, left) in [
        (plain.clone(), plain),
        (vec![put("a", None), fails.clone(), put("b", None)], vec![put("a", None), put("b", None)]),
        (vec![fails.clone(), put("a", None)], vec![fails]),
        (vec![get.clone(), get.clone()], vec![get.clone(), get]),
    ] {
        let mut actions = given;
        items_named_once(&mut actions);
        assert_eq!(actions, left);
    }
}
