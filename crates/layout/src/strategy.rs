//! The shard of an item, from its sort key.
//!
//! Equal sort keys must meet in one shard however they were written, so numbers are hashed in a canonical text of their
//! value. That text is this file's own and never changes: stored items are found by it.

use std::borrow::Cow;

use crate::{By, Hash, Layout, Strategy, hash};

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

impl Layout {
    /// The shard in which the item with that sort key lies; below [`shards`](Layout::shards). `None` is a table without
    /// a sort key, whose one item per key lies in shard 0.
    pub fn shard_of(&self, sort: Option<SortKey<'_>>) -> u16 {
        match (&self.strategy, sort) {
            (Strategy::None, _) | (_, None) => 0,
            (Strategy::Calculated { by }, Some(sort)) => {
                let canonical = sort.canonical();
                let hashed = match (by, sort) {
                    (By::Part { separator, part }, SortKey::S(text)) => {
                        text.split(separator.as_str()).nth(*part).map_or(&*canonical, str::as_bytes)
                    }
                    _ => &*canonical,
                };
                match self.hash {
                    Hash::JumpXxh3 => hash::jump_xxh3(hashed, self.shards),
                }
            }
        }
    }
}

impl<'a> SortKey<'a> {
    /// The bytes that are hashed: UTF-8 of a string, the bytes of a binary, the canonical text of a number.
    fn canonical(self) -> Cow<'a, [u8]> {
        match self {
            SortKey::S(text) => Cow::Borrowed(text.as_bytes()),
            SortKey::B(bytes) => Cow::Borrowed(bytes),
            SortKey::N(text) => Cow::Owned(canonical_number(text).into_bytes()),
        }
    }
}

/// A number as sign, digits without zeros at either end, `e`, and the power of ten of the last digit: `-12.50` is
/// `-125e-1`, every zero is `0`. Text that is no number is itself; the store refuses it anyway.
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
