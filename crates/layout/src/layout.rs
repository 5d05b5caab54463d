//! A layout: how the items of one logical key are spread at one moment.

use serde::{Deserialize, Serialize};

/// Which part of an item's primary key decides its shard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum By {
    /// The whole sort key.
    SortKey,
    /// One part of a string sort key, split at a separator, counted from 0. A sort key without that part is taken whole.
    Part {
        /// What parts are separated by; not empty.
        separator: String,
        /// Which part, counted from 0.
        part: usize,
    },
}

/// How an item's shard is chosen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Strategy {
    /// The key stays whole.
    None,
    /// A hash of the sort key, or of a part of it, over the shard count.
    Calculated {
        /// What is hashed.
        by: By,
    },
}

/// How a hash becomes a shard number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Hash {
    /// Jump consistent hash over xxh3-64 of the key's canonical bytes: growing moves items only into new shards.
    JumpXxh3,
}

/// Strategy, shard count and hash of one logical key at one moment. Immutable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layout {
    /// How an item's shard is chosen.
    pub strategy: Strategy,
    /// How many physical keys there are; at least 1.
    pub shards: u16,
    /// The hash.
    pub hash: Hash,
    /// Counts the layouts this key has had.
    pub version: u64,
}

impl Layout {
    /// The layout of a key that is not sharded.
    pub const fn none() -> Self {
        Layout { strategy: Strategy::None, shards: 1, hash: Hash::JumpXxh3, version: 0 }
    }
}
