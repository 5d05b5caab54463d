//! What a request asks for, as a list of accesses: everything that it names has to be allowed.
//!
//! Whatever cannot be told counts as all there is: a statement that this reader does not take, a
//! table that is none, a key that is not given. Who may do all with all gets by, and nobody else.

mod attributes;
mod keys;
mod names;
mod statements;
pub(crate) mod strict;

use heatsink_dynamo::{Operation, RightTo};
use heatsink_route::{NAMING, iterator_table, tables_of};
use serde_json::Value as Json;

use crate::access::{Access, Asked, Resource};
use crate::actions::CONDITION_CHECK;
use attributes::Attributes;
use keys::Facts;

/// What a request asks for. `body` and `raw` are the same.
pub(crate) fn accesses(operation: Operation, body: &Json, raw: &[u8], facts: Facts<'_>) -> Vec<Access> {
    let own = operation.name();
    match operation.right_to() {
        RightTo::Account => vec![settings(operation, Resource::Account)],
        RightTo::Table => tables(operation, body, raw),
        RightTo::Stream => streams(operation, body),
        RightTo::Collection => vec![collection(operation, body, facts)],
        RightTo::Keys => match operation {
            Operation::BatchGetItem => batch(body, |table, request| read_batch(table, request, facts)),
            Operation::BatchWriteItem => batch(body, |table, writes| write_batch(table, writes, facts)),
            _ => vec![one(own, body, facts)],
        },
        RightTo::Actions => {
            elements(body, "TransactItems").iter().flat_map(|element| action(element, facts)).collect()
        }
        RightTo::Statements => match operation {
            Operation::ExecuteStatement => statements::accesses(body, facts),
            Operation::BatchExecuteStatement => of_statements(body, "Statements", facts),
            _ => of_statements(body, "TransactStatements", facts),
        },
    }
}

fn elements<'a>(body: &'a Json, name: &str) -> &'a [Json] {
    body.get(name).and_then(Json::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn text<'a>(body: &'a Json, name: &str) -> Option<&'a str> {
    body.get(name).and_then(Json::as_str)
}

fn of_statements(body: &Json, list: &str, facts: Facts<'_>) -> Vec<Access> {
    elements(body, list).iter().flat_map(|element| statements::accesses(element, facts)).collect()
}

/// An operation on settings: what it reads is of no key, and what it changes is of all of them.
fn settings(operation: Operation, resource: Resource) -> Access {
    let whole = Access::whole(operation.name(), resource);
    match operation.only_reads() {
        true => Access { keys: Asked::Nothing, attributes: Asked::Nothing, ..whole },
        false => whole,
    }
}

fn tables(operation: Operation, body: &Json, raw: &[u8]) -> Vec<Access> {
    let created = body.get("TableCreationParameters").and_then(|created| text(created, "TableName"));
    let named = NAMING.iter().filter_map(|member| Some(named(operation, member, text(body, member)?)));
    let mut resources: Vec<Resource> = named.chain(created.map(names::table)).collect();
    // Whatever else the planner takes for a table's name.
    for name in tables_of(operation, raw).unwrap_or_default() {
        let is_known = |one: &Resource| matches!(one, Resource::Table { name: known, .. } if *known == name);
        if !resources.iter().any(is_known) {
            resources.push(names::table(&name));
        }
    }
    if resources.is_empty() || lists_all(operation, body) {
        resources.push(Resource::Account);
    }
    resources.into_iter().map(|resource| settings(operation, resource)).collect()
}

/// Whether it lists what tables have and its own member names none: whatever else is there does not
/// narrow it.
fn lists_all(operation: Operation, body: &Json) -> bool {
    let narrows = match operation {
        Operation::ListBackups | Operation::ListContributorInsights | Operation::ListStreams => "TableName",
        Operation::ListExports | Operation::ListImports => "TableArn",
        Operation::ListGlobalTables => return true,
        _ => return false,
    };
    text(body, narrows).is_none()
}

/// What a member of a request names: a table, but for members that name parts of one.
fn named(operation: Operation, member: &str, named: &str) -> Resource {
    let of_policies = matches!(
        operation,
        Operation::DeleteResourcePolicy | Operation::GetResourcePolicy | Operation::PutResourcePolicy
    );
    match member {
        "BackupArn" => names::arn_of_part(named, "backup"),
        "ExportArn" => names::arn_of_part(named, "export"),
        "ImportArn" => names::arn_of_part(named, "import"),
        "StreamArn" => names::arn_of_part(named, "stream"),
        "ResourceArn" if of_policies && names::table(named) == Resource::Account => {
            names::arn_of_part(named, "stream")
        }
        _ => names::table(named),
    }
}

/// A stream, which has the items of all keys.
fn streams(operation: Operation, body: &Json) -> Vec<Access> {
    let iterator = text(body, "ShardIterator").map(|iterator| match iterator_table(iterator) {
        _ if iterator.matches("arn:").count() > 1 => Resource::Account,
        Some(named) if named.starts_with("arn:") => {
            names::arn_of_part(named.split('|').next().unwrap_or(&named), "stream")
        }
        Some(named) if has_one_reading(iterator) => names::part(&named, "stream", ""),
        _ => Resource::Account,
    });
    let arn = text(body, "StreamArn").map(|arn| names::arn_of_part(arn, "stream"));
    let table = text(body, "TableName").map(|table| names::part(table, "stream", ""));
    let mut named: Vec<Resource> = [iterator, arn, table].into_iter().flatten().collect();
    if named.is_empty() || lists_all(operation, body) {
        named.push(Resource::Account);
    }
    named.into_iter().map(|resource| Access::whole(operation.name(), resource)).collect()
}

