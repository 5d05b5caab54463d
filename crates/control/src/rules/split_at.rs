//! The split points of a rule whose keys lie in ranges of their sort keys.

use std::borrow::Cow;
use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use heatsink_dynamo::{KeyType, KeyValue, Number};
use heatsink_layout::SplitPoints;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, Visitor};
use toml::Spanned;

use super::RulesError;
use super::fault::Fault;

/// A sort key as a rule writes it: a text, a number, `{ N = "…" }` for a number that TOML would
/// round, `{ B = "…" }` for binary in base64.
#[derive(Clone, Debug)]
pub(crate) struct SplitPoint(KeyValue<'static>);

/// The split points of a rule.
pub(super) fn of(points: Spanned<Vec<SplitPoint>>, fault: Fault<'_>) -> Result<SplitPoints, RulesError> {
    let span = points.span();
    let values = points.into_inner().into_iter().map(|point| point.0).collect();
    SplitPoints::new(values).map_err(|bad| fault(span, bad.to_string()))
}

/// Reads a split point as a person writes it on one line: the text, a number, or binary in base64,
/// as the sort key is.
///
/// # Errors
/// Why it is none, in words.
pub fn split_point(text: &str, key_type: KeyType) -> Result<KeyValue<'static>, String> {
    match key_type {
        KeyType::S => Ok(KeyValue::S(Cow::Owned(text.to_owned()))),
        KeyType::N => Number::parse(text)
            .map(KeyValue::N)
            .map_err(|_| format!("{text:?} is no number that a key can be")),
        KeyType::B => {
            let bytes = STANDARD.decode(text).map_err(|_| format!("{text:?} is no base64"))?;
            Ok(KeyValue::B(Cow::Owned(bytes)))
        }
    }
}

struct PointVisitor;

impl<'de> Visitor<'de> for PointVisitor {
    type Value = SplitPoint;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a sort key: a text, a number, { N = \"…\" }, or { B = \"…\" } in base64")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<SplitPoint, E> {
        split_point(text, KeyType::S).map(SplitPoint).map_err(E::custom)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<SplitPoint, E> {
        split_point(&number.to_string(), KeyType::N).map(SplitPoint).map_err(E::custom)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<SplitPoint, E> {
        split_point(&number.to_string(), KeyType::N).map(SplitPoint).map_err(E::custom)
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<SplitPoint, E> {
        split_point(&number.to_string(), KeyType::N).map(SplitPoint).map_err(E::custom)
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<SplitPoint, M::Error> {
        let Some((name, text)) = map.next_entry::<String, String>()? else {
            return Err(M::Error::custom("expected { N = \"…\" } or { B = \"…\" }, found an empty table"));
        };
        let key_type = match name.as_str() {
            "N" => KeyType::N,
            "B" => KeyType::B,
            "S" => KeyType::S,
            other => return Err(M::Error::unknown_field(other, &["S", "N", "B"])),
        };
        if let Some((more, _)) = map.next_entry::<String, String>()? {
            return Err(M::Error::custom(format!("expected one type, found {name} and {more}")));
        }
        split_point(&text, key_type).map(SplitPoint).map_err(M::Error::custom)
    }
}

impl<'de> Deserialize<'de> for SplitPoint {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(PointVisitor)
    }
}

impl JsonSchema for SplitPoint {
    fn schema_name() -> Cow<'static, str> {
        "SplitPoint".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let typed = |name: &str| {
            json_schema!({
                "type": "object", "properties": { name: { "type": "string" } }, "required": [name], "additionalProperties": false,
            })
        };
        json_schema!({
            "description": "A sort key: a text, a number, { N = \"…\" } for a number that TOML would round, { B = \"…\" } for binary in base64.",
            "anyOf": [{ "type": "string" }, { "type": "number" }, typed("S"), typed("N"), typed("B")],
        })
    }
}
