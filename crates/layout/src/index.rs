//! The partition key of a global index, spread: what is stored of the attribute that an index is keyed by.
//!
//! An item whose attribute is `open` is stored with `open#~3`, where 3 follows from the item's primary key: writes of one index
//! key spread over N, and every point operation knows what is stored without reading it. The suffix codec is that of partition
//! keys ([`codec`](crate::codec)), escape included. The attribute has one stored form, whichever of the table's indexes it is in.
//!
//! Not here: the table's own partition key ([`Table`](crate::Table)).

use heatsink_dynamo::AttributeDefinition;

use crate::{KeyLayout, KeyTooLong, MAX_PARTITION_KEY, SortKey, codec, hash};

/// The primary key of an item, with its logical partition key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrimaryKey<'a> {
    /// The partition key.
    pub partition: SortKey<'a>,
    /// The sort key, in tables that have one.
    pub sort: Option<SortKey<'a>>,
}

impl PrimaryKey<'_> {
    /// The bytes that are hashed: the length of the partition key in four bytes, the partition key, the sort key.
    fn canonical(self) -> Vec<u8> {
        let partition = self.partition.canonical();
        let mut bytes = u32::try_from(partition.len()).unwrap_or(u32::MAX).to_be_bytes().to_vec();
        bytes.extend_from_slice(&partition);
        if let Some(sort) = self.sort {
            bytes.extend_from_slice(&sort.canonical());
        }
        bytes
    }
}

/// An attribute that is the partition key of a global index and is stored spread.
#[derive(Clone, Debug)]
pub struct IndexKey {
    attribute: AttributeDefinition,
    layouts: Vec<KeyLayout>,
}

impl IndexKey {
    pub(crate) fn new(attribute: AttributeDefinition) -> Self {
        IndexKey { attribute, layouts: Vec::new() }
    }

    pub(crate) fn add(&mut self, layout: KeyLayout) {
        self.layouts.push(layout);
    }

    /// The attribute.
    pub fn attribute(&self) -> &AttributeDefinition {
        &self.attribute
    }

    /// Over how many physical values a logical value is spread; 1 for one that no rule names, which is escaped like the rest.
    pub fn shards(&self, logical: &[u8]) -> u16 {
        let layout = self.layouts.iter().find(|one| one.keys().matches(logical));
        layout.map_or(1, |one| one.layout().shards)
    }

    /// The shard of the item with that primary key, while the attribute has that value.
    pub fn shard_of(&self, logical: &[u8], key: PrimaryKey<'_>) -> u16 {
        match self.shards(logical) {
            0 | 1 => 0,
            shards => hash::jump_xxh3(&key.canonical(), shards),
        }
    }

    /// What is appended to a value of the item with that primary key. No limit is checked; see
    /// [`checked_suffix`](Self::checked_suffix).
    pub fn suffix(&self, logical: &[u8], key: PrimaryKey<'_>) -> String {
        codec::suffix(logical, self.shard_of(logical, key))
    }

    /// What has to be appended to a value of the item with that primary key. A value that is too long by itself is left as it is:
    /// the store refuses it.
    ///
    /// # Errors
    /// [`KeyTooLong`] for a value that this makes too long.
    pub fn checked_suffix(&self, logical: &[u8], key: PrimaryKey<'_>) -> Result<String, KeyTooLong> {
        if logical.len() > MAX_PARTITION_KEY {
            return Ok(String::new());
        }
        codec::checked_suffix(logical, self.shard_of(logical, key))
    }

    /// The stored form of a value in a shard. No limit is checked: what is too long is never found.
    pub fn physical(logical: &[u8], shard: u16) -> Vec<u8> {
        [logical, codec::suffix(logical, shard).as_bytes()].concat()
    }

    /// The logical value of a stored one.
    pub fn logical<'a>(&self, physical: &'a [u8]) -> &'a [u8] {
        codec::decode(physical).logical
    }
}
