//! Requests that the store checks as it would check the client's, and that can have no effect: a
//! read as it came; a write with a table name that no table can have in the place of the tables
//! that do not exist. A transaction keeps its other tables, since it has all of its effects or
//! none. A batch is asked table by table, each under that name.

use std::borrow::Cow;

use bytes::Bytes;
use heatsink_control::NOBODY;
use heatsink_dynamo::json::{self, Object};
use heatsink_dynamo::partiql::{is_select, tables_at};
use heatsink_dynamo::{Operation, is_table_name};
use heatsink_route::table_name;

/// The requests, in the order in which the store is to be asked; none where it cannot be asked.
pub(super) fn variants(operation: Operation, body: &Bytes, missing: &[String]) -> Vec<Bytes> {
    let one = |variant: Option<Bytes>| variant.into_iter().collect();
    match operation {
        _ if operation.only_reads() => vec![body.clone()],
        Operation::BatchWriteItem => batch(body).unwrap_or_default(),
        Operation::ExecuteStatement => one(statement(body)),
        Operation::ExecuteTransaction => one(statements(body)),
        Operation::TransactWriteItems => one(transaction(body, missing)),
        _ if named(body).is_some_and(|name| names_nothing(&name)) => vec![body.clone()],
        _ => one(renamed(body)),
    }
}

fn named(body: &[u8]) -> Option<Cow<'_, str>> {
    json::member(body, "TableName").ok().flatten().and_then(|name| json::string(name).ok())
}

/// Whether no table can have the name.
fn names_nothing(name: &str) -> bool {
    !name.starts_with("arn:") && !is_table_name(name)
}

fn quoted() -> Vec<u8> {
    [b"\"", NOBODY.as_bytes(), b"\""].concat()
}

/// The request with another table name, if it names one table.
fn renamed(body: &Bytes) -> Option<Bytes> {
    let name = json::member(body, "TableName").ok().flatten()?;
    let begin = name.as_ptr() as usize - body.as_ptr() as usize;
    let (before, after) = (body.get(..begin)?, body.get(begin + name.len()..)?);
    Some([before, &quoted(), after].concat().into())
}

/// One request for each table of a batch, those first whose names no table can have.
fn batch(body: &Bytes) -> Option<Vec<Bytes>> {
    let mut tables = json::members(json::member(body, "RequestItems").ok().flatten()?).ok()?;
    tables.sort_by_key(|(name, _)| !names_nothing(name));
    let one = |(name, writes): (Cow<'_, str>, &[u8])| {
        let mut items = Object::new();
        items.raw(if names_nothing(&name) { &name } else { NOBODY }, writes);
        json::splice_members(body, &[("RequestItems", Some(&items.finish()))]).ok().map(Bytes::from)
    };
    tables.into_iter().map(one).collect()
}

/// An object with the statement that a store checks in the place of its own: a SELECT as it is, any
/// other with another name for its tables.
pub(crate) fn statement(object: &[u8]) -> Option<Bytes> {
    let text = json::string(json::member(object, "Statement").ok().flatten()?).ok()?;
    let mut renamed = String::with_capacity(text.len());
    let mut from = 0;
    for (name, span) in tables_at(&text) {
        if !names_nothing(&name) && !is_select(&text) {
            renamed.push_str(text.get(from..span.start)?);
            renamed.push_str(&format!("\"{NOBODY}\""));
            from = span.end;
        }
    }
    renamed.push_str(text.get(from..)?);
    let mut written = Vec::new();
    json::write_string(&mut written, &renamed);
    json::splice_members(object, &[("Statement", Some(&written))]).ok().map(Bytes::from)
}

/// A transaction of statements, none of which names a table that can exist; without its token.
fn statements(body: &Bytes) -> Option<Bytes> {
    let list = json::elements(json::member(body, "TransactStatements").ok().flatten()?).ok()?;
    let list: Option<Vec<Bytes>> = list.into_iter().map(statement).collect();
    let list = [b"[", list?.join(&b","[..]).as_slice(), b"]"].concat();
    let changes = [("TransactStatements", Some(&*list)), ("ClientRequestToken", None)];
    json::splice_members(body, &changes).ok().map(Bytes::from)
}

/// The transaction with another name for its missing tables, if it has one. Without its token: the
/// store would remember the token with another request than the client's.
fn transaction(body: &Bytes, missing: &[String]) -> Option<Bytes> {
    let name = quoted();
    let is_missing = |action: &[u8]| {
        named(action).is_some_and(|table| missing.iter().any(|missing| missing == table_name(&table)))
    };
    let mut elements = Vec::new();
    let mut any = false;
    for element in json::elements(json::member(body, "TransactItems").ok().flatten()?).ok()? {
        let actions = json::members(element).ok()?;
        if !actions.iter().any(|(_, action)| is_missing(action)) {
            elements.push(element.to_vec());
            continue;
        }
        any = true;
        let mut renamed = Object::new();
        // Of several actions in one element, which DynamoDB refuses, none may be carried out.
        for (action, members) in actions {
            if named(members).is_some_and(|name| names_nothing(&name)) {
                renamed.raw(&action, members);
            } else {
                renamed.raw(&action, &json::splice_members(members, &[("TableName", Some(&*name))]).ok()?);
            }
        }
        elements.push(renamed.finish());
    }
    let elements = [b"[", elements.join(&b","[..]).as_slice(), b"]"].concat();
    let changes = [("TransactItems", Some(&*elements)), ("ClientRequestToken", None)];
    any.then(|| json::splice_members(body, &changes).ok().map(Bytes::from)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_name_is_replaced_and_nothing_else() {
        let body = Bytes::from_static(br#"{"Item":{"TableName":{"S":"T"}}, "TableName" : "T" ,"x":1}"#);
        let expected = br#"{"Item":{"TableName":{"S":"T"}}, "TableName" : "heatsink.nobody" ,"x":1}"#;
        assert_eq!(renamed(&body).unwrap(), &expected[..]);
        assert!(renamed(&Bytes::from_static(br#"{"RequestItems":{}}"#)).is_none());
    }

    #[test]
    fn a_transaction_keeps_the_tables_that_exist_and_loses_its_token() {
        let body = Bytes::from_static(br#"{"TransactItems":[{"Delete":{"TableName":"Tab"}},{"Delete":{"TableName":"Umb"}}],"ClientRequestToken":"t"}"#);
        let asked = transaction(&body, &["Umb".to_owned()]).unwrap();
        let asked: serde_json::Value = serde_json::from_slice(&asked).unwrap();
        let delete = |table: &str| serde_json::json!({ "Delete": { "TableName": table } });
        assert_eq!(asked, serde_json::json!({ "TransactItems": [delete("Tab"), delete(NOBODY)] }));
        assert!(transaction(&body, &["Vat".to_owned()]).is_none());
    }
}
