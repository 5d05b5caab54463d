//! `Expected`, and `AttributeUpdates` beside it, as expressions on stored values: where `Expected`
//! has no form of its own for what it means of them.

use heatsink_dynamo::expression::{Bindings, Condition, Fresh, Kind, MAX_EXPRESSION, Update};
use heatsink_dynamo::{Error, json};

use super::{Placeholders, Unreadable, expected_test};
use crate::index_key::Spread;
use crate::request::{Changes, Request, quoted};

/// The parameters that the expressions are in the place of.
const REPLACED: [&str; 3] = ["Expected", "ConditionalOperator", "AttributeUpdates"];
/// What legacy parameters do not go with: the store refuses it.
const EXPRESSIONS: [&str; 4] =
    ["ConditionExpression", "UpdateExpression", "ExpressionAttributeNames", "ExpressionAttributeValues"];

/// The changes to a request with these logical `Expected` conditions; `None` where it is not valid:
/// the store refuses it.
///
/// # Errors
/// `ValidationException`, by name, for what cannot be said of stored values, and for an expression
/// longer than one may be.
pub(crate) fn expressions(
    request: &Request<'_>,
    conditions: &[u8],
    spread: &Spread<'_>,
) -> Result<Option<Changes>, Error> {
    if EXPRESSIONS.iter().any(|name| request.get(name).is_some()) {
        return Ok(None);
    }
    let Ok(condition) = condition(request, conditions) else { return Ok(None) };
    let update = match request.get("AttributeUpdates").map(Update::of_attribute_updates) {
        None => None,
        Some(Some(update)) => Some(spread.update(&update)?),
        Some(None) => return Ok(None),
    };
    let mut fresh = Fresh::avoiding(&Bindings::default());
    let mut changes: Changes = REPLACED.map(|name| (name, None)).into();
    let rendered = spread.condition(&condition)?.render(&mut fresh);
    if rendered.len() > MAX_EXPRESSION {
        return Err(Error::gateway_rejection(format!(
            "Expected mentions a key that a sharded table stores with shard suffixes. With stored values in it it is longer than the \
             {MAX_EXPRESSION} bytes that an expression may have"
        )));
    }
    changes.push(("ConditionExpression", Some(quoted(&rendered))));
    if let Some(update) = update.map(|update| update.render(&mut fresh)).filter(|text| !text.is_empty()) {
        changes.push(("UpdateExpression", Some(quoted(&update))));
    }
    let (names, values) = Bindings::default().rewritten(&[], &fresh);
    changes.extend([("ExpressionAttributeNames", names), ("ExpressionAttributeValues", values)]);
    Ok(Some(changes))
}

/// What `Expected` means of logical values.
fn condition(request: &Request<'_>, conditions: &[u8]) -> Result<Condition, Unreadable> {
    let join = match request.string("ConditionalOperator").map_err(|_| Unreadable)?.as_deref() {
        None | Some("AND") => " AND ",
        Some("OR") => " OR ",
        Some(_) => return Err(Unreadable),
    };
    let mut placeholders = Placeholders::new();
    let tests: Result<Vec<String>, Unreadable> = json::members(conditions)?
        .into_iter()
        .map(|(name, one)| expected_test(one, &name, &mut placeholders))
        .collect();
    let [names, values] = placeholders.finish();
    let bindings = Bindings::read(names.as_deref(), values.as_deref()).map_err(|_| Unreadable)?;
    Condition::parse(Kind::Condition, &tests?.join(join), &bindings).map_err(|_| Unreadable)
}
