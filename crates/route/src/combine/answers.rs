//! The answers of writes that were combined, told apart. Each is told its part of what the one call
//! consumed: all parts together are that.

use std::collections::HashMap;

use bytes::Bytes;
use heatsink_dynamo::json::{self, Malformed, Object};
use heatsink_dynamo::{Error, Outcome, Value};
use serde_json::Value as Json;

use super::attribute::Attribute;
use super::read::{Asks, Capacity, Values};

/// One of the writes.
#[derive(Clone, Debug)]
pub(super) struct Member {
    pub(super) asks: Asks,
    /// The attributes that it changes, by their places, and the numbers of its changes.
    pub(super) changes: Vec<(usize, usize)>,
}

/// The answers of all writes, in order.
pub(super) fn tell_apart(
    members: &[Member],
    all: &[Attribute],
    answer: &Bytes,
) -> Result<Vec<Result<Bytes, Error>>, Malformed> {
    let [attributes, capacity] = json::attributes_of(answer, ["Attributes", "ConsumedCapacity"])?;
    let stored = attributes.map_or(Ok(Vec::new()), json::members)?;
    let mut last = HashMap::new();
    for (name, raw) in &stored {
        last.insert(&**name, Value::read(raw).map_err(|_| Malformed)?);
    }
    let [total, indexes] = parts(capacity, members.len())?;
    let mut answers = Vec::with_capacity(members.len());
    // The number of the last change of each attribute so far.
    let mut so_far = vec![None; all.len()];
    for member in members {
        for (attribute, number) in &member.changes {
            if let Some(at) = so_far.get_mut(*attribute) {
                *at = Some(*number);
            }
        }
        let mut told = Object::new();
        match shown(all, member, &so_far, &last) {
            None => {}
            Some(Some(values)) => {
                let mut attributes = Object::new();
                let of = |name: &str| values.iter().find(|(one, _)| *one == name).map(|(_, value)| value);
                for (name, raw) in &stored {
                    match of(name) {
                        Some(value) => attributes.raw(name, &value.to_json()),
                        None if member.asks.values == Values::All => attributes.raw(name, raw),
                        None => &mut attributes,
                    };
                }
                told.raw("Attributes", &attributes.finish());
            }
            Some(None) => {
                answers.push(Err(no_value()));
                continue;
            }
        }
        let part = match member.asks.capacity {
            Capacity::None => None,
            Capacity::Total => total.as_deref(),
            Capacity::Indexes => indexes.as_deref(),
        };
        if let Some(part) = part {
            told.raw("ConsumedCapacity", part);
        }
        answers.push(Ok(Bytes::from(told.finish())));
    }
    Ok(answers)
}

/// The values after a write of the attributes that it is shown; `None` where it asks for none, and
/// `Some(None)` where one of them is no value.
#[allow(clippy::option_option, reason = "nothing asked for, and nothing that can be told")]
fn shown<'c>(
    all: &'c [Attribute],
    member: &Member,
    so_far: &[Option<usize>],
    last: &HashMap<&str, Value>,
) -> Option<Option<Vec<(&'c str, Value)>>> {
    let value = |at: usize, number: usize| {
        let attribute = all.get(at)?;
        Some((&*attribute.name, attribute.value(number, last.get(&*attribute.name)?)?))
    };
    match member.asks.values {
        Values::None => None,
        Values::Updated => Some(member.changes.iter().map(|(at, number)| value(*at, *number)).collect()),
        Values::All => {
            let changed = so_far.iter().enumerate().filter_map(|(at, number)| Some((at, (*number)?)));
            Some(changed.map(|(at, number)| value(at, number)).collect())
        }
    }
}

/// One of `count` parts of what the call consumed, as TOTAL and as INDEXES tell it.
fn parts(capacity: Option<&[u8]>, count: usize) -> Result<[Option<Vec<u8>>; 2], Malformed> {
    let Some(capacity) = capacity else { return Ok([None, None]) };
    let mut all: Json = serde_json::from_slice(capacity).map_err(|_| Malformed)?;
    divide(&mut all, f64::from(u32::try_from(count).unwrap_or(u32::MAX)));
    let indexes = all.to_string().into_bytes();
    if let Json::Object(members) = &mut all {
        for apart in ["Table", "LocalSecondaryIndexes", "GlobalSecondaryIndexes"] {
            members.remove(apart);
        }
    }
    Ok([Some(all.to_string().into_bytes()), Some(indexes)])
}

fn divide(json: &mut Json, by: f64) {
    match json {
        Json::Object(members) => members.values_mut().for_each(|member| divide(member, by)),
        Json::Number(units) => {
            if let Some(part) = units.as_f64() {
                *json = Json::from(part / by);
            }
        }
        _ => {}
    }
}

/// A number of more than 38 digits, between two that have fewer.
fn no_value() -> Error {
    Error::unavailable(
        "The write was carried out as one with others of its item; the number that it left in between has too many digits to be told",
        Outcome::Unknown,
    )
}
