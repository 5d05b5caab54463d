//! JSON in which no object has a member twice. Readers differ in which of two they believe: what is
//! judged has to be what is done.
//!
//! Nor has it more numbers, lists, and what else is no text and no object, than requests have: they
//! take a hundred times their text in memory, and whoever makes room for a request counts none
//! (`heatsink_dynamo::memory_estimate`).

use std::cell::Cell;
use std::fmt;

use serde::Deserializer;
use serde::de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value as Json};

/// How many values that are no texts and no objects stand in a request beside one for each object:
/// attribute values are objects, and have one at most.
const BARE: usize = 1_000;

/// Reads the text; `None` if it is no JSON, has a member twice, or too many values of few bytes.
pub(crate) fn read(text: &[u8]) -> Option<Json> {
    let left = Cell::new(BARE);
    let mut reader = serde_json::Deserializer::from_slice(text);
    let json = Strict { left: &left }.deserialize(&mut reader).ok()?;
    reader.end().ok().map(|()| json)
}

/// Counts down the bare values that may come.
#[derive(Clone, Copy)]
struct Strict<'a> {
    left: &'a Cell<usize>,
}

impl Strict<'_> {
    fn bare<E: serde::de::Error>(self) -> Result<(), E> {
        let left = self.left.get().checked_sub(1).ok_or_else(|| E::custom("too many bare values"))?;
        self.left.set(left);
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Strict<'_> {
    type Value = Json;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Json, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict<'_> {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON without repeated members")
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<Json, E> {
        self.bare().map(|()| Json::Null)
    }

    fn visit_bool<E: serde::de::Error>(self, value: bool) -> Result<Json, E> {
        self.bare().map(|()| Json::Bool(value))
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Json, E> {
        self.bare().map(|()| Json::from(value))
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Json, E> {
        self.bare().map(|()| Json::from(value))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Json, E> {
        self.bare().map(|()| Number::from_f64(value).map_or(Json::Null, Json::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Json, E> {
        Ok(Json::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Json, E> {
        Ok(Json::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Json, A::Error> {
        self.bare()?;
        let mut elements = Vec::new();
        while let Some(element) = list.next_element_seed(self)? {
            elements.push(element);
        }
        Ok(Json::Array(elements))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Json, A::Error> {
        self.left.set(self.left.get().saturating_add(1));
        let mut members = Map::new();
        while let Some(name) = map.next_key::<String>()? {
            let value = map.next_value_seed(self)?;
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

    #[test]
    fn what_takes_far_more_memory_than_text_is_not_read() {
        let list = |one: &str| format!(r#"{{"a":[{}]}}"#, vec![one; 5_000].join(","));
        let members = |value: &str| {
            let members: Vec<String> = (0..5_000).map(|at| format!("\"m{at}\":{value}")).collect();
            format!("{{\"Item\":{{{}}}}}", members.join(","))
        };
        // As requests are: texts, and what stands alone in an object of its own.
        for text in
            [list("\"x\""), list(r#"{"BOOL":true}"#), list(r#"{"L":[]}"#), members(r#"{"NULL":true}"#)]
        {
            assert!(read(text.as_bytes()).is_some(), "{}", &text[..50]);
        }
        for text in [list("0"), list("[]"), list("[[0]]"), list("null"), members("0"), members("[]")] {
            assert!(read(text.as_bytes()).is_none(), "{}", &text[..50]);
        }
    }
}
