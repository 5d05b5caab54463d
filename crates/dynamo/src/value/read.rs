//! Values out of JSON.

use std::borrow::Cow;
use std::collections::BTreeSet;

use bytes::Bytes;

use super::{Item, Value, binary as base64};
use crate::json::{self, Malformed};
use crate::{Error, Number};

/// How many lists and maps may stand around a value (AWS, "Constraints").
pub const MAX_NESTING: usize = 32;

/// Reads an item: `{"pk":{"S":"a"}}`.
///
/// # Errors
/// `SerializationException` for malformed JSON, `ValidationException` for what is no attribute
/// value.
pub fn read_item(raw: &[u8]) -> Result<Item, Error> {
    item(raw, 0)
}

/// Reads only those attributes of an item that are named; the rest of it stays unread.
///
/// # Errors
/// As [`read_item`].
pub fn read_attributes(raw: &[u8], wanted: &BTreeSet<&str>) -> Result<Item, Error> {
    let mut item = Item::new();
    for (name, value) in json::members(raw).map_err(malformed)? {
        if wanted.contains(name.as_ref()) {
            item.insert(name.into_owned(), Value::read(value)?);
        }
    }
    Ok(item)
}

impl Value {
    /// Reads a value: `{"S":"a"}`. Members that are `null` do not count, as on AWS.
    ///
    /// # Errors
    /// As [`read_item`].
    pub fn read(raw: &[u8]) -> Result<Value, Error> {
        value(raw, 0)
    }
}

fn item(raw: &[u8], depth: usize) -> Result<Item, Error> {
    let members = json::members(raw).map_err(malformed)?;
    members.into_iter().map(|(name, raw)| Ok((name.into_owned(), value(raw, depth)?))).collect()
}

fn value(raw: &[u8], depth: usize) -> Result<Value, Error> {
    let members = json::members(raw).map_err(malformed)?;
    let mut members = members.into_iter().filter(|(_, value)| *value != b"null");
    let Some((kind, inner)) = members.next() else {
        return Err(Error::validation(
            "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes",
        ));
    };
    if members.next().is_some() {
        return Err(Error::validation(
            "Supplied AttributeValue has more than one datatypes set, must contain exactly one of the supported datatypes",
        ));
    }
    let nested = depth + 1;
    if matches!(kind.as_ref(), "L" | "M") && nested > MAX_NESTING {
        return Err(Error::validation(
            "Nesting Levels have exceeded supported limits: Attributes in the item have nested levels beyond supported limit",
        ));
    }
    Ok(match kind.as_ref() {
        "S" => Value::S(text(inner)?.into_owned()),
        "N" => Value::N(number(inner)?),
        "B" => Value::B(binary(inner)?),
        "BOOL" => Value::Bool(boolean(inner)?),
        "NULL" if boolean(inner)? => Value::Null,
        "NULL" => {
            return Err(Error::validation(
                "One or more parameter values were invalid: Null attribute value types must have the value of true",
            ));
        }
        "SS" => Value::Ss(set(inner, "string", |raw| text(raw).map(Cow::into_owned))?),
        "NS" => Value::Ns(number_set(inner)?),
        "BS" => Value::Bs(set(inner, "binary", binary)?),
        "L" => {
            let elements = json::elements(inner).map_err(malformed)?;
            Value::L(elements.into_iter().map(|raw| value(raw, nested)).collect::<Result<_, _>>()?)
        }
        "M" => Value::M(item(inner, nested)?),
        // Unknown types count as none.
        _ => {
            return Err(Error::validation(
                "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes",
            ));
        }
    })
}

fn text(raw: &[u8]) -> Result<Cow<'_, str>, Error> {
    json::string(raw).map_err(malformed)
}

fn number(raw: &[u8]) -> Result<String, Error> {
    let text = text(raw)?;
    Number::parse(&text)?;
    Ok(text.into_owned())
}

fn binary(raw: &[u8]) -> Result<Bytes, Error> {
    base64::decode(&text(raw)?)
}

fn boolean(raw: &[u8]) -> Result<bool, Error> {
    match raw {
        b"true" => Ok(true),
        b"false" => Ok(false),
        _ => Err(Error::serialization("Unexpected token received from parser")),
    }
}

fn set<T: Ord>(
    raw: &[u8],
    kind: &str,
    read: impl Fn(&[u8]) -> Result<T, Error>,
) -> Result<BTreeSet<T>, Error> {
    let elements = not_empty(raw, kind)?;
    let count = elements.len();
    let set: BTreeSet<T> = elements.into_iter().map(read).collect::<Result<_, _>>()?;
    if set.len() < count { Err(duplicates(raw)) } else { Ok(set) }
}

fn number_set(raw: &[u8]) -> Result<Vec<String>, Error> {
    let texts: Vec<String> = not_empty(raw, "number")?.into_iter().map(number).collect::<Result<_, _>>()?;
    if super::numbers(&texts).len() < texts.len() { Err(duplicates(raw)) } else { Ok(texts) }
}

fn not_empty<'a>(raw: &'a [u8], kind: &str) -> Result<Vec<&'a [u8]>, Error> {
    let elements = json::elements(raw).map_err(malformed)?;
    if elements.is_empty() {
        return Err(Error::validation(format!(
            "One or more parameter values were invalid: An {kind} set  may not be empty"
        )));
    }
    Ok(elements)
}

fn duplicates(raw: &[u8]) -> Error {
    let shown: Vec<Cow<'_, str>> = json::elements(raw)
        .unwrap_or_default()
        .into_iter()
        .filter_map(|raw| json::string(raw).ok())
        .collect();
    Error::validation(format!(
        "One or more parameter values were invalid: Input collection [{}] contains duplicates.",
        shown.join(", ")
    ))
}

fn malformed(_: Malformed) -> Error {
    Error::serialization("Unexpected value type in payload")
}
