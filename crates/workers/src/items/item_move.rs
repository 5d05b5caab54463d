//! Moves one item to another partition key in one transaction: a put on condition that the target
//! is free, and a delete on condition that the item is unchanged.
//!
//! A reader can see neither or both of the items while the transaction runs. So this is only for
//! items that nobody reads: those of a table that is being adopted, and misplaced items, which
//! requests do not find (`verify`).

use heatsink_control::claim::{Claim, ClaimError, Written};
use heatsink_control::registry::Registry;
use heatsink_dynamo::{Error, Operation, Outcome};
use serde_json::{Map, Value as Json, json};

use crate::error::WorkerError;
use crate::items::item::{Attributes, ItemContext, same, shown};

/// The largest number of attributes that a delete's condition compares. DynamoDB takes 300
/// operators in an expression of 4 KB (AWS Developer Guide, "Constraints"). The other attributes
/// are compared by a read just before.
const COMPARED: usize = 90;

/// The attributes that a delete's condition compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compare {
    /// All attributes.
    All,
    /// Attributes that are neither documents nor sets: engines differ in how they compare these.
    Scalars,
}

/// The result of a move.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Moved {
    /// The item is at its target, and not at its old key any more.
    Done,
    /// Another item is at the target: this one. Nothing was changed.
    Taken(Box<Attributes>),
    /// The item was changed or deleted since it was read. Nothing was changed.
    Changed,
}

/// Moves `item` to `target`, for an adoption.
///
/// # Errors
/// [`WorkerError::Stopped`] when another writer uses the table: another item is at the target, or
/// the item was changed meanwhile.
pub(crate) async fn move_item(
    claim: &Claim,
    registry: &Registry,
    context: &ItemContext,
    item: &Attributes,
    target: &[u8],
) -> Result<(), WorkerError> {
    let table = &context.table.name;
    match try_move(claim, registry, context, item, target).await? {
        Moved::Done => Ok(()),
        Moved::Taken(_) => Err(WorkerError::Stopped(format!(
            "Another item already lies where the item {} of table {table} has to go, at {}. Somebody else writes to the table; \
             stop that, look at both items, and run this again",
            shown(&context.primary_key(item)),
            shown(&context.primary_key(&context.rekeyed(item, target))),
        ))),
        Moved::Changed => Err(WorkerError::Stopped(format!(
            "The item {} of table {table} changed while it was moved. Somebody else writes to the table; stop that and run this again",
            shown(&context.primary_key(item))
        ))),
    }
}

/// Moves `item` to `target`. An equal item at the target counts as its copy.
///
/// # Errors
/// The store's error, or that another worker has taken over.
pub(crate) async fn try_move(
    claim: &Claim,
    registry: &Registry,
    context: &ItemContext,
    item: &Attributes,
    target: &[u8],
) -> Result<Moved, ClaimError> {
    let copy = context.rekeyed(item, target);
    let put = json!({ "Put": {
        "TableName": context.table.name, "Item": copy, "ConditionExpression": "attribute_not_exists(#k)",
        "ExpressionAttributeNames": { "#k": context.table.key.partition.name },
    } });
    write_then_delete(claim, registry, context, item, &copy, put).await
}

/// Deletes `item` if the equal item under `kept` still exists.
///
/// # Errors
/// As [`try_move`].
pub(crate) async fn delete_copy(
    claim: &Claim,
    registry: &Registry,
    context: &ItemContext,
    item: &Attributes,
    kept: &[u8],
) -> Result<Moved, ClaimError> {
    let copy = context.rekeyed(item, kept);
    write_then_delete(claim, registry, context, item, &copy, is_there(context, &copy)).await
}

