//! The partition key of a global index, spread: what is stored of the attribute that an index is
//! keyed by.
//!
//! An item whose attribute is `open` is stored with `open#~3`, where 3 follows from the item's
//! primary key: writes of one index key spread over N, and every point operation knows what is
//! stored without reading it. The suffix codec is that of partition keys ([`codec`](crate::codec)),
//! escape included. The attribute has one stored form, whichever of the table's indexes it is in.
//!
//! While the layouts of its values change, an attribute is **migrating** ([`MigrationPhase`]): some
//! items hold a value in the form of before, others in that of after. Both are read; which one is
//! written depends on the phase. Without layouts a value is stored plain, as it is. The shard is a
//! jump hash, so where a value gets more shards its items go to the added ones only, and where it
//! gets fewer only those of the removed ones leave. Clients' writes take items back as well,
//! through gateways that are one step apart: a reader has to meet the shards of one kind, those of
//! the other, and those of the one again.
//!
//! In an index that no rule names, single values can be on record by themselves
//! ([`ValueLayout`](crate::ValueLayout)): only they are spread, and nothing is escaped.
//!
//! Not here: the table's own partition key ([`Table`](crate::Table)); who migrates an attribute
//! (`adopt`).

use std::collections::HashMap;

use heatsink_dynamo::AttributeDefinition;

use crate::codec::Decoded;
use crate::{
    KeyLayout, KeyTooLong, MAX_PARTITION_KEY, SortKey, TableLayouts, Unplaced, ValueLayout, codec, hash,
};

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
    /// The least and the greatest number of shards, up to `most`, with which a value of the item
    /// with this key is stored in `shard`; with all numbers between them it is, too. `None` if it
    /// is with none.
    pub fn shard_counts(self, shard: u16, most: u16) -> Option<(u16, u16)> {
        hash::jump_xxh3_counts(&self.canonical(), shard, most)
    }

    /// The bytes that are hashed: the length of the partition key in four bytes, the partition key,
    /// the sort key.
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
    /// The values that are on record by themselves. Where there are any, no rule names the
    /// attribute.
    values: HashMap<Vec<u8>, ValueLayout>,
}

/// What is left of the time before, while an attribute migrates.
#[derive(Clone, Debug)]
struct Migration {
    from: Vec<KeyLayout>,
    writes_new: bool,
}

/// The shard counts by which items with one value may be stored.
struct Counts {
    /// Once the value has migrated, if it does.
    target: u16,
    /// By which it is written now.
    written: u16,
    /// By which items may be stored besides; some perhaps named twice.
    others: Vec<u16>,
}

impl Counts {
    fn of(shards: u16) -> Self {
        Counts { target: shards, written: shards, others: Vec::new() }
    }

    /// All of them, the written one first.
    fn all(&self) -> impl Iterator<Item = u16> {
        std::iter::once(self.written).chain(self.others.iter().copied())
    }
}

impl IndexKey {
    pub(crate) fn new(attribute: AttributeDefinition) -> Self {
        IndexKey { attribute, layouts: Vec::new(), migration: None, values: HashMap::new() }
    }

    pub(crate) fn migrating(&mut self, phase: &MigrationPhase) {
        let of = |layouts: &TableLayouts| -> Vec<KeyLayout> {
            layouts.of_attribute(&self.attribute.name).into_iter().cloned().collect()
        };
        let (from, to) = (of(&phase.from), of(&phase.to));
        self.layouts = to;
        self.migration = Some(Migration { from, writes_new: phase.writes_new });
    }

    pub(crate) fn add(&mut self, layout: KeyLayout) {
        self.layouts.push(layout);
    }

    pub(crate) fn add_value(&mut self, layout: &ValueLayout) {
        self.values.insert(layout.value.clone(), layout.clone());
    }

    /// Whether it migrates, or a value of it does: a worker rewrites items.
    pub fn is_migrating(&self) -> bool {
        self.migration.is_some() || self.values.values().any(|one| one.migration.is_some())
    }

    /// Whether items may hold one value in several forms, because it migrates or not all items
    /// could be rewritten.
    pub fn is_mixed(&self) -> bool {
        self.migration.is_some() || self.values.values().any(ValueLayout::is_mixed)
    }

    /// The attribute.
    pub fn attribute(&self) -> &AttributeDefinition {
        &self.attribute
    }

    /// The values that are on record by themselves, in no order.
    pub fn values(&self) -> impl Iterator<Item = &ValueLayout> {
        self.values.values()
    }

    fn counts(&self, logical: &[u8]) -> Counts {
        if let Some(value) = self.values.get(logical) {
            let written = value.written();
            let others = value.counts().filter(|count| *count != written).collect();
            return Counts { target: value.target(), written, others };
        }
        let target = shards_by(&self.layouts, logical);
        match &self.migration {
            None => Counts::of(target),
            Some(migration) => match shards_by(&migration.from, logical) {
                before if before == target => Counts::of(target),
                before if migration.writes_new => Counts { target, written: target, others: vec![before] },
                before => Counts { target, written: before, others: vec![target] },
            },
        }
    }

    /// In how many shards items with a logical value may lie; 1 for one that nothing names.
    pub fn shards(&self, logical: &[u8]) -> u16 {
        self.counts(logical).all().max().unwrap_or(1)
    }

