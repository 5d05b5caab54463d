//! The hash of a partition key: its position among all items.

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// AWS does not publish DynamoDB's hash. This one has a seed of its own, so that it is independent
/// of the hash that spreads a key over shards: shards must land on partitions as if by chance, as
/// they do on DynamoDB.
const SEED: u64 = 0x7061_7274_6974_696f;

/// The position of a partition key among all `u64` (docs/explain/partitions.md#two-gates: hash,
/// then contiguous ranges).
///
/// `key` is the value in one canonical form, so that equal keys get equal places: UTF-8 text of a
/// string, the bytes of a binary, one spelling per number. Pinned by golden vectors: a table's file
/// keeps its partitions between runs.
pub fn position(key: &[u8]) -> u64 {
    xxh3_64_with_seed(key, SEED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn golden() {
        assert_eq!(position(b""), GOLDEN[0]);
        assert_eq!(position(b"game_x"), GOLDEN[1]);
        assert_eq!(position(b"game_x#~3"), GOLDEN[2]);
    }

    // The same from the reference implementation (python-xxhash 3).
    const GOLDEN: [u64; 3] =
        [16_096_614_163_849_234_523, 1_583_523_545_188_751_124, 12_958_830_639_278_429_506];
}
