//! Moves one item to another partition key, so that at every moment it exists at least once and a second try changes nothing.
//!
//! Copy, then delete. Not one transaction: readers are no concern while nobody else may touch the table, and a transaction costs
//! twice the capacity.

use heatsink_dynamo::{Code, Error, Operation, Outcome};
use serde_json::{Map, Value as Json, json};

use super::item::{Attributes, Ground, same};
use super::{AdoptError, shown};
use crate::registry::Registry;

/// The most attributes that a delete's condition compares. DynamoDB takes 300 operators in an expression of 4 KB (AWS Developer Guide,
/// "Constraints"); what is not compared there is compared in what the delete returns.
const COMPARED: usize = 90;

/// Moves `item` from where it lies to `target`.
///
/// # Errors
/// [`AdoptError::Failed`] when somebody else writes to the table: another item lies at the target, or the item changed meanwhile.
pub(crate) async fn move_item(
    registry: &Registry,
    ground: &Ground,
    item: &Attributes,
    target: &[u8],
) -> Result<(), AdoptError> {
    let table = &ground.table.name;
    let partition = &ground.table.key.partition.name;
    let copy = ground.rekeyed(item, target);
    let put = json!({
        "TableName": table, "Item": copy, "ConditionExpression": "attribute_not_exists(#k)", "ExpressionAttributeNames": { "#k": partition },
    });
    if let Err(error) = registry.call_patiently(Operation::PutItem, put).await {
        if error.code != Code::ConditionalCheckFailedException && error.outcome != Outcome::Unknown {
            return Err(error.into());
        }
        // A copy of an interrupted run, or of this call whose answer was lost; anything else is not ours to overwrite.
        match get(registry, ground, &copy).await? {
            Some(found) if same(&found, &copy) => {}
            Some(_) => {
                return Err(AdoptError::Failed(format!(
                    "Another item already lies where the item {} of table {table} has to go, at {}. Somebody else writes to the table; \
                     stop that, look at both items, and run this again",
                    shown(&ground.primary_key(item)),
                    shown(&ground.primary_key(&copy)),
                )));
            }
            None => return Err(error.into()),
        }
    }
    delete_unchanged(registry, ground, item, &copy).await
}

async fn delete_unchanged(
    registry: &Registry,
    ground: &Ground,
    item: &Attributes,
    copy: &Attributes,
) -> Result<(), AdoptError> {
    let table = &ground.table.name;
    let (mut names, mut values, mut terms) = (Map::new(), Map::new(), Vec::new());
    let primary = ground.primary_key(item);
    let others = item.iter().filter(|(name, value)| !primary.contains_key(*name) && is_scalar(value));
    names.insert("#k".to_owned(), json!(ground.table.key.partition.name));
    terms.push("attribute_exists(#k)".to_owned());
    for (at, (name, value)) in others.take(COMPARED).enumerate() {
        names.insert(format!("#a{at}"), json!(name));
        values.insert(format!(":a{at}"), value.clone());
        terms.push(format!("#a{at} = :a{at}"));
    }
    let mut delete = json!({
        "TableName": table, "Key": primary, "ReturnValues": "ALL_OLD",
        "ConditionExpression": terms.join(" AND "), "ExpressionAttributeNames": names,
    });
    if !values.is_empty() {
        delete["ExpressionAttributeValues"] = Json::Object(values);
    }
    let changed = || {
        AdoptError::Failed(format!(
            "The item {} of table {table} changed while it was moved. Somebody else writes to the table; stop that and run this again",
            shown(&primary)
        ))
    };
    match registry.call_patiently(Operation::DeleteItem, delete).await {
        Ok(mut answer) => match answer["Attributes"].take() {
            Json::Object(old) if same(&old, item) => Ok(()),
            Json::Object(old) => {
                // The newest value is in hand: it takes the copy's place before the fault is reported, so that nothing is lost.
                let newest = ground.rekeyed(&old, &ground.key(copy)?);
                registry
                    .call_patiently(Operation::PutItem, json!({ "TableName": table, "Item": newest }))
                    .await?;
                Err(changed())
            }
            _ => Err(changed()),
        },
        Err(error)
            if error.code == Code::ConditionalCheckFailedException || error.outcome == Outcome::Unknown =>
        {
            // Deleted already, by a run whose answer was lost; or changed.
            match get(registry, ground, item).await? {
                None => Ok(()),
                Some(found) if same(&found, item) => Err(error.into()),
                Some(_) => Err(changed()),
            }
        }
        Err(error) => Err(error.into()),
    }
}

async fn get(registry: &Registry, ground: &Ground, item: &Attributes) -> Result<Option<Attributes>, Error> {
    let body =
        json!({ "TableName": ground.table.name, "Key": ground.primary_key(item), "ConsistentRead": true });
    match registry.call_patiently(Operation::GetItem, body).await?["Item"].take() {
        Json::Object(found) => Ok(Some(found)),
        _ => Ok(None),
    }
}

/// Documents and sets are compared in what the delete returns: engines differ in how they compare them in conditions.
fn is_scalar(value: &Json) -> bool {
    value
        .as_object()
        .is_some_and(|object| ["S", "N", "B", "BOOL", "NULL"].iter().any(|kind| object.contains_key(*kind)))
}
