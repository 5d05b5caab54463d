//! `Expected` and `AttributeUpdates` that mention the spread key of an index. What is not of their
//! form stays, for the store to refuse. What has no form in `Expected` becomes an expression
//! (`crate::legacy`).

use heatsink_dynamo::json::{self, Malformed, Object};
use heatsink_dynamo::{Error, Value};
use heatsink_layout::IndexKey;

use super::{Spread, bytes_of};

/// `Expected`, said of stored values.
pub(crate) enum Stored {
    /// It does not mention a spread attribute.
    Unmentioned,
    /// In its own form.
    InForm(Vec<u8>),
    /// It has no form for it: an attribute has one condition, with an operator for which it has not
    /// the operands.
    NoForm,
}

/// What `Expected` becomes.
///
/// # Errors
/// `ValidationException` for a value that is the stored form of another one.
pub(crate) fn expected(conditions: &[u8], spread: &Spread<'_>) -> Result<Stored, Error> {
    let mut has_form = true;
    let stored = each(conditions, spread, |key, raw, spread| {
        let (form, stored) = match condition(key, raw, spread)? {
            Stored::Unmentioned => (true, None),
            Stored::InForm(stored) => (true, Some(stored)),
            Stored::NoForm => (false, None),
        };
        has_form &= form;
        Ok(stored)
    })?;
    Ok(match stored {
        _ if !has_form => Stored::NoForm,
        Some(stored) => Stored::InForm(stored),
        None => Stored::Unmentioned,
    })
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
    mut change: impl FnMut(&IndexKey, &[u8], &Spread<'_>) -> Result<Option<Vec<u8>>, Error>,
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

/// Whether a condition does not say that it expects nothing, which goes with no value: the store
/// refuses that.
fn expects(condition: &[u8]) -> bool {
    !json::member(condition, "Exists").is_ok_and(|exists| exists == Some(b"false"))
}

/// One expected condition, said of stored values; [`Stored::Unmentioned`] where it stays as it is.
fn condition(key: &IndexKey, condition: &[u8], spread: &Spread<'_>) -> Result<Stored, Error> {
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
    let Ok((values, operator, listed)) = read() else { return Ok(Stored::Unmentioned) };
    if values.iter().all(|value| bytes_of(key, value).is_none()) {
        return Ok(Stored::Unmentioned);
    }
    if operator.as_deref().is_some_and(|operator| !matches!(operator, "EQ" | "NE" | "IN")) {
        return Ok(Stored::NoForm);
    }
    values.iter().try_for_each(|value| spread.refuse_shard(key, value))?;
    let held: Vec<Vec<Value>> = values.iter().map(|value| spread.held(key, value)).collect();
    let stored: Vec<Vec<u8>> = held.concat().iter().map(Value::to_json).collect();
    let list = |stored: Vec<Vec<u8>>| [b"[", &*stored.join(&b","[..]), b"]"].concat();
    if stored.len() > values.len() {
        // A value has several stored forms. Malformed ones, which may have any number of values,
        // stay the store's to refuse.
        return Ok(match (operator.as_deref(), values.len()) {
            (Some("NE"), 1) => Stored::NoForm,
            (None | Some("EQ"), 1) | (Some("IN"), _) if expects(condition) => {
                let members = [
                    ("Value", None),
                    ("Exists", None),
                    ("ComparisonOperator", Some(&b"\"IN\""[..])),
                    ("AttributeValueList", Some(&list(stored)[..])),
                ];
                spliced(condition, &members)
            }
            _ => Stored::Unmentioned,
        });
    }
    let (member, stored) =
        if listed { ("AttributeValueList", list(stored)) } else { ("Value", stored.concat()) };
    Ok(spliced(condition, &[(member, Some(&stored))]))
}

fn spliced(condition: &[u8], members: &[(&str, Option<&[u8]>)]) -> Stored {
    json::splice_members(condition, members).map_or(Stored::Unmentioned, Stored::InForm)
}