/// `first` is the action of the transaction on the key of `copy`.
async fn write_then_delete(
    claim: &Claim,
    registry: &Registry,
    context: &ItemContext,
    item: &Attributes,
    copy: &Attributes,
    mut first: Json,
) -> Result<Moved, ClaimError> {
    let mut compare = Compare::All;
    if others(context, item).count() > COMPARED
        && get(registry, context, item).await?.is_none_or(|found| !same(&found, item))
    {
        return Ok(Moved::Changed);
    }
    // At most one retry for each of: a lost answer, an existing copy, an engine that compares
    // differently.
    for _ in 0..4 {
        match claim.write(vec![first.clone(), delete(context, item, compare)]).await {
            Ok(Written::Done) => return Ok(Moved::Done),
            Ok(Written::Refused(_)) => {}
            Err(ClaimError::Store(error)) if error.outcome == Outcome::Unknown => {
                return match get(registry, context, item).await? {
                    None => Ok(Moved::Done),
                    Some(_) => Err(error.into()),
                };
            }
            Err(error) => return Err(error),
        }
        match (get(registry, context, copy).await?, get(registry, context, item).await?) {
            (Some(there), Some(here)) if same(&there, copy) && same(&here, item) => {
                if first.get("Put").is_some() {
                    first = is_there(context, copy);
                } else {
                    compare = Compare::Scalars;
                }
            }
            (Some(there), Some(_)) => return Ok(Moved::Taken(Box::new(there))),
            (None, Some(here)) if same(&here, item) && first.get("Put").is_some() => {
                compare = Compare::Scalars
            }
            _ => return Ok(Moved::Changed),
        }
    }
    Ok(Moved::Changed)
}

/// The check that an item exists under the primary key of `copy`.
fn is_there(context: &ItemContext, copy: &Attributes) -> Json {
    json!({ "ConditionCheck": {
        "TableName": context.table.name, "Key": context.primary_key(copy), "ConditionExpression": "attribute_exists(#k)",
        "ExpressionAttributeNames": { "#k": context.table.key.partition.name },
    } })
}

/// The deletion of an item on condition that it is unchanged.
fn delete(context: &ItemContext, item: &Attributes, compare: Compare) -> Json {
    let (mut names, mut values, mut terms) = (Map::new(), Map::new(), Vec::new());
    let compared = others(context, item).filter(|(_, value)| compare == Compare::All || is_scalar(value));
    names.insert("#k".to_owned(), json!(context.table.key.partition.name));
    terms.push("attribute_exists(#k)".to_owned());
    for (at, (name, value)) in compared.take(COMPARED).enumerate() {
        names.insert(format!("#a{at}"), json!(name));
        values.insert(format!(":a{at}"), value.clone());
        terms.push(format!("#a{at} = :a{at}"));
    }
    let mut delete = json!({
        "TableName": context.table.name, "Key": context.primary_key(item),
        "ConditionExpression": terms.join(" AND "), "ExpressionAttributeNames": names,
    });
    if !values.is_empty() {
        delete["ExpressionAttributeValues"] = Json::Object(values);
    }
    json!({ "Delete": delete })
}

/// The attributes of an item that are not its key.
fn others<'a>(
    context: &'a ItemContext,
    item: &'a Attributes,
) -> impl Iterator<Item = (&'a String, &'a Json)> {
    let key = &context.table.key;
    item.iter().filter(move |(name, _)| !key.has(name))
}

/// A strongly consistent read of the item under the primary key of `item`.
pub(crate) async fn get(
    registry: &Registry,
    context: &ItemContext,
    item: &Attributes,
) -> Result<Option<Attributes>, Error> {
    let body =
        json!({ "TableName": context.table.name, "Key": context.primary_key(item), "ConsistentRead": true });
    match registry.call_patiently(Operation::GetItem, body).await?["Item"].take() {
        Json::Object(found) => Ok(Some(found)),
        _ => Ok(None),
    }
}

fn is_scalar(value: &Json) -> bool {
    value
        .as_object()
        .is_some_and(|object| ["S", "N", "B", "BOOL", "NULL"].iter().any(|kind| object.contains_key(*kind)))
}
