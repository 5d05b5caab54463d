//! Expressions of writes that read the partition key: the store would compare the physical key, so
//! the logical one is put in as a literal. What they say of the spread keys of indexes becomes what
//! it means for stored values (`index_key`).
//!
//! Not here: filters, which meet many keys and are evaluated on decoded items (`filter`, `query`).

use heatsink_dynamo::expression::{
    Bindings, Checks, Condition, Fresh, Kind, MAX_EXPRESSION, Update, may_mention,
};
use heatsink_dynamo::{Error, json};
use heatsink_layout::Table;

use crate::index_key::Spread;
use crate::key::{Located, literal};
use crate::request::{Changes, Request};

const NAMES: &str = "ExpressionAttributeNames";
const VALUES: &str = "ExpressionAttributeValues";
const CONDITION: &str = "ConditionExpression";
const UPDATE: &str = "UpdateExpression";

/// What becomes of a write's expressions.
pub(crate) enum Rewritten {
    /// They neither read nor write a key that is stored otherwise than it was sent.
    Unchanged,
    /// The store refuses them for certain: they write a key attribute, or bind nothing.
    Invalid,
    /// Members to set, or to take out.
    Changed(Changes),
    /// An expression means nothing here: the error is the answer, unless the store has words of its
    /// own for it.
    Meaningless(Error),
}

/// Rewrites `ConditionExpression` and `UpdateExpression` for an item whose logical key is known.
///
/// # Errors
/// `ValidationException` for an expression that the literal makes too long.
pub(crate) fn rewrite(
    request: &Request<'_>,
    table: &Table,
    located: &Located<'_>,
) -> Result<Rewritten, Error> {
    if located.affixes.is_empty() && table.index_keys().is_empty() {
        return Ok(Rewritten::Unchanged);
    }
    let partition = &table.key.partition;
    let (condition, update) = (request.string(CONDITION)?, request.string(UPDATE)?);
    let names = request.get(NAMES);
    let mention = |text: &str| table.stored_otherwise().any(|name| may_mention(text, names, name));
    if !condition.as_deref().is_some_and(mention) && !update.as_deref().is_some_and(mention) {
        return Ok(Rewritten::Unchanged);
    }
    let empty = |raw: &[u8]| json::members(raw).is_ok_and(|members| members.is_empty());
    if [names, request.get(VALUES)].into_iter().flatten().any(empty) {
        return Ok(Rewritten::Invalid);
    }
    let bindings = Bindings::read(names, request.get(VALUES))?;
    let literal = literal(partition.key_type, &located.partition.bytes);
    let mut fresh = Fresh::avoiding(&bindings);
    let (mut kept, mut changes) = (Vec::new(), Vec::new());
    let parsed_update = update.as_deref().map(|text| Update::parse(text, &bindings)).transpose();
    let read = |text: &str, checks| Condition::read(Kind::Condition, text, &bindings, checks);
    let parsed = condition.as_deref().map(|text| read(text, Checks::Meaning)).transpose();
    let (parsed_update, parsed) = match (parsed_update, parsed) {
        (Ok(update), Ok(condition)) => (update, condition),
        (Err(error), _) | (_, Err(error)) => return Ok(Rewritten::Meaningless(error)),
    };
    if parsed_update.as_ref().is_some_and(|update| update.writes(&partition.name)) {
        return Ok(Rewritten::Invalid);
    }
    let spread = Spread::of(table, located);
    if let (Some(text), Some(parsed)) = (condition.as_deref(), parsed) {
        let mut replaced = parsed.substitute(&partition.name, &literal);
        if let Some(spread) = &spread {
            replaced = spread.condition(&replaced)?;
        }
        if replaced == parsed {
            kept.push(text);
        } else if read(text, Checks::All).is_ok() {
            changes.push((CONDITION, replaced.render(&mut fresh)));
        } else {
            // The store may take what the checks here do not. It decides: it gets the text too,
            // where it changes nothing.
            let known = always(text, &fresh.name(&partition.name));
            kept.push(text);
            changes.push((CONDITION, format!("({known}) AND ({})", replaced.render(&mut fresh))));
        }
    }
    if let (Some(text), Some(parsed)) = (update.as_deref(), parsed_update) {
        let mut replaced = parsed.substitute(&partition.name, &literal);
        if let Some(spread) = &spread {
            replaced = spread.update(&replaced)?;
        }
        if replaced == parsed {
            kept.push(text);
        } else {
            changes.push((UPDATE, replaced.render(&mut fresh)));
        }
    }
    if changes.is_empty() {
        return Ok(Rewritten::Unchanged);
    }
    let sent: Vec<&str> = [condition.as_deref(), update.as_deref()].into_iter().flatten().collect();
    // The store refuses those that nothing uses, so it must see them.
    kept.extend(bindings.unused(&sent));
    finish(changes, bindings.rewritten(&kept, &fresh)).map(Rewritten::Changed)
}

/// A condition that the store reads whole and that holds for every item. Without parentheses around
/// the text, since DynamoDB refuses redundant ones and OR binds least.
fn always(text: &str, name: &str) -> String {
    format!("{text} OR attribute_exists({name}) OR attribute_not_exists({name})")
}

/// The changed members: the expressions, and what their placeholders stand for now.
fn finish(
    changes: Vec<(&'static str, String)>,
    (names, values): (Option<Vec<u8>>, Option<Vec<u8>>),
) -> Result<Changes, Error> {
    let mut members = vec![(NAMES, names), (VALUES, values)];
    for (parameter, text) in changes {
        if text.len() > MAX_EXPRESSION {
            return Err(Error::gateway_rejection(format!(
                "Invalid {parameter}: it mentions a key that a sharded table stores with shard suffixes, and with stored values in it it is \
                 longer than the {MAX_EXPRESSION} bytes that an expression may have"
            )));
        }
        let mut quoted = Vec::with_capacity(text.len() + 2);
        json::write_string(&mut quoted, &text);
        members.push((parameter, Some(quoted)));
    }
    Ok(members)
}
