//! Brings one value of an index key to its new form, in place, on condition that it is unchanged
//! since it was read.
//!
//! Not here: which values, and when (`index_migration`, `value_reshard`).

use heatsink_control::claim::{Claim, ClaimError, Written};
use heatsink_dynamo::Code;
use serde_json::json;

use crate::error::WorkerError;
use crate::items::index_value::IndexValue;
use crate::items::item::{Attributes, ItemContext, shown, value};

/// That a value ends like a spread one and is, or becomes, a plain one: then nobody could tell.
pub(crate) fn looks_spread(index_value: &IndexValue<'_>) -> Option<String> {
    let IndexValue { key, stored, .. } = index_value;
    let plain = if key.comes_from_plain() { &stored[..] } else { key.logical(stored) };
    (key.has_plain_values() && heatsink_layout::codec::is_reserved(plain)).then(|| {
        let (name, plain) = (&key.attribute().name, index_value.text(plain));
        format!(
            "its {name} is {plain:?}, which ends in `#~` and a number like a spread value; change it first"
        )
    })
}

/// What became of a value that was to be brought to its new form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Brought {
    /// It had it.
    InForm,
    Done,
    /// Another writer changed the item meanwhile: then it has the new form already, or is gone.
    Changed,
}

/// Brings a value of an item to its new form.
///
/// # Errors
/// The store's; that another worker has taken over; and, by name, where the item cannot have that
/// form or was not written through a gateway.
pub(crate) async fn bring(
    claim: &Claim,
    context: &ItemContext,
    item: &Attributes,
    index_value: &IndexValue<'_>,
) -> Result<Brought, WorkerError> {
    let stop = |problem: &str| {
        let key = shown(&context.primary_key(item));
        let table = &context.table.name;
        WorkerError::Stopped(format!(
            "The item {key} of table {table}: {problem}. Run this again once that is fixed"
        ))
    };
    if index_value.key.goes_to_plain()
        && let Some(problem) = looks_spread(index_value)
    {
        // A client wrote it after the survey, and before its gateway had heard of the migration.
        return Err(stop(&problem));
    }
    let new = index_value.new.clone().map_err(|problem| stop(&problem))?;
    if index_value.stored == new {
        return Ok(Brought::InForm);
    }
    if !index_value.is_known() {
        let stored = index_value.text(&index_value.stored);
        let name = &index_value.key.attribute().name;
        return Err(stop(&format!("its {name} is {stored:?}, which nobody wrote through a gateway")));
    }
    match rewrite(claim, context, item, index_value, &new).await {
        Ok(Written::Done) => Ok(Brought::Done),
        Ok(Written::Refused(_)) => Ok(Brought::Changed),
        Err(ClaimError::Store(error)) if error.code == Code::ValidationException => {
            Err(stop(&error.to_string()))
        }
        Err(error) => Err(error.into()),
    }
}

/// Writes another form of an index key value to an item, on condition that the item still holds the
/// value that was read.
///
/// # Errors
/// The store's error, or that another worker has taken over.
pub(crate) async fn rewrite(
    claim: &Claim,
    context: &ItemContext,
    item: &Attributes,
    index_value: &IndexValue<'_>,
    new: &[u8],
) -> Result<Written, ClaimError> {
    let attribute = index_value.key.attribute();
    let update = json!({
        "TableName": context.table.name, "Key": context.primary_key(item),
        "UpdateExpression": "SET #a = :new", "ConditionExpression": "#a = :old", "ExpressionAttributeNames": { "#a": attribute.name },
        "ExpressionAttributeValues": { ":new": value(new, attribute.key_type), ":old": value(&index_value.stored, attribute.key_type) },
    });
    claim.write(vec![json!({ "Update": update })]).await
}
