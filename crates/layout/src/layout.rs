//! A layout: how the items of one logical key are spread at one moment.

use serde::{Deserialize, Serialize};

use crate::{Digest, SplitPoints, Step, Template, Time};

/// What decides an item's shard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum By {
    /// The whole sort key.
    SortKey,
    /// One part of a string sort key, split at a separator, counted from 0. A sort key without that
    /// part is taken whole.
    Part {
        /// What parts are separated by; not empty.
        separator: String,
        /// Which part, counted from 0.
        part: usize,
    },
    /// The whole primary key. Only for the keys of indexes ([`IndexKey`](crate::IndexKey)).
    PrimaryKey,
}

/// How an item's shard is chosen. A rule's `random` is [`Strategy::Calculated`] over the whole sort
/// key: the same spread, and reads, overwrites and retries stay right.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Strategy {
    /// The key stays whole.
    None,
    /// A hash of the sort key, or of a part of it, over the shard count.
    Calculated {
        /// What is hashed.
        by: By,
        /// The number of each shard's slot ([`Layout::slots`]); empty where shard k has slot k.
        /// Builds that do not know them refuse the records of keys with slots by name.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        slots: Vec<u16>,
    },
    /// The range that the sort key lies in. Builds that do not know ranges refuse the records of keys
    /// with them.
    Range {
        /// Where a range ends and the next one begins; a shard is a range, counted from the lowest.
        split_points: SplitPoints,
        /// The number of each shard's slot, as of calculated shards.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        slots: Vec<u16>,
    },
    /// The bucket of the time in the sort key, and within each bucket as calculated. Sort keys
    /// without a time lie in shard 0, outside all buckets.
    Bucket {
        /// Where the time stands, and how long a bucket is.
        time: Time,
        /// What is hashed, within a bucket.
        by: By,
        /// The numbers of shards that older buckets have, the oldest first. Builds that do not know
        /// them refuse the records of keys with buckets.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        earlier: Vec<Step>,
    },
    /// An item has a fragment in every shard. The base fragment, in shard 0, holds all of the item;
    /// the others hold parts of these numbers. The base fragment exists whenever another one does.
    /// The item shows the sum of each number over its fragments.
    Counter {
        /// The top-level attributes that are summed; not empty.
        attributes: Vec<String>,
    },
    /// As a table was sharded by hand.
    Template {
        /// How physical keys are written.
        template: Template,
        /// What is hashed.
        by: By,
        /// Where the time stands, if the template has a bucket.
        time: Option<Time>,
    },
}

impl Strategy {
    /// Calculated shards, of which shard k has slot k.
    pub const fn calculated(by: By) -> Self {
        Strategy::Calculated { by, slots: Vec::new() }
    }

    /// Ranges, of which range k has slot k.
    pub const fn range(split_points: SplitPoints) -> Self {
        Strategy::Range { split_points, slots: Vec::new() }
    }
}

/// How what decides a shard becomes its number. All but the first are for templates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Hash {
    /// Jump consistent hash over xxh3-64 of the key's canonical bytes: growing moves items only
    /// into new shards.
    JumpXxh3,
    /// MD5 as one big number, modulo the shard count.
    Md5,
    /// SHA-256 as one big number, modulo the shard count.
    Sha256,
    /// SHA-1 as one big number, modulo the shard count.
    Sha1,
    /// Some hexadecimal digits of a digest as one number, modulo the shard count.
    Slice {
        /// The digest.
        digest: Digest,
        /// How many digits, from its start; from its end where negative. Not 0.
        digits: i8,
    },
    /// CRC-32 as zlib has it, modulo the shard count.
    Crc32,
    /// Java's `Math.floorMod(key.hashCode(), shards)` of text.
    Java,
    /// Java's `Math.abs(key.hashCode() % shards)` of text.
    JavaAbs,
    /// Java's `(key.hashCode() & 0x7fffffff) % shards` of text.
    JavaMask,
    /// Java's `Math.floorMod(Objects.hash(key), shards)` of text.
    JavaObjects,
    /// FNV-1a of 32 bits, modulo the shard count.
    Fnv1a32,
    /// FNV-1a of 64 bits, modulo the shard count.
    Fnv1a64,
    /// A whole number modulo the shard count.
    Modulo,
    /// Other writers draw the shard, so an item can be in any. What is written here goes where
    /// [`Hash::JumpXxh3`] of the sort key says: the same spread, and a retried write stays one
    /// item.
    Random,
}

/// Strategy, shard count and hash of one logical key at one moment. Immutable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layout {
    /// How an item's shard is chosen.
    pub strategy: Strategy,
    /// How many physical keys there are; where there are buckets in each of the newest, from which
    /// [`shards_in`](Layout::shards_in) tells others. At least 1.
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

    /// Where in a sort key its time stands; `None` for a layout without buckets.
    pub fn time(&self) -> Option<&Time> {
        match &self.strategy {
            Strategy::Bucket { time, .. } => Some(time),
            Strategy::Template { time, .. } => time.as_ref(),
            Strategy::None
            | Strategy::Calculated { .. }
            | Strategy::Range { .. }
            | Strategy::Counter { .. } => None,
        }
    }

    /// The template, if there is one.
    pub fn template(&self) -> Option<&Template> {
        match &self.strategy {
            Strategy::Template { template, .. } => Some(template),
            _ => None,
        }
    }

    /// The attributes that are summed over the shards, if the keys hold counters.
    pub fn counter_attributes(&self) -> Option<&[String]> {
        match &self.strategy {
            Strategy::Counter { attributes } => Some(attributes),
            _ => None,
        }
    }

    /// Whether every item of the key lies whole under the key itself.
    pub fn lies_whole(&self) -> bool {
        match self.strategy {
            Strategy::None => true,
            Strategy::Calculated { ref slots, .. } => self.shards <= 1 && slots.is_empty(),
            Strategy::Range { .. }
            | Strategy::Bucket { .. }
            | Strategy::Counter { .. }
            | Strategy::Template { .. } => false,
        }
    }

    /// Whether two layouts of one key put each of its items under the same key: they are equal; or
    /// all items lie under the key itself, those of counters with their base fragments; or they
    /// differ in buckets that hold none.
    pub fn places_as(&self, other: &Layout) -> bool {
        let in_one = |layout: &Layout| layout.lies_whole() || layout.counter_attributes().is_some();
        self == other || in_one(self) && in_one(other) || self.differs_from(other).is_some()
    }

    /// Whether it can be the layout of a table's own keys, as nobody but a damaged record says
    /// otherwise: it has shards, and what decides one.
    pub fn is_sound(&self) -> bool {
        let decides = |by: &By| match by {
            By::SortKey => true,
            By::Part { separator, .. } => !separator.is_empty(),
            By::PrimaryKey => false,
        };
        let chooses = match &self.strategy {
            Strategy::None => self.shards == 1,
            Strategy::Calculated { by, .. } | Strategy::Bucket { by, .. } | Strategy::Template { by, .. } => {
                decides(by)
            }
            Strategy::Range { split_points, .. } => self.shards == split_points.ranges(),
            Strategy::Counter { attributes } => !attributes.is_empty(),
        };
        self.shards > 0 && chooses && self.has_sound_steps() && self.has_sound_slots()
    }

    /// Whether other writers assign the shard: an item can be in any of them, and equal sort keys
    /// in several.
    pub fn is_externally_assigned(&self) -> bool {
        self.hash == Hash::Random && self.shards > 1
    }

    /// Whether an item's slot follows from its primary key.
    pub fn follows_from_key(&self) -> bool {
        !self.is_externally_assigned()
    }
}
