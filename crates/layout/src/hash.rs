//! From a key's bytes to a shard number: Heatsink's own way, and those of code that shards by hand.
//!
//! All are pinned by golden vectors for ever: an item is found again only where its hash puts it.

use sha1::{Digest as _, Sha1};
use sha2::{Digest as _, Sha256};
use xxhash_rust::xxh3::xxh3_64;

use serde::{Deserialize, Serialize};

/// A digest of which a part can be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Digest {
    /// MD5, 32 hexadecimal digits.
    Md5,
    /// SHA-1, 40 hexadecimal digits.
    Sha1,
    /// SHA-256, 64 hexadecimal digits.
    Sha256,
}

impl Digest {
    /// How many hexadecimal digits it has.
    pub const fn digits(self) -> i8 {
        match self {
            Digest::Md5 => 32,
            Digest::Sha1 => 40,
            Digest::Sha256 => 64,
        }
    }
}

/// The shard of a key among `shards` (0 counts as 1): jump consistent hash over xxh3-64, seed 0.
/// Growing `shards` moves keys only into new shards.
pub fn jump_xxh3(canonical: &[u8], shards: u16) -> u16 {
    jump(xxh3_64(canonical), shards)
}

/// [`jump_xxh3`] of a key with that xxh3-64.
pub fn jump_of(xxh3: u64, shards: u16) -> u16 {
    jump(xxh3, shards)
}

/// The least and the greatest number of shards, up to `most`, with which [`jump_xxh3`] puts a key
/// into `shard`; `None` if it does with none. With all numbers between them it does, too.
pub fn jump_xxh3_counts(canonical: &[u8], shard: u16, most: u16) -> Option<(u16, u16)> {
    let mut at = jump_xxh3(canonical, most);
    let mut greatest = most;
    // From the shard with `most` shards back to those that the key had with fewer: it came into
    // shard n when there were n + 1.
    while at > shard {
        greatest = at;
        at = jump_xxh3(canonical, at);
    }
    (at == shard).then_some((shard.saturating_add(1), greatest))
}

/// The MD5 digest as one big number, modulo `shards`: Python's `int(md5(text).hexdigest(), 16) %
/// shards`.
pub fn md5(bytes: &[u8], shards: u16) -> u16 {
    digest(Digest::Md5, 0, bytes, shards)
}

/// The SHA-256 digest as one big number, modulo `shards`.
pub fn sha256(bytes: &[u8], shards: u16) -> u16 {
    digest(Digest::Sha256, 0, bytes, shards)
}

/// A digest in hexadecimal, or so many digits from its start (from its end, where `digits` is
/// negative; all for 0), as one number, modulo `shards`: Python's `int(md5(text).hexdigest()[:8],
/// 16) % shards`.
pub fn digest(digest: Digest, digits: i8, bytes: &[u8], shards: u16) -> u16 {
    let nibbles = |bytes: &[u8]| bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]).collect::<Vec<u8>>();
    let nibbles = match digest {
        Digest::Md5 => nibbles(&md5::compute(bytes).0),
        Digest::Sha1 => nibbles(&Sha1::digest(bytes)),
        Digest::Sha256 => nibbles(&Sha256::digest(bytes)),
    };
    let wanted = usize::from(digits.unsigned_abs()).min(nibbles.len());
    let taken = match digits {
        0 => &nibbles[..],
        1.. => nibbles.get(..wanted).unwrap_or_default(),
        _ => nibbles.get(nibbles.len() - wanted..).unwrap_or_default(),
    };
    let shards = u32::from(shards.max(1));
    let left = taken.iter().fold(0, |left, nibble| (left * 16 + u32::from(*nibble)) % shards);
    u16::try_from(left).unwrap_or(0)
}

/// CRC-32 as zlib, PNG and Ethernet have it, modulo `shards`: Python's `zlib.crc32(text) % shards`.
pub fn crc32(bytes: &[u8], shards: u16) -> u16 {
    u16::try_from(crc32fast::hash(bytes) % u32::from(shards.max(1))).unwrap_or(0)
}

/// Java's `String.hashCode()`: of UTF-16 units, and signed.
fn java_hash_code(text: &str) -> i32 {
    text.encode_utf16().fold(0_i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(i32::from(unit)))
}

/// `Math.floorMod(text.hashCode(), shards)`.
pub fn java(text: &str, shards: u16) -> u16 {
    let left = i64::from(java_hash_code(text)).rem_euclid(i64::from(shards.max(1)));
    u16::try_from(left).unwrap_or(0)
}

/// `Math.floorMod(Objects.hash(text), shards)`.
pub fn java_objects(text: &str, shards: u16) -> u16 {
    let hash = 31_i32.wrapping_add(java_hash_code(text));
    u16::try_from(i64::from(hash).rem_euclid(i64::from(shards.max(1)))).unwrap_or(0)
}

/// `Math.abs(text.hashCode() % shards)`, and `Math.abs(text.hashCode()) % shards` but for the one
/// hash code that has no absolute value.
pub fn java_abs(text: &str, shards: u16) -> u16 {
    u16::try_from(java_hash_code(text).unsigned_abs() % u32::from(shards.max(1))).unwrap_or(0)
}

/// `(text.hashCode() & 0x7fffffff) % shards`.
pub fn java_mask(text: &str, shards: u16) -> u16 {
    let masked = java_hash_code(text) & i32::MAX;
    u16::try_from(masked.unsigned_abs() % u32::from(shards.max(1))).unwrap_or(0)
}

/// FNV-1a of 32 bits, modulo `shards`.
pub fn fnv1a32(bytes: &[u8], shards: u16) -> u16 {
    let hash =
        bytes.iter().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193));
    u16::try_from(hash % u32::from(shards.max(1))).unwrap_or(0)
}

/// FNV-1a of 64 bits, modulo `shards`.
pub fn fnv1a64(bytes: &[u8], shards: u16) -> u16 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, step);
    u16::try_from(hash % u64::from(shards.max(1))).unwrap_or(0)
}

/// A whole number in decimal digits, however long, modulo `shards`; `None` for other text.
pub fn modulo(text: &[u8], shards: u16) -> Option<u16> {
    let shards = u32::from(shards.max(1));
    let mut left = 0;
    for digit in text {
        left = (left * 10 + u32::from(digit.is_ascii_digit().then(|| digit - b'0')?)) % shards;
    }
    if text.is_empty() { None } else { u16::try_from(left).ok() }
}

/// Jump consistent hash (Lamping and Veach, "A Fast, Minimal Memory, Consistent Hash Algorithm",
/// 2014, figure 1).
fn jump(mut key: u64, buckets: u16) -> u16 {
    let (mut at, mut next) = (0_u16, 0_u64);
    while next < u64::from(buckets) {
        // `next` is below `buckets`, so it fits; 0 is where every key starts.
        at = u16::try_from(next).unwrap_or(0);
        key = key.wrapping_mul(2_862_933_555_777_941_757).wrapping_add(1);
        let spread = f64::from(1_u32 << 31) / ((key >> 33) + 1) as f64;
        next = jump_to(u64::from(at) + 1, spread);
    }
    at
}

#[expect(clippy::cast_possible_truncation, reason = "the fraction is dropped by design; at most 2^16 * 2^31")]
#[expect(clippy::cast_sign_loss, reason = "both factors are positive")]
fn jump_to(step: u64, spread: f64) -> u64 {
    (step as f64 * spread) as u64
}
