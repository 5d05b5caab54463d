//! The slot of an item, from its sort key.
//!
//! Equal sort keys must meet in one shard however they were written, so numbers are hashed in a canonical text of their
//! value. That text is this file's own and never changes: stored items are found by it.

use std::borrow::Cow;

use heatsink_dynamo::{KeyValue, Number};

use crate::{Bucket, By, Digest, Hash, Layout, Slot, Strategy, Unplaced, hash};

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
    /// The shard in which the item with that sort key lies, within its bucket if there are buckets; below
    /// [`shards`](Layout::shards). `None` is a table without a sort key, whose one item per key lies in shard 0. For layouts whose
    /// shard follows from the primary key; others are asked by [`slot_of`](Self::slot_of).
    pub fn shard_of(&self, sort: Option<SortKey<'_>>) -> u16 {
        self.slot_of(sort).map_or(0, |slot| slot.shard)
    }

    /// The slot in which the item with that sort key lies.
    ///
    /// # Errors
    /// [`Unplaced`] where it does not follow from the primary key, or the sort key cannot be an item's.
    pub fn slot_of(&self, sort: Option<SortKey<'_>>) -> Result<Slot, Unplaced> {
        if !self.follows_from_key() {
            return Err(Unplaced::NotFromKey);
        }
        self.hashed_slot(sort)
    }

    /// The slot into which an item that is nowhere yet is put. Of externally assigned shards all gateways choose the same one, so that a
    /// write that is sent again, and two that meet, concern one item.
    ///
    /// # Errors
    /// [`Unplaced`] for a sort key that cannot be an item's.
    pub fn hashed_slot(&self, sort: Option<SortKey<'_>>) -> Result<Slot, Unplaced> {
        let by = match &self.strategy {
            Strategy::None | Strategy::Counter { .. } => return Ok(Slot::default()),
            Strategy::Calculated { by } | Strategy::Bucket { by, .. } | Strategy::Template { by, .. } => by,
        };
        let bucket = self.bucket_of(sort)?;
        if matches!(self.strategy, Strategy::Bucket { .. }) && bucket.is_none() {
            return Ok(Slot::default());
        }
        let shards = bucket.map_or(self.shards, |bucket| self.shards_in(bucket));
        let shard = match sort {
            None => 0,
            Some(sort) => self.shard(by, sort, shards)?,
        };
        Ok(Slot { bucket, shard })
    }

    /// The slots in which the item with that sort key can lie.
    ///
    /// # Errors
    /// [`Unplaced`] for a sort key that cannot be an item's.
    pub fn slots_of(&self, sort: Option<SortKey<'_>>) -> Result<Vec<Slot>, Unplaced> {
        if self.follows_from_key() {
            return self.slot_of(sort).map(|slot| vec![slot]);
        }
        let bucket = self.bucket_of(sort)?;
        Ok((0..self.shards).map(|shard| Slot { bucket, shard }).collect())
    }

    fn bucket_of(&self, sort: Option<SortKey<'_>>) -> Result<Option<Bucket>, Unplaced> {
        let Some(time) = self.time() else { return Ok(None) };
        match (sort.and_then(|sort| time.bucket_of(sort)), &self.strategy) {
            (None, Strategy::Template { .. }) => {
                Err(Unplaced::NoTime(sort.map_or_else(String::new, |sort| sort.to_string())))
            }
            (bucket, _) => Ok(bucket),
        }
    }

    fn shard(&self, by: &By, from: SortKey<'_>, shards: u16) -> Result<u16, Unplaced> {
        let part = match (by, from) {
            (By::Part { separator, part }, SortKey::S(text)) => text.split(separator.as_str()).nth(*part),
            _ => None,
        };
        if matches!(self.hash, Hash::JumpXxh3 | Hash::Random) {
            let canonical = from.canonical();
            return Ok(hash::jump_xxh3(part.map_or(&*canonical, str::as_bytes), shards));
        }
        let plain = match part {
            Some(part) => Cow::Borrowed(part.as_bytes()),
            None => from.plain(),
        };
        let text = || std::str::from_utf8(&plain).map_err(|_| Unplaced::NoText);
        Ok(match self.hash {
            Hash::Sha1 => hash::digest(Digest::Sha1, 0, &plain, shards),
            Hash::Slice { digest, digits } => hash::digest(digest, digits, &plain, shards),
            Hash::Crc32 => hash::crc32(&plain, shards),
            Hash::Java => hash::java(text()?, shards),
            Hash::JavaAbs => hash::java_abs(text()?, shards),
            Hash::JavaMask => hash::java_mask(text()?, shards),
            Hash::JavaObjects => hash::java_objects(text()?, shards),
            Hash::Md5 => hash::md5(&plain, shards),
            Hash::Sha256 => hash::sha256(&plain, shards),
            Hash::Fnv1a32 => hash::fnv1a32(&plain, shards),
            Hash::Fnv1a64 => hash::fnv1a64(&plain, shards),
            Hash::Modulo => hash::modulo(&plain, shards)
                .ok_or_else(|| Unplaced::NoNumber(String::from_utf8_lossy(&plain).into_owned()))?,
            Hash::JumpXxh3 | Hash::Random => 0,
        })
    }
}

impl<'a> SortKey<'a> {
    /// The bytes that are hashed: UTF-8 of a string, the bytes of a binary, the canonical text of a number.
    pub(crate) fn canonical(self) -> Cow<'a, [u8]> {
        match self {
            SortKey::S(text) => Cow::Borrowed(text.as_bytes()),
            SortKey::B(bytes) => Cow::Borrowed(bytes),
            SortKey::N(text) => Cow::Owned(canonical_number(text).into_bytes()),
        }
    }

    /// The value, as keys are ordered; `None` for a number that is none.
    pub(crate) fn value(self) -> Option<KeyValue<'a>> {
        match self {
            SortKey::S(text) => Some(KeyValue::S(Cow::Borrowed(text))),
            SortKey::N(text) => Number::parse(text).ok().map(KeyValue::N),
            SortKey::B(bytes) => Some(KeyValue::B(Cow::Borrowed(bytes))),
        }
    }

    /// What code that shards by hand hashes: a number as its plain decimal digits (`1718000000`, `12.5`), as `str()` gives them.
    fn plain(self) -> Cow<'a, [u8]> {
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
            SortKey::B(bytes) => write!(f, "{bytes:?}"),
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
