//! The sort key of an item, as layouts take it.
//!
//! Equal sort keys must meet in one shard however they were written, so numbers are hashed in a
//! canonical text of their value. That text is this file's own and never changes: stored items are
//! found by it.

use std::borrow::Cow;

use heatsink_dynamo::{KeyValue, Number};

/// The value of a sort key attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SortKey<'a> {
    /// A string.
    S(&'a str),
    /// A number, as text; any spelling of the same value gives the same shard.
    N(&'a str),
    /// Binary, decoded from base64.
    B(&'a [u8]),
}

impl<'a> SortKey<'a> {
    /// The bytes that are hashed: UTF-8 of a string, the bytes of a binary, the canonical text of a
    /// number.
    pub(crate) fn canonical(self) -> Cow<'a, [u8]> {
        match self {
            SortKey::S(text) => Cow::Borrowed(text.as_bytes()),
            SortKey::B(bytes) => Cow::Borrowed(bytes),
            SortKey::N(text) => Cow::Owned(canonical_number(text).into_bytes()),
        }
    }

    /// The least and the greatest number of shards, up to `most`, with which an item lies in
    /// `shard` by its whole sort key; with all numbers between them it does, too. `None` if it does
    /// with none.
    pub fn shard_counts(self, shard: u16, most: u16) -> Option<(u16, u16)> {
        crate::hash::jump_xxh3_counts(&self.canonical(), shard, most)
    }

    /// The value, as keys are ordered; `None` for a number that is none.
    pub fn value(self) -> Option<KeyValue<'a>> {
        match self {
            SortKey::S(text) => Some(KeyValue::S(Cow::Borrowed(text))),
            SortKey::N(text) => Number::parse(text).ok().map(KeyValue::N),
            SortKey::B(bytes) => Some(KeyValue::B(Cow::Borrowed(bytes))),
        }
    }

    /// The hash that shards by the whole sort key follow from
    /// ([`jump_of`](crate::hash::jump_of)).
    pub fn xxh3(self) -> u64 {
        xxhash_rust::xxh3::xxh3_64(&self.canonical())
    }

    /// What code that shards by hand hashes: a number as its plain decimal digits (`1718000000`,
    /// `12.5`), as `str()` gives them.
    pub(crate) fn plain(self) -> Cow<'a, [u8]> {
        match self {
            SortKey::S(text) => Cow::Borrowed(text.as_bytes()),
            SortKey::B(bytes) => Cow::Borrowed(bytes),
            SortKey::N(text) => match Number::parse(text) {
                Ok(number) => Cow::Owned(number.to_string().into_bytes()),
                Err(_) => Cow::Borrowed(text.as_bytes()),
            },
        }
    }
}

impl std::fmt::Display for SortKey<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            SortKey::S(text) | SortKey::N(text) => f.write_str(text),
            SortKey::B(bytes) => write!(f, "{}", bytes.escape_ascii()),
        }
    }
}

/// A number as sign, digits without zeros at either end, `e`, and the power of ten of the last
/// digit: `-12.50` is `-125e-1`, every zero is `0`. Text that is no number is itself; the store
/// refuses it anyway.
fn canonical_number(text: &str) -> String {
    let (negative, unsigned) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().ok()),
        None => (unsigned, Some(0)),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits: String = [whole, fraction].concat();
    let Some(exponent) = exponent else { return text.to_owned() };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return text.to_owned();
    }
    let trimmed = digits.trim_end_matches('0');
    let significant = trimmed.trim_start_matches('0');
    if significant.is_empty() {
        return "0".to_owned();
    }
    let dropped = i64::try_from(digits.len() - trimmed.len()).unwrap_or(i64::MAX);
    let decimals = i64::try_from(fraction.len()).unwrap_or(i64::MAX);
    let power = exponent.saturating_add(dropped).saturating_sub(decimals);
    format!("{}{significant}e{power}", if negative { "-" } else { "" })
}
