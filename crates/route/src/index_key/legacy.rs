//! `Expected` and `AttributeUpdates` that mention the spread key of an index. What is not of their form stays, for the store to
//! refuse.

use heatsink_dynamo::json::{self, Malformed, Object};
use heatsink_dynamo::{Error, Value};
use heatsink_layout::IndexKey;

use super::{Spread, bytes_of, cannot};

/// `Expected`, said of stored values; `None` if it does not mention a spread attribute.
///
/// # Errors
/// `ValidationException`, by name, for a comparison that cannot be said of stored values.
pub(crate) fn expected(conditions: &[u8], spread: &Spread<'_>) -> Result<Option<Vec<u8>>, Error> {
    each(conditions, spread, condition)
}

/// `AttributeUpdates` that store what it puts; `None` if it does not mention a spread attribute.
///
/// # Errors
/// `ValidationException` for a value that its suffix makes too long.
pub(crate) fn updates(updates: &[u8], spread: &Spread<'_>) -> Result<Option<Vec<u8>>, Error> {
    each(updates, spread, |key, update, spread| {
        let Ok([Some(value)]) = json::attributes_of(update, ["Value"]) else { return Ok(None) };
        let Ok(value) = Value::read(value) else { return Ok(None) };
        let stored = spread.checked(key, &value)?;
        Ok(json::splice_members(update, &[("Value", Some(&stored.to_json()))]).ok())
    })
}

/// A map by attribute names with those of spread attributes changed.
fn each(
    map: &[u8],
    spread: &Spread<'_>,
    change: impl Fn(&IndexKey, &[u8], &Spread<'_>) -> Result<Option<Vec<u8>>, Error>,
) -> Result<Option<Vec<u8>>, Error> {
    let Ok(members) = json::members(map) else { return Ok(None) };
    let mut changed = Object::new();
    let mut any = false;
    for (name, value) in members {
        let new = match spread.table.index_key(&name) {
            Some(key) => change(key, value, spread)?,
            None => None,
        };
        any |= new.is_some();
        changed.raw(&name, new.as_deref().unwrap_or(value));
    }
    Ok(any.then(|| changed.finish()))
}

/// Whether a condition does not say that it expects nothing, which goes with no value: the store refuses that.
fn expects(condition: &[u8]) -> bool {
    !json::member(condition, "Exists").is_ok_and(|exists| exists == Some(b"false"))
}

/// One expected condition, said of stored values; `None` where it stays as it is.
fn condition(key: &IndexKey, condition: &[u8], spread: &Spread<'_>) -> Result<Option<Vec<u8>>, Error> {
    let read = || -> Result<_, Malformed> {
        let [value, operator, list] =
            json::attributes_of(condition, ["Value", "ComparisonOperator", "AttributeValueList"])?
                .map(|raw| raw.filter(|raw| *raw != b"null"));
        let list = list.map(json::elements).transpose()?;
        let values: Result<Vec<Value>, _> =
            value.into_iter().chain(list.iter().flatten().copied()).map(Value::read).collect();
        let operator = operator.map(json::string).transpose()?;
        Ok((values.map_err(|_| Malformed)?, operator, list.is_some()))
    };
    let Ok((values, operator, listed)) = read() else { return Ok(None) };
    if values.iter().all(|value| bytes_of(key, value).is_none()) {
        return Ok(None);
    }
    if let Some(operator) = operator.as_deref().filter(|operator| !matches!(*operator, "EQ" | "NE" | "IN")) {
        let name = &key.attribute().name;
        return Err(cannot(&format!("Expected with {operator} of {name}"), name));
    }
    values.iter().try_for_each(|value| spread.refuse_shard(key, value))?;
    let held: Vec<Vec<Value>> = values.iter().map(|value| spread.held(key, value)).collect();
    let stored: Vec<Vec<u8>> = held.concat().iter().map(Value::to_json).collect();
    let list = |stored: Vec<Vec<u8>>| [b"[", &*stored.join(&b","[..]), b"]"].concat();
    if stored.len() > values.len() {
        // It migrates: a value has two stored forms. Malformed ones, which may have any number of values, stay the store's to refuse.
        return match (operator.as_deref(), values.len()) {
            (Some("NE"), _) => {
                let name = &key.attribute().name;
                Err(cannot(
                    &format!("Expected with NE of {name}, while `heatsink adopt` is at work on it,"),
                    name,
                ))
            }
            (None | Some("EQ"), 1) | (Some("IN"), _) if expects(condition) => {
                let members = [
                    ("Value", None),
                    ("Exists", None),
                    ("ComparisonOperator", Some(&b"\"IN\""[..])),
                    ("AttributeValueList", Some(&list(stored)[..])),
                ];
                Ok(json::splice_members(condition, &members).ok())
            }
            _ => Ok(None),
        };
    }
    let (member, stored) =
        if listed { ("AttributeValueList", list(stored)) } else { ("Value", stored.concat()) };
    Ok(json::splice_members(condition, &[(member, Some(&stored))]).ok())
}
