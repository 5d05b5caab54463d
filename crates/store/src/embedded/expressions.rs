//! Expressions that DynamoDB refuses and the engine carries out: it looks at operands when it meets
//! an item, and at some of them not at all.
//!
//! Every expression is parsed with all of DynamoDB's checks ([`heatsink_dynamo::expression`]). Of
//! several mistakes DynamoDB tells one. The engine knows that order for the mistakes that it finds:
//! it is asked first, in the name of a table that does not exist, so that it neither evaluates nor
//! writes anything.
//!
//! Not here: conditions on keys, which need the table ([`super::key_condition`]), statements of
//! PartiQL.

use bytes::Bytes;
use heatsink_dynamo::expression::{Bindings, Checks, Condition, Kind, Projection, Update};
use heatsink_dynamo::{Error, Operation, json};

/// The table in whose name the engine is asked.
pub(super) const NO_TABLE: &str = "heatsink.no-table";

/// The actions of transactions.
const ACTIONS: [&str; 5] = ["Get", "Put", "Update", "Delete", "ConditionCheck"];

/// What is wrong with the expressions of a request.
pub(super) fn refusal(operation: Operation, body: &[u8]) -> Option<Error> {
    use Kind::{Condition, Filter, KeyCondition, Projection, Update};
    match operation {
        Operation::Query => of(body, &[KeyCondition, Filter, Projection]),
        Operation::Scan => of(body, &[Filter, Projection]),
        Operation::GetItem => of(body, &[Projection]),
        Operation::PutItem | Operation::DeleteItem => of(body, &[Condition]),
        Operation::UpdateItem => of(body, &[Update, Condition]),
        Operation::BatchGetItem => {
            let tables = json::members(json::member(body, "RequestItems").ok()??).ok()?;
            tables.into_iter().find_map(|(_, table)| of(table, &[Projection]))
        }
        Operation::TransactGetItems | Operation::TransactWriteItems => {
            let elements = json::elements(json::member(body, "TransactItems").ok()??).ok()?;
            let actions =
                elements.into_iter().filter_map(|element| json::attributes_of(element, ACTIONS).ok());
            actions.flatten().flatten().find_map(|action| of(action, &[Update, Condition, Projection]))
        }
        _ => None,
    }
}

/// The request in the name of a table that does not exist; `None` if it names several.
pub(super) fn without_table(operation: Operation, body: &Bytes) -> Option<Bytes> {
    if matches!(
        operation,
        Operation::BatchGetItem | Operation::TransactGetItems | Operation::TransactWriteItems
    ) {
        return None;
    }
    let name = format!("\"{NO_TABLE}\"");
    json::splice_members(body, &[("TableName", Some(name.as_bytes()))]).ok().map(Bytes::from)
}

/// What is wrong with expressions that share their placeholders.
fn of(object: &[u8], kinds: &[Kind]) -> Option<Error> {
    let member = |name: &str| json::member(object, name).ok().flatten().filter(|raw| *raw != b"null");
    let texts: Option<Vec<_>> = kinds
        .iter()
        .filter_map(|kind| member(kind.parameter()).map(|raw| (*kind, raw)))
        .map(|(kind, raw)| Some((kind, json::string(raw).ok()?)))
        .collect();
    let texts = texts.filter(|texts| !texts.is_empty())?;
    let bindings =
        Bindings::read(member("ExpressionAttributeNames"), member("ExpressionAttributeValues")).ok()?;
    for (kind, text) in &texts {
        let read = match kind {
            // The engine reads it as DynamoDB does.
            Kind::KeyCondition => Condition::read(*kind, text, &bindings, Checks::Meaning).map(drop),
            Kind::Condition | Kind::Filter => Condition::parse(*kind, text, &bindings).map(drop),
            Kind::Update => Update::parse(text, &bindings).map(drop),
            Kind::Projection => Projection::parse(text, &bindings).map(drop),
        };
        match read {
            Err(_) if *kind == Kind::KeyCondition => return None,
            Err(error) => return Some(error),
            Ok(()) => {}
        }
    }
    let texts: Vec<&str> = texts.iter().map(|(_, text)| &**text).collect();
    bindings.check_unused(&texts).err()
}
