//! The ceilings of one partition.

/// Most read units per second of one partition, strongly consistent
/// (docs/explain/partitions.md#two-gates). The leader answers those, and each of the two followers
/// as many reads of 4 KB again: 9,000 eventually consistent reads, which are 4,500 units.
pub const PARTITION_READS: u64 = 3_000;

/// Most write units per second of one partition (docs/explain/partitions.md#two-gates).
pub const PARTITION_WRITES: u64 = 1_000;

/// Most bytes of one partition: 10 GB (docs/explain/partitions.md#split-for-heat).
pub const PARTITION_BYTES: u64 = 10 << 30;
