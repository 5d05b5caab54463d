//! From a key's canonical bytes to a shard number: xxh3-64, then jump consistent hash.
//!
//! Both are pinned by golden vectors for ever: an item is found again only where its hash puts it.

use xxhash_rust::xxh3::xxh3_64;

/// The shard of a key among `shards` (0 counts as 1): jump consistent hash over xxh3-64, seed 0. Growing `shards` moves keys
/// only into new shards.
pub fn jump_xxh3(canonical: &[u8], shards: u16) -> u16 {
    jump(xxh3_64(canonical), shards)
}

/// Jump consistent hash (Lamping and Veach, "A Fast, Minimal Memory, Consistent Hash Algorithm", 2014, figure 1).
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
