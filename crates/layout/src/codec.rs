//! The suffix codec: logical partition keys to physical ones and back, injective over all keys and
//! shards.
//!
//! The **reserved form** is a key that ends in `#~` and a canonical decimal number of at most five
//! digits (`0`, or no leading zero). A logical key that itself ends in the reserved form is escaped
//! by a further `#~0`; shard 0 is the escaped logical key, shard k of 1 and above is the escaped
//! logical key with `#~k`. Encoding therefore only ever appends ASCII: what stands before it stays
//! byte for byte, in a JSON string too.
//!
//! In a table that has buckets ([`Time`](crate::Time)) a key that ends in `#~` and a bucket
//! (`#~2026-06-22`) has the reserved form too; an item's physical key is then the escaped logical
//! key, `#~` and the bucket, and `#~k` where k is not 0. Tables without buckets never had that form
//! and do not have it now.
//!
//! In a table of which only single keys are on record nothing is escaped
//! ([`KeyLayouts`](crate::KeyLayouts)).
//!
//! Works on the key's bytes, for string and binary keys alike; numbers have a codec of their own
//! ([`number_codec`]). Not here: which shard an item
//! belongs to ([`Layout::shard_of`](crate::Layout::shard_of)).

use heatsink_dynamo::KeyType;

use crate::bucket::{GRANULARITIES, width};
use crate::{Bucket, Slot, number_codec};

/// The longest partition key that DynamoDB stores, in bytes (AWS Developer Guide, "Constraints",
/// partition keys).
pub const MAX_PARTITION_KEY: usize = 2048;

const MARK: &[u8] = b"#~";
const ESCAPE: &str = "#~0";

/// A physical key with its suffix would be longer than DynamoDB stores; nothing can be written
/// under it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "One or more parameter values were invalid: Size of hashkey has exceeded the maximum size limit of2048 bytes. \
     The table is sharded, and the shard suffix of {suffix} bytes counts: the key has {logical} bytes, which leaves no room for it"
)]
pub struct KeyTooLong {
    /// Bytes of the logical key.
    pub logical: usize,
    /// Bytes of the suffix, escape included.
    pub suffix: usize,
}

/// A physical key, read: the logical key is its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decoded<'a> {
    /// The key as the application knows it.
    pub logical: &'a [u8],
    /// The shard it lies in.
    pub shard: u16,
}

/// [`suffix`] for any slot of a table that has buckets.
pub fn bucket_suffix(logical: &[u8], slot: Slot) -> String {
    let mut suffix = if is_reserved_with_buckets(logical) { ESCAPE.to_owned() } else { String::new() };
    if let Some(bucket) = slot.bucket {
        suffix.push_str(&format!("#~{bucket}"));
    }
    if slot.shard > 0 {
        suffix.push_str(&format!("#~{}", slot.shard));
    }
    suffix
}

/// [`decode`] for a table that has buckets: the length of the logical key, and the slot.
pub fn bucket_decode(physical: &[u8]) -> (usize, Slot) {
    let (mut rest, shard) = split_shard(physical).unwrap_or((physical, 0));
    let mut slot = Slot::shard(shard);
    if let Some((head, bucket)) = split_bucket(rest) {
        (rest, slot.bucket) = (head, Some(bucket));
    }
    match split(rest) {
        Some((logical, 0)) if is_reserved_with_buckets(logical) => (logical.len(), slot),
        _ => (rest.len(), slot),
    }
}

/// [`is_reserved`] in a table that has buckets.
pub fn is_reserved_with_buckets(key: &[u8]) -> bool {
    is_reserved(key) || split_bucket(key).is_some()
}

/// A key that ends in a bucket: what stands before it, and the bucket.
fn split_bucket(key: &[u8]) -> Option<(&[u8], Bucket)> {
    GRANULARITIES.into_iter().find_map(|granularity| {
        let (head, text) = key.split_at_checked(key.len().checked_sub(width(granularity.format()))?)?;
        Some((head.strip_suffix(MARK)?, Bucket::read(text, granularity, granularity.format())?))
    })
}

/// What has to be appended to a logical key to make it the physical key of `shard`. Empty for shard
/// 0 of a key that does not end in the reserved form. No limit is checked; see [`encode`].
pub fn suffix(logical: &[u8], shard: u16) -> String {
    let escape = if is_reserved(logical) { ESCAPE } else { "" };
    if shard == 0 { escape.to_owned() } else { format!("{escape}#~{shard}") }
}

/// What has to be appended to a logical key to make it the physical key of `shard`, where nothing
/// is escaped. Empty for shard 0.
pub fn plain_suffix(shard: u16) -> String {
    if shard == 0 { String::new() } else { format!("#~{shard}") }
}

/// The suffix of a logical key in `shard`, refused where the physical key would exceed
/// [`MAX_PARTITION_KEY`].
pub fn checked_suffix(logical: &[u8], shard: u16) -> Result<String, KeyTooLong> {
    let suffix = suffix(logical, shard);
    if !suffix.is_empty() && logical.len() + suffix.len() > MAX_PARTITION_KEY {
        return Err(KeyTooLong { logical: logical.len(), suffix: suffix.len() });
    }
    Ok(suffix)
}

/// The physical key of a logical key in `shard`.
pub fn encode(logical: &[u8], shard: u16) -> Result<Vec<u8>, KeyTooLong> {
    let suffix = checked_suffix(logical, shard)?;
    let mut physical = Vec::with_capacity(logical.len() + suffix.len());
    physical.extend_from_slice(logical);
    physical.extend_from_slice(suffix.as_bytes());
    Ok(physical)
}

/// What stands before a suffix of a shard of 1 and above, and that shard.
pub fn split_shard(physical: &[u8]) -> Option<(&[u8], u16)> {
    let (logical, number) = split(physical)?;
    let shard = u16::try_from(number).ok().filter(|shard| *shard >= 1)?;
    Some((logical, shard))
}

/// [`split_shard`] of a key of that type; a number as canonical text.
pub fn split_shard_of(physical: &[u8], key_type: KeyType) -> Option<(&[u8], u16)> {
    match key_type {
        KeyType::S | KeyType::B => split_shard(physical),
        KeyType::N => number_codec::split_shard(physical),
    }
}

/// Reads a physical key. Bytes that no logical key encodes to (an unescaped key of before the table
/// was adopted) are taken as their own logical key.
pub fn decode(physical: &[u8]) -> Decoded<'_> {
    let (rest, shard) = split_shard(physical).unwrap_or((physical, 0));
    let logical = match split(rest) {
        Some((logical, 0)) if is_reserved(logical) => logical,
        _ => rest,
    };
    Decoded { logical, shard }
}

/// Whether a key ends in the reserved form, and so is stored escaped. Adopting a table looks for
/// such keys first.
pub fn is_reserved(key: &[u8]) -> bool {
    split(key).is_some()
}

/// A key in the reserved form: what stands before the suffix, and its number.
fn split(key: &[u8]) -> Option<(&[u8], u32)> {
    let digits = key.iter().rev().take(6).take_while(|byte| byte.is_ascii_digit()).count();
    if digits == 0 || digits > 5 {
        return None;
    }
    let (head, number) = key.split_at(key.len() - digits);
    if digits > 1 && number.first() == Some(&b'0') {
        return None;
    }
    let rest = head.strip_suffix(MARK)?;
    Some((rest, number.iter().fold(0, |sum, digit| sum * 10 + u32::from(digit - b'0'))))
}
