//! JSON in which no object has a member twice. Readers differ in which of two they believe: what is
//! judged has to be what is done.

use std::fmt;

use serde::Deserializer;
use serde::de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value as Json};

/// Reads the text; `None` if it is no JSON, or has a member twice.
pub(crate) fn read(text: &[u8]) -> Option<Json> {
    let mut reader = serde_json::Deserializer::from_slice(text);
    let json = Strict.deserialize(&mut reader).ok()?;
    reader.end().ok().map(|()| json)
}

#[derive(Clone, Copy)]
struct Strict;

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Json;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Json, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON without repeated members")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
        Ok(Json::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Json, E> {
        Ok(Json::from(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Json, E> {
        Ok(Json::from(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Json, E> {
        Ok(Number::from_f64(value).map_or(Json::Null, Json::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Json, E> {
        Ok(Json::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Json, E> {
        Ok(Json::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Json, A::Error> {
        let mut elements = Vec::new();
        while let Some(element) = list.next_element_seed(Strict)? {
            elements.push(element);
        }
        Ok(Json::Array(elements))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Json, A::Error> {
        let mut members = Map::new();
        while let Some(name) = map.next_key::<String>()? {
            let value = map.next_value_seed(Strict)?;
            if members.insert(name, value).is_some() {
                return Err(A::Error::custom("a member stands twice"));
            }
        }
        Ok(Json::Object(members))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_member_stands_once() {
        let text = br#"{"a":{"b":[1,-2,0.5,"x",null,true]}}"#;
        assert_eq!(read(text), Some(json!({ "a": { "b": [1, -2, 0.5, "x", null, true] } })));
        for text in [
            &br#"{"a":1,"a":1}"#[..],
            br#"{"a":{"b":1,"b":2}}"#,
            br#"[{"a":1,"\u0061":2}]"#,
            b"{",
            b"{} {}",
            b"\"\\ud800\"",
            b"\"\xff\"",
        ] {
            assert_eq!(read(text), None, "{}", String::from_utf8_lossy(text));
        }
    }
}
