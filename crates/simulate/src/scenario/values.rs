//! Numbers with limits, so that an error names the line, the field and the allowed values.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::{Deserializer, Error, Unexpected, Visitor};

/// The most requests per second of a workload: far over any table, and a simulated second still
/// ends.
pub const MAX_RATE: f64 = 10_000_000.0;
/// The longest run: 31 days.
pub const MAX_SECONDS: u64 = 31 * 86_400;

/// Requests per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate(pub f64);

impl<'de> Deserialize<'de> for Rate {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct RateVisitor;
        impl Visitor<'_> for RateVisitor {
            type Value = Rate;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("requests per second, more than 0 and at most 10 million")
            }
            fn visit_f64<E: Error>(self, rate: f64) -> Result<Rate, E> {
                if rate > 0.0 && rate <= MAX_RATE {
                    return Ok(Rate(rate));
                }
                Err(E::invalid_value(Unexpected::Float(rate), &self))
            }
            fn visit_i64<E: Error>(self, rate: i64) -> Result<Rate, E> {
                self.visit_f64(rate as f64)
            }
            fn visit_u64<E: Error>(self, rate: u64) -> Result<Rate, E> {
                self.visit_f64(rate as f64)
            }
        }
        from.deserialize_any(RateVisitor)
    }
}

impl JsonSchema for Rate {
    fn schema_name() -> Cow<'static, str> {
        "Rate".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "description": "Requests per second.", "type": "number", "exclusiveMinimum": 0, "maximum": 10_000_000 })
    }
}

/// A length of time, in nanoseconds. Written as a whole number with a unit: `250ms`, `10s`, `15m`,
/// `24h`, `2d`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Length(pub u64);

impl Length {
    /// Whole seconds.
    pub const fn seconds(seconds: u64) -> Length {
        Length(seconds * 1_000_000_000)
    }

    /// In seconds.
    pub fn as_seconds(self) -> f64 {
        self.0 as f64 / 1e9
    }

    fn read(text: &str) -> Option<Length> {
        let digits = text.find(|digit: char| !digit.is_ascii_digit())?;
        let number: u64 = text[..digits].parse().ok()?;
        let unit = match &text[digits..] {
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            "d" => 86_400_000_000_000,
            _ => return None,
        };
        number.checked_mul(unit).filter(|length| *length <= Length::seconds(MAX_SECONDS).0).map(Length)
    }
}

impl<'de> Deserialize<'de> for Length {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct LengthVisitor;
        impl Visitor<'_> for LengthVisitor {
            type Value = Length;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(
                    "a length of time such as \"250ms\", \"10s\", \"15m\", \"24h\", \"2d\", at most 31 days",
                )
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Length, E> {
                Length::read(text).ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
            }
        }
        from.deserialize_any(LengthVisitor)
    }
}

impl JsonSchema for Length {
    fn schema_name() -> Cow<'static, str> {
        "Length".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A length of time: a whole number and ms, s, m, h or d; at most 31 days.",
            "type": "string", "pattern": "^[0-9]+(ms|s|m|h|d)$"
        })
    }
}

/// A whole number from 1 to `MAX`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Whole<const MAX: u64>(pub u64);

impl<'de, const MAX: u64> Deserialize<'de> for Whole<MAX> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct WholeVisitor(u64);
        impl Visitor<'_> for WholeVisitor {
            type Value = u64;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a whole number from 1 to {}", self.0)
            }
            fn visit_i64<E: Error>(self, value: i64) -> Result<u64, E> {
                let whole = u64::try_from(value).ok().filter(|value| (1..=self.0).contains(value));
                whole.ok_or_else(|| E::invalid_value(Unexpected::Signed(value), &self))
            }
            fn visit_u64<E: Error>(self, value: u64) -> Result<u64, E> {
                let whole = Some(value).filter(|value| (1..=self.0).contains(value));
                whole.ok_or_else(|| E::invalid_value(Unexpected::Unsigned(value), &self))
            }
        }
        from.deserialize_any(WholeVisitor(MAX)).map(Whole)
    }
}

impl<const MAX: u64> JsonSchema for Whole<MAX> {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        format!("WholeUpTo{MAX}").into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer", "minimum": 1, "maximum": MAX })
    }
}

/// A string, or a table in its place: serde's own untagged enums name neither the field nor what
/// was expected.
macro_rules! word_or_table {
    ($target:ident, $words:expr, $word:expr, $table:ty, $wrap:expr) => {
        impl<'de> serde::Deserialize<'de> for $target {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                struct Either;
                impl<'de> serde::de::Visitor<'de> for Either {
                    type Value = $target;
                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str($words)
                    }
                    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<$target, E> {
                        let word: fn(&str) -> Option<$target> = $word;
                        word(text).ok_or_else(|| E::invalid_value(serde::de::Unexpected::Str(text), &self))
                    }
                    fn visit_map<M: serde::de::MapAccess<'de>>(self, map: M) -> Result<$target, M::Error> {
                        <$table>::deserialize(serde::de::value::MapAccessDeserializer::new(map)).map($wrap)
                    }
                }
                from.deserialize_any(Either)
            }
        }
    };
}
pub(crate) use word_or_table;

/// A number, or a table in its place.
macro_rules! number_or_table {
    ($target:ident, $words:expr, $number:ty, $from:expr, $table:ty, $wrap:expr) => {
        impl<'de> serde::Deserialize<'de> for $target {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                struct Either;
                impl<'de> serde::de::Visitor<'de> for Either {
                    type Value = $target;
                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str($words)
                    }
                    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<$target, E> {
                        <$number>::deserialize(serde::de::value::I64Deserializer::new(value)).map($from)
                    }
                    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<$target, E> {
                        <$number>::deserialize(serde::de::value::F64Deserializer::new(value)).map($from)
                    }
                    fn visit_map<M: serde::de::MapAccess<'de>>(self, map: M) -> Result<$target, M::Error> {
                        <$table>::deserialize(serde::de::value::MapAccessDeserializer::new(map)).map($wrap)
                    }
                }
                from.deserialize_any(Either)
            }
        }
    };
}
pub(crate) use number_or_table;
