//! Moves one item to another partition key, in one transaction: put there if nothing is there, deleted here if it is what was read.
//!
//! A reader could see neither or both of them in the middle of the transaction, so this is for items that nobody reads: those of a table that is
//! being adopted, and misplaced ones, which requests do not find (`verify`).

use heatsink_control::claim::{Claim, ClaimError, Written};
use heatsink_control::registry::Registry;
use heatsink_dynamo::{Error, Operation, Outcome};
use serde_json::{Map, Value as Json, json};

use crate::item::{Attributes, TableContext, same};
use crate::types::{AdoptError, shown};

/// The most attributes that a delete's condition compares. DynamoDB takes 300 operators in an expression of 4 KB (AWS Developer Guide,
/// "Constraints"); what is not compared there is compared with what is read just before.
const COMPARED: usize = 90;

/// Which attributes a delete's condition compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compare {
    /// All of them.
    All,
    /// Those that are no documents and no sets: engines differ in how they compare these.
    Scalars,
}

/// What became of a move.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Moved {
    /// It lies there now, and not here any more.
    Done,
    /// Another item lies there: this one. Nothing was changed.
    Taken(Box<Attributes>),
    /// The item is not what was read any more, or gone. Nothing was changed.
    Changed,
}

/// Moves `item` from where it lies to `target`, for adoption.
///
/// # Errors
/// [`AdoptError::Failed`] when somebody else writes to the table: another item lies at the target, or the item changed meanwhile.
pub(crate) async fn move_item(
    claim: &Claim,
    registry: &Registry,
    context: &TableContext,
    item: &Attributes,
    target: &[u8],
) -> Result<(), AdoptError> {
    let table = &context.table.name;
    match try_move(claim, registry, context, item, target).await? {
        Moved::Done => Ok(()),
        Moved::Taken(_) => Err(AdoptError::Failed(format!(
            "Another item already lies where the item {} of table {table} has to go, at {}. Somebody else writes to the table; \
             stop that, look at both items, and run this again",
            shown(&context.primary_key(item)),
            shown(&context.primary_key(&context.rekeyed(item, target))),
        ))),
        Moved::Changed => Err(AdoptError::Failed(format!(
            "The item {} of table {table} changed while it was moved. Somebody else writes to the table; stop that and run this again",
            shown(&context.primary_key(item))
        ))),
    }
}

/// Moves `item` from where it lies to `target`. An equal item that lies there already counts as its copy.
///
/// # Errors
/// The store's, and that another worker has taken over.
pub(crate) async fn try_move(
    claim: &Claim,
    registry: &Registry,
    context: &TableContext,
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

/// Deletes `item` where the equal item under `kept` is still there.
///
/// # Errors
/// As [`try_move`].
pub(crate) async fn delete_copy(
    claim: &Claim,
    registry: &Registry,
    context: &TableContext,
    item: &Attributes,
    kept: &[u8],
) -> Result<Moved, ClaimError> {
    let copy = context.rekeyed(item, kept);
    write_then_delete(claim, registry, context, item, &copy, is_there(context, &copy)).await
}

/// `first` is what the transaction does at the place of `copy`.
async fn write_then_delete(
    claim: &Claim,
    registry: &Registry,
    context: &TableContext,
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
    // At most once more for each of: an answer that was lost, a copy that is there, an engine that compares otherwise.
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

/// The check that an item lies under the primary key of `copy`.
fn is_there(context: &TableContext, copy: &Attributes) -> Json {
    json!({ "ConditionCheck": {
        "TableName": context.table.name, "Key": context.primary_key(copy), "ConditionExpression": "attribute_exists(#k)",
        "ExpressionAttributeNames": { "#k": context.table.key.partition.name },
    } })
}

/// The deletion of an item that still is what was read.
fn delete(context: &TableContext, item: &Attributes, compare: Compare) -> Json {
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
    context: &'a TableContext,
    item: &'a Attributes,
) -> impl Iterator<Item = (&'a String, &'a Json)> {
    let key = &context.table.key;
    item.iter().filter(move |(name, _)| !key.has(name))
}

/// The item under the primary key of `item`, read strongly.
pub(crate) async fn get(
    registry: &Registry,
    context: &TableContext,
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
