//! Whole numbers of a rules file, within bounds that an error names.

use std::fmt;
use std::ops::RangeInclusive;

use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::{Deserializer, Visitor};
use toml::Spanned;

use super::RulesError;
use super::fault::Fault;

/// The most shards of a rule. A gather sends one request to every shard and pays at least half a
/// read unit for each, so a page over 1,000 shards costs 500 units before it returns anything.
/// 1,000 shards already take a million write units per second on one key.
pub const MAX_SHARDS: u16 = 1_000;

#[derive(Clone, Copy, Debug, JsonSchema)]
pub(crate) struct Shards(#[schemars(range(min = 1, max = 1000))] pub u16);

#[derive(Clone, Copy, Debug, JsonSchema)]
pub(crate) struct PartNumber(#[schemars(range(min = 0, max = 1023))] pub u16);

/// A sort key has at most 1,024 bytes, so at most 1,025 parts; the last of them would be empty.
const MAX_PART: u16 = 1_023;

/// How old an answer may be that is given again, in milliseconds.
const AGES: RangeInclusive<u16> = 1..=10_000;

/// How old an answer may be that is given again.
pub(super) fn max_age(age: &Spanned<u16>, fault: Fault<'_>) -> Result<u16, RulesError> {
    let (least, most) = (AGES.start(), AGES.end());
    match *age.get_ref() {
        millis if AGES.contains(&millis) => Ok(millis),
        other => {
            let problem = format!("expected a number of milliseconds from {least} to {most}, found {other}");
            Err(fault(age.span(), problem))
        }
    }
}

/// A whole number within bounds, with errors that name the bounds.
struct Whole {
    min: u16,
    max: u16,
}

impl Visitor<'_> for Whole {
    type Value = u16;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a whole number from {} to {}", self.min, self.max)
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<u16, E> {
        let within = u16::try_from(value).ok().filter(|value| (self.min..=self.max).contains(value));
        within.ok_or_else(|| E::invalid_value(serde::de::Unexpected::Signed(value), &self))
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<u16, E> {
        let within = u16::try_from(value).ok().filter(|value| (self.min..=self.max).contains(value));
        within.ok_or_else(|| E::invalid_value(serde::de::Unexpected::Unsigned(value), &self))
    }
}

impl<'de> Deserialize<'de> for Shards {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Whole { min: 1, max: MAX_SHARDS }).map(Shards)
    }
}

impl<'de> Deserialize<'de> for PartNumber {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Whole { min: 0, max: MAX_PART }).map(PartNumber)
    }
}
