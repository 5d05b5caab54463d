//! The partition key of a global index, spread: what is stored of the attribute that an index is keyed by.
//!
//! An item whose attribute is `open` is stored with `open#~3`, where 3 follows from the item's primary key: writes of one index
//! key spread over N, and every point operation knows what is stored without reading it. The suffix codec is that of partition
//! keys ([`codec`](crate::codec)), escape included. The attribute has one stored form, whichever of the table's indexes it is in.
//!
//! While the layouts of its values change, an attribute is **migrating** ([`MigrationPhase`]): some items hold a value in the form of before,
//! others in that of after. Both are read; which one is written depends on the phase. Without layouts a value is stored plain, as it is. The shard is a jump
//! hash, so where a value gets more shards its items go to the added ones only, and where it gets fewer only those of the removed ones
//! leave. Clients' writes take items back as well, through gateways that are one step apart: a reader has to meet the shards of one kind, those of
//! the other, and those of the one again.
//!
//! Not here: the table's own partition key ([`Table`](crate::Table)); who migrates an attribute (`adopt`).

use heatsink_dynamo::AttributeDefinition;

use crate::{KeyLayout, KeyTooLong, MAX_PARTITION_KEY, SortKey, TableLayouts, Unplaced, codec, hash};

/// How far a migration of index keys has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MigrationPhase {
    /// The attributes that migrate.
    pub attributes: Vec<String>,
    /// Their layouts before it. An attribute that has none is stored plain.
    pub from: TableLayouts,
    /// Their layouts after it, likewise.
    pub to: TableLayouts,
    /// Whether the new form is written already. Before that everybody has to learn to read it.
    pub writes_new: bool,
}

impl MigrationPhase {
    /// The first step from plain values to those layouts.
    pub fn spreading(to: &TableLayouts) -> Self {
        let from = TableLayouts::default();
        MigrationPhase { attributes: to.attributes(), from, to: to.clone(), writes_new: false }
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
    /// Those in force; while it migrates, those after it.
    layouts: Vec<KeyLayout>,
    migration: Option<Migration>,
}

/// What is left of the time before, while an attribute migrates.
#[derive(Clone, Debug)]
struct Migration {
    from: Vec<KeyLayout>,
    writes_new: bool,
}

impl IndexKey {
    pub(crate) fn new(attribute: AttributeDefinition) -> Self {
        IndexKey { attribute, layouts: Vec::new(), migration: None }
    }

    pub(crate) fn migrating(&mut self, phase: &MigrationPhase) {
        let of = |layouts: &TableLayouts| -> Vec<KeyLayout> {
            layouts.of_attribute(&self.attribute.name).into_iter().cloned().collect()
        };
        let (from, to) = (of(&phase.from), of(&phase.to));
        self.layouts = to;
        self.migration = Some(Migration { from, writes_new: phase.writes_new });
    }

    /// Whether it migrates, so that items hold its values in two forms.
    pub fn is_migrating(&self) -> bool {
        self.migration.is_some()
    }

    pub(crate) fn add(&mut self, layout: KeyLayout) {
        self.layouts.push(layout);
    }

    /// The attribute.
    pub fn attribute(&self) -> &AttributeDefinition {
        &self.attribute
    }

    /// In how many shards items with a logical value may lie; 1 for one that no rule names, which is escaped like the rest.
    pub fn shards(&self, logical: &[u8]) -> u16 {
        let (before, after) = self.shards_before_and_after(logical);
        before.max(after)
    }

    /// Over how many shards a value is spread before the migration, and after it. Twice the same if it does not migrate.
    fn shards_before_and_after(&self, logical: &[u8]) -> (u16, u16) {
        let after = shards_by(&self.layouts, logical);
        (self.migration.as_ref().map_or(after, |migration| shards_by(&migration.from, logical)), after)
    }

    /// Whether items with a logical value enter that shard as they are rewritten. Into the others none comes, and some leave them.
    pub fn is_entered(&self, logical: &[u8], shard: u16) -> bool {
        match self.shards_before_and_after(logical) {
            (before, after) if before < after => shard >= before,
            (before, after) => before > after && shard < after,
        }
    }