/// Whether an iterator of the embedded store names one table, whoever reads it.
fn has_one_reading(iterator: &str) -> bool {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    STANDARD.decode(iterator).ok().and_then(|decoded| strict::read(&decoded)).is_some()
}

/// A Query, a Scan, or another search of a table or an index.
fn collection(operation: Operation, body: &Json, facts: Facts<'_>) -> Access {
    let index = text(body, "IndexName");
    let table = text(body, "TableName").unwrap_or_default();
    let resource = index.map_or_else(|| names::table(table), |index| names::part(table, "index", index));
    let keys = match (operation, index) {
        (Operation::Query, None) => keys::of_query(facts, &resource, body),
        _ => Asked::All,
    };
    let select = selected(body, index.is_some());
    let mut attributes = Attributes::default();
    attributes.add_parameters(body);
    attributes.add_selected(&select);
    if operation == Operation::SearchVectors {
        attributes.add_all();
    }
    let attributes = attributes.with_position(facts, &resource, index);
    Access { keys, attributes, select: Some(select), ..Access::whole(operation.name(), resource) }
}

/// What a read selects: its parameter, or what holds without it.
fn selected(body: &Json, of_index: bool) -> String {
    let is_given = |name: &str| body.get(name).is_some_and(|given| !given.is_null());
    match text(body, "Select") {
        Some(select) => select.to_owned(),
        None if is_given("ProjectionExpression") || is_given("AttributesToGet") => {
            "SPECIFIC_ATTRIBUTES".to_owned()
        }
        None if of_index => "ALL_PROJECTED_ATTRIBUTES".to_owned(),
        None => "ALL_ATTRIBUTES".to_owned(),
    }
}

/// One item, by its key or whole; also as an element of a transaction.
fn one(action: &'static str, request: &Json, facts: Facts<'_>) -> Access {
    let resource = names::table(text(request, "TableName").unwrap_or_default());
    let put = request.get("Item").filter(|item| !item.is_null());
    let key = request.get("Key").filter(|key| !key.is_null());
    // No request that is right has both; where one has, both count.
    let both = put.and(key).map(Some);
    let keys = keys::of_items(facts, &resource, [put.or(key)].into_iter().chain(both));
    let mut attributes = Attributes::default();
    attributes.add_members(put);
    attributes.add_parameters(request);
    let whole = Access::whole(action, resource);
    if action == Operation::GetItem.name() {
        let select = selected(request, false);
        attributes.add_selected(&select);
        return Access { keys, attributes: attributes.asked(), select: Some(select), ..whole };
    }
    attributes.add_returned(request);
    let returned = text(request, "ReturnValues").unwrap_or("NONE").to_owned();
    Access { keys, attributes: attributes.asked(), returned: Some(returned), ..whole }
}

/// The elements of a transaction, each under the name of what it does.
fn action(element: &Json, facts: Facts<'_>) -> Vec<Access> {
    let unreadable = || {
        vec![
            Access::whole(Operation::GetItem.name(), Resource::Account),
            Access::whole(Operation::DeleteItem.name(), Resource::Account),
        ]
    };
    let Some(members) = element.as_object() else { return unreadable() };
    let accesses = members.iter().filter(|(_, action)| !action.is_null()).map(|(kind, action)| {
        let name = match kind.as_str() {
            "Get" => Operation::GetItem.name(),
            "Put" => Operation::PutItem.name(),
            "Update" => Operation::UpdateItem.name(),
            "Delete" => Operation::DeleteItem.name(),
            "ConditionCheck" => CONDITION_CHECK,
            _ => return None,
        };
        Some(one(name, action, facts))
    });
    accesses.collect::<Option<Vec<_>>>().unwrap_or_else(unreadable)
}

/// The tables of a batch.
fn batch<'a>(body: &'a Json, of: impl Fn(&'a str, &'a Json) -> Access) -> Vec<Access> {
    let tables = body.get("RequestItems").and_then(Json::as_object);
    tables.into_iter().flatten().map(|(table, request)| of(table, request)).collect()
}

fn read_batch(table: &str, request: &Json, facts: Facts<'_>) -> Access {
    let resource = names::table(table);
    let read = elements(request, "Keys");
    let keys = keys::of_items(facts, &resource, read.iter().map(Some));
    let select = selected(request, false);
    let mut attributes = Attributes::default();
    read.iter().for_each(|key| attributes.add_members(Some(key)));
    attributes.add_parameters(request);
    attributes.add_selected(&select);
    let whole = Access::whole(Operation::BatchGetItem.name(), resource);
    Access { keys, attributes: attributes.asked(), select: Some(select), ..whole }
}

fn write_batch(table: &str, writes: &Json, facts: Facts<'_>) -> Access {
    let resource = names::table(table);
    let mut attributes = Attributes::default();
    let mut items = Vec::new();
    for write in writes.as_array().map(Vec::as_slice).unwrap_or_default() {
        // An element with neither is of no key that is known.
        let known = items.len();
        for (kind, of) in [("PutRequest", "Item"), ("DeleteRequest", "Key")] {
            if let Some(request) = write.get(kind).filter(|request| !request.is_null()) {
                attributes.add_members(request.get(of));
                items.push(request.get(of));
            }
        }
        if items.len() == known {
            items.push(None);
        }
    }
    let keys = keys::of_items(facts, &resource, items);
    let whole = Access::whole(Operation::BatchWriteItem.name(), resource);
    Access { keys, attributes: attributes.asked(), returned: Some("NONE".to_owned()), ..whole }
}