    /// When that shard of a value is read, where items may hold the value in several forms: items
    /// that are rewritten meanwhile only go from shards that are read earlier to such that are read
    /// later.
    pub fn stage(&self, logical: &[u8], shard: u16) -> usize {
        let counts = self.counts(logical);
        if shard >= counts.target {
            return 0;
        }
        let mut below: Vec<u16> = counts.all().filter(|count| *count <= shard).collect();
        below.sort_unstable();
        below.dedup();
        1 + below.len()
    }

    /// The shard of the item with that primary key, while the attribute has that value; once it has
    /// migrated, if it does.
    pub fn shard_of(&self, logical: &[u8], key: PrimaryKey<'_>) -> u16 {
        jump(key, self.counts(logical).target)
    }

    /// The shards in which an item may lie, first the one to which it is written.
    fn shards_of(&self, logical: &[u8], key: PrimaryKey<'_>) -> Vec<u16> {
        let mut shards: Vec<u16> = Vec::new();
        for count in self.counts(logical).all() {
            let shard = jump(key, count);
            if !shards.contains(&shard) {
                shards.push(shard);
            }
        }
        shards
    }

    /// What may be appended to a value of the item with that primary key, first what is when it is
    /// written.
    pub fn suffixes(&self, logical: &[u8], key: PrimaryKey<'_>) -> Vec<String> {
        self.shards_of(logical, key).into_iter().map(|shard| self.suffix(logical, shard)).collect()
    }

    /// What has to be appended to a value of the item with that primary key when it is written. A
    /// value that is too long by itself is left as it is: the store refuses it.
    ///
    /// # Errors
    /// [`Unplaced::TooLong`] for a value that its suffix makes too long, in any of its forms;
    /// [`Unplaced::Migrating`] for one in the reserved form while the attribute migrates from plain
    /// values or to them: those are not escaped, so it could not be told from a spread one;
    /// [`Unplaced::Reserved`] for a shard of a value on record.
    pub fn checked_suffix(&self, logical: &[u8], key: PrimaryKey<'_>) -> Result<String, Unplaced> {
        self.refuse_shard(logical)?;
        if logical.len() > MAX_PARTITION_KEY {
            return Ok(String::new());
        }
        let shards = self.shards_of(logical, key);
        shards.iter().try_for_each(|shard| self.encode(logical, *shard).map(drop))?;
        if self.has_plain_values() && codec::is_reserved(logical) {
            return Err(Unplaced::Migrating(self.attribute.name.clone()));
        }
        Ok(shards.first().map(|shard| self.suffix(logical, *shard)).unwrap_or_default())
    }

    /// Refuses a client's value that is the stored form of a shard of a value on record: it would
    /// be read as that one.
    ///
    /// # Errors
    /// [`Unplaced::Reserved`].
    pub fn refuse_shard(&self, value: &[u8]) -> Result<(), Unplaced> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        match self.value_on_record(value) {
            Some((of, shard)) if shard < of.reserved => {
                Err(Unplaced::Reserved { key: text(value), logical: text(&of.value) })
            }
            _ => Ok(()),
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

    /// The stored form of a value of the item with that primary key: once it has migrated, if it
    /// does.
    ///
    /// # Errors
    /// [`KeyTooLong`].
    pub fn form(&self, logical: &[u8], key: PrimaryKey<'_>) -> Result<Vec<u8>, KeyTooLong> {
        self.encode(logical, self.shard_of(logical, key))
    }

    /// All forms in which such an item may be stored. What is too long to take a suffix is stored
    /// without one.
    pub fn forms(&self, logical: &[u8], key: PrimaryKey<'_>) -> Vec<Vec<u8>> {
        let forms = self.shards_of(logical, key).into_iter();
        forms.filter_map(|shard| self.encode(logical, shard).ok()).collect()
    }

    fn encode(&self, logical: &[u8], shard: u16) -> Result<Vec<u8>, KeyTooLong> {
        let suffix = self.suffix(logical, shard);
        if !suffix.is_empty() && logical.len() + suffix.len() > MAX_PARTITION_KEY {
            return Err(KeyTooLong { logical: logical.len(), suffix: suffix.len() });
        }
        Ok([logical, suffix.as_bytes()].concat())
    }

    fn suffix(&self, logical: &[u8], shard: u16) -> String {
        if self.values.is_empty() { codec::suffix(logical, shard) } else { codec::plain_suffix(shard) }
    }

    /// The stored form of a value in a shard. No limit is checked: what is too long is never found.
    pub fn physical(&self, logical: &[u8], shard: u16) -> Vec<u8> {
        [logical, self.suffix(logical, shard).as_bytes()].concat()
    }

    /// A stored value, read.
    pub fn decode<'a>(&self, physical: &'a [u8]) -> Decoded<'a> {
        if self.values.is_empty() {
            return codec::decode(physical);
        }
        // What is reserved before it is used, and after, is a client's value where it is stored.
        let used = self.value_on_record(physical).filter(|(of, shard)| *shard < of.extent());
        let (logical, shard) = used
            .map_or((physical, 0), |(of, shard)| (physical.get(..of.value.len()).unwrap_or(physical), shard));
        Decoded { logical, shard }
    }

    /// The logical value of a stored one.
    pub fn logical<'a>(&self, physical: &'a [u8]) -> &'a [u8] {
        self.decode(physical).logical
    }

    /// Reads a value as a shard, at least 1, of one on record.
    fn value_on_record(&self, value: &[u8]) -> Option<(&ValueLayout, u16)> {
        if self.values.is_empty() {
            return None;
        }
        let (logical, shard) = codec::split_shard(value)?;
        Some((self.values.get(logical)?, shard))
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