    /// The shard of the item with that primary key, while the attribute has that value; once it has migrated, if it does.
    pub fn shard_of(&self, logical: &[u8], key: PrimaryKey<'_>) -> u16 {
        jump(key, self.shards_before_and_after(logical).1)
    }

    /// The shard of an item before the migration, and after it.
    fn before_and_after(&self, logical: &[u8], key: PrimaryKey<'_>) -> (u16, u16) {
        let (before, after) = self.shards_before_and_after(logical);
        let new = jump(key, after);
        (if before == after { new } else { jump(key, before) }, new)
    }

    /// What may be appended to a value of the item with that primary key: to the one that is written first; while the attribute
    /// migrates also to the other one.
    pub fn suffixes(&self, logical: &[u8], key: PrimaryKey<'_>) -> Vec<String> {
        let (before, after) = self.before_and_after(logical, key);
        let shards = match &self.migration {
            _ if before == after => vec![after],
            Some(migration) if !migration.writes_new => vec![before, after],
            _ => vec![after, before],
        };
        shards.into_iter().map(|shard| codec::suffix(logical, shard)).collect()
    }

    /// What has to be appended to a value of the item with that primary key when it is written. A value that is too long by itself
    /// is left as it is: the store refuses it.
    ///
    /// # Errors
    /// [`Unplaced::TooLong`] for a value that its suffix makes too long, in either form while the attribute migrates;
    /// [`Unplaced::Migrating`] for one in the reserved form while the attribute migrates from plain values or to them: those are not escaped,
    /// so it could not be told from a spread one.
    pub fn checked_suffix(&self, logical: &[u8], key: PrimaryKey<'_>) -> Result<String, Unplaced> {
        if logical.len() > MAX_PARTITION_KEY {
            return Ok(String::new());
        }
        let (before, after) = self.before_and_after(logical, key);
        let (old, new) = (codec::checked_suffix(logical, before)?, codec::checked_suffix(logical, after)?);
        match &self.migration {
            Some(_) if self.has_plain_values() && codec::is_reserved(logical) => {
                Err(Unplaced::Migrating(self.attribute.name.clone()))
            }
            Some(migration) if !migration.writes_new => Ok(old),
            _ => Ok(new),
        }
    }

    /// Whether it migrates from plain values, which are not escaped.
    pub fn comes_from_plain(&self) -> bool {
        self.migration.as_ref().is_some_and(|migration| migration.from.is_empty())
    }

    /// Whether it migrates to plain values, which are not escaped.
    pub fn goes_to_plain(&self) -> bool {
        self.migration.is_some() && self.layouts.is_empty()
    }

    /// Whether plain values, which are not escaped, lie beside spread ones.
    pub fn has_plain_values(&self) -> bool {
        self.migration.as_ref().is_some_and(|migration| migration.from.is_empty() || self.layouts.is_empty())
    }

    /// The stored form of a value of the item with that primary key: once the attribute has migrated, if it does.
    ///
    /// # Errors
    /// [`KeyTooLong`].
    pub fn form(&self, logical: &[u8], key: PrimaryKey<'_>) -> Result<Vec<u8>, KeyTooLong> {
        codec::encode(logical, self.before_and_after(logical, key).1)
    }

    /// The same before the migration.
    ///
    /// # Errors
    /// [`KeyTooLong`].
    pub fn former(&self, logical: &[u8], key: PrimaryKey<'_>) -> Result<Vec<u8>, KeyTooLong> {
        codec::encode(logical, self.before_and_after(logical, key).0)
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

/// Over how many shards layouts spread a value: at least 1.
fn shards_by(layouts: &[KeyLayout], logical: &[u8]) -> u16 {
    let layout = layouts.iter().find(|one| one.keys().matches(logical));
    layout.map_or(1, |one| one.layout().shards.max(1))
}

/// The shard of the item with that primary key, of so many.
fn jump(key: PrimaryKey<'_>, shards: u16) -> u16 {
    if shards <= 1 { 0 } else { hash::jump_xxh3(&key.canonical(), shards) }
}
