//! The partition key of a global index, spread: what is stored of the attribute that an index is keyed by.
//!
//! An item whose attribute is `open` is stored with `open#~3`, where 3 follows from the item's primary key: writes of one index
//! key spread over N, and every point operation knows what is stored without reading it. The suffix codec is that of partition
//! keys ([`codec`](crate::codec)), escape included. The attribute has one stored form, whichever of the table's indexes it is in.
//!
//! While an index that has items already is brought in (or back out), its attribute is **migrating** ([`MigrationPhase`]): some items hold
//! the plain value, others the spread one. Both are read; which one is written depends on the phase.
//!
//! Not here: the table's own partition key ([`Table`](crate::Table)); who migrates an attribute (`adopt`).

use heatsink_dynamo::AttributeDefinition;

use crate::{KeyLayout, KeyTooLong, MAX_PARTITION_KEY, SortKey, Unplaced, codec, hash};

/// In which direction the stored values of an attribute are rewritten, and which form is written now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MigrationPhase {
    /// From plain values to spread ones; otherwise back.
    pub spreads: bool,
    /// Whether the new form is written already. Before that everybody has to learn to read it.
    pub writes_new: bool,
}

impl MigrationPhase {
    /// Whether spread values are written.
    pub fn writes_spread(self) -> bool {
        self.spreads == self.writes_new
    }
}

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
    migration: Option<MigrationPhase>,
}

impl IndexKey {
    pub(crate) fn new(attribute: AttributeDefinition) -> Self {
        IndexKey { attribute, layouts: Vec::new(), migration: None }
    }

    pub(crate) fn migrating(&mut self, phase: MigrationPhase) {
        self.migration = Some(phase);
    }

    /// The phase of its migration, while some items hold it plain and others spread.
    pub fn migration(&self) -> Option<MigrationPhase> {
        self.migration
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

    /// The shard of the item with that primary key, while the attribute has that value. While the attribute migrates, an item may
    /// also be in shard 0.
    pub fn shard_of(&self, logical: &[u8], key: PrimaryKey<'_>) -> u16 {
        match self.shards(logical) {
            0 | 1 => 0,
            shards => hash::jump_xxh3(&key.canonical(), shards),
        }
    }

    /// What may be appended to a value of the item with that primary key: to the one that is written first; while the attribute
    /// migrates also to the other one.
    pub fn suffixes(&self, logical: &[u8], key: PrimaryKey<'_>) -> Vec<String> {
        let home = self.shard_of(logical, key);
        let shards = match self.migration {
            Some(_) if home == 0 => vec![0],
            Some(turn) if turn.writes_spread() => vec![home, 0],
            Some(_) => vec![0, home],
            None => vec![home],
        };
        shards.into_iter().map(|shard| codec::suffix(logical, shard)).collect()
    }

    /// What has to be appended to a value of the item with that primary key when it is written. A value that is too long by itself
    /// is left as it is: the store refuses it.
    ///
    /// # Errors
    /// [`Unplaced::TooLong`] for a value that its suffix makes too long; [`Unplaced::Migrating`] for one in the reserved form while
    /// the attribute migrates: plain values are not escaped, so it could not be told from a spread one.
    pub fn checked_suffix(&self, logical: &[u8], key: PrimaryKey<'_>) -> Result<String, Unplaced> {
        if logical.len() > MAX_PARTITION_KEY {
            return Ok(String::new());
        }
        let home = self.shard_of(logical, key);
        let suffix = codec::checked_suffix(logical, home)?;
        match self.migration {
            Some(_) if codec::is_reserved(logical) => Err(Unplaced::Migrating(self.attribute.name.clone())),
            Some(turn) if !turn.writes_spread() => Ok(String::new()),
            _ => Ok(suffix),
        }
    }

    /// The stored form in which an item with that primary key holds a value once the turn is done, if `spread`, or had it before.
    ///
    /// # Errors
    /// [`KeyTooLong`].
    pub fn form(&self, logical: &[u8], key: PrimaryKey<'_>, spread: bool) -> Result<Vec<u8>, KeyTooLong> {
        codec::encode(logical, if spread { self.shard_of(logical, key) } else { 0 })
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
