//! A slot: which of a logical key's physical keys; and the two of an item that moves.

use crate::Bucket;

/// One of the physical keys of a logical key. Ordered by bucket, then by shard; what has no bucket
/// comes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot {
    /// The bucket of time; `None` where the layout has none, and for sort keys that hold no time.
    pub bucket: Option<Bucket>,
    /// The number of the slot, within the bucket where there is one: that of its shard, unless the
    /// layout [names another](crate::Layout::slots).
    pub shard: u16,
}

impl Slot {
    /// A shard without a bucket.
    pub const fn shard(shard: u16) -> Self {
        Slot { bucket: None, shard }
    }
}

impl std::fmt::Display for Slot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.bucket {
            None => write!(f, "shard {}", self.shard),
            Some(bucket) => write!(f, "shard {} of bucket {bucket}", self.shard),
        }
    }
}

/// The two slots of an item that changes its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slots {
    /// Where it was.
    pub from: Slot,
    /// Where it goes.
    pub to: Slot,
}
