//! The reasons for which an item has no slot, as the application reads them.

/// Why an item has no slot, or a logical key no physical one there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unplaced {
    /// The physical key would be too long.
    #[error(transparent)]
    TooLong(#[from] crate::KeyTooLong),
    /// Other writers assign the shard.
    #[error(
        "Other writers assign the shards of the table's rule, so the primary key alone does not say where the item lies"
    )]
    NotFromKey,
    /// `modulo` was given something that is no whole number.
    #[error("The table's rule takes the shard from a whole number (hash = \"modulo\"), and {0:?} is none")]
    NoNumber(String),
    /// A client's key is written like a physical one, and the rule refuses such keys.
    #[error(
        "The key {key:?} is written like a shard of the key {logical:?}, and the table's rule refuses such keys (physical_keys = \"refuse\"): \
         send the logical key, and the rule finds the shard"
    )]
    Physical {
        /// The key.
        key: String,
        /// The logical key of which it would be a shard.
        logical: String,
    },
    /// A client's key is the physical key of a recorded key's shard.
    #[error(
        "The key {key:?} is the physical key of a shard of the key {logical:?}, which is on record as sharded: send the key {logical:?}"
    )]
    Reserved {
        /// The key.
        key: String,
        /// The recorded key.
        logical: String,
    },
    /// A client's number is written like a shard of another one, in a table whose rules spread
    /// numbers.
    #[error(
        "The key {key} is the number under which shard {shard} of the key {logical} is stored, and a number cannot be escaped: the table has \
         no place for it as a key of its own"
    )]
    ReservedNumber {
        /// The key.
        key: String,
        /// The number of which it would be a shard.
        logical: String,
        /// That shard.
        shard: u16,
    },
    /// A number that has shards on record has no room for them.
    #[error(
        "The key {0} has no room for a shard: a number has, below 10^20 in magnitude and with at most six digits behind the point"
    )]
    NoRoom(String),
    /// A client's key is taken as the shard that it names, and the item belongs to another one.
    #[error(
        "The key {key:?} is taken as the shard that it names (physical_keys = \"as_shard\"), and by the table's rule the item with this sort key \
         belongs to {slots}"
    )]
    OtherShard {
        /// The key.
        key: String,
        /// Where the item belongs.
        slots: String,
    },
    /// `hashCode` of text was given something that is none.
    #[error("The table's rule takes the shard from Java's hashCode of a text, and this sort key is no text")]
    NoText,
    /// A template with a bucket was given a sort key without a time.
    #[error(
        "The table's rule takes the bucket from the time in the sort key, and this sort key holds none: {0}"
    )]
    NoTime(String),
    /// A value in the reserved form, while the index key that it is for migrates.
    #[error(
        "The key {0} of an index is being spread or brought back by `heatsink adopt`, and until that is done a value that ends in `#~` and a \
         number cannot be written to it. Nothing was written"
    )]
    Migrating(String),
    /// A key that is written like a shard, while all keys of the table get other shards.
    #[error(
        "The key {0:?} is written like a shard, and until `heatsink adopt` has given all keys of the table other shards, such a key that is not \
         on record cannot be written. Nothing was written"
    )]
    Changing(String),
    /// Another logical key's item would lie under the same physical key.
    #[error(
        "The physical key {physical:?} of the logical key {logical:?} would be read as another logical key's: the rule's template \
         cannot tell the two apart. Use other logical keys, or a template whose separator they do not hold"
    )]
    Collides {
        /// The logical key.
        logical: String,
        /// What the template makes of it.
        physical: String,
    },
}
