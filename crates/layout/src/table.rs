//! A table that is sharded: which of its keys is laid out how, and how its physical keys are
//! written and read.
//!
//! Not here: the layouts that rules give its keys ([`TableLayouts`]).

use std::sync::Arc;

use heatsink_dynamo::{KeyType, TableSchema};

use crate::codec::{self, MAX_PARTITION_KEY};
use crate::number_codec;
use crate::{
    Affixes, Changing, InForce, IndexKey, KeyLayout, KeyLayouts, KeyTooLong, Layout, MigrationPhase, OfIndex,
    PhysicalKeys, Slot, Strategy, TableLayouts, Unplaced, ValueLayout,
};

/// A table that is on record as sharded: its schema, and how its keys are laid out.
#[derive(Debug)]
pub struct Table {
    schema: TableSchema,
    layouts: Arc<TableLayouts>,
    /// The layouts of single keys, which precede those.
    key_layouts: Arc<KeyLayouts>,
    form: Form,
    index_keys: Vec<IndexKey>,
    /// What becomes of clients' keys that are written like physical ones, for each layout.
    pub(crate) physical_keys: Vec<PhysicalKeys>,
    /// Whether it may have held items before it was laid out so.
    pub(crate) adopted: bool,
    /// How all its keys get other layouts, if they do.
    changing: Option<Changing>,
    version: u64,
}

/// How the physical keys of a table are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// By the suffix codec.
    Suffix,
    /// By the suffix codec of numbers.
    Number,
    /// By the suffix codec with buckets.
    Buckets,
    /// By templates; keys that no rule with a template names are written as they are.
    Templates,
    /// As they are: only keys of indexes are spread.
    Whole,
    /// As they are, but for shards of the keys that are on record one by one.
    Recorded,
}

impl std::ops::Deref for Table {
    type Target = TableSchema;

    fn deref(&self) -> &TableSchema {
        &self.schema
    }
}

impl Table {
    /// A table whose keys are laid out so.
    pub fn new(schema: TableSchema, layouts: Arc<TableLayouts>) -> Self {
        let form = if layouts.iter().any(|one| one.layout().template().is_some()) {
            Form::Templates
        } else if layouts.iter().any(|one| one.layout().time().is_some()) {
            Form::Buckets
        } else if layouts.iter().next().is_some() && layouts.iter().all(|one| one.index().is_some()) {
            Form::Whole
        } else if schema.key.partition.key_type == KeyType::N {
            Form::Number
        } else {
            Form::Suffix
        };
        let mut index_keys: Vec<IndexKey> = Vec::new();
        for one in layouts.iter() {
            let Some(OfIndex { attribute, .. }) = one.index() else { continue };
            if !index_keys.iter().any(|known| known.attribute() == attribute) {
                index_keys.push(IndexKey::new(attribute.clone()));
            }
            if let Some(key) = index_keys.iter_mut().find(|known| known.attribute() == attribute) {
                key.add(one.clone());
            }
        }
        let key_layouts = Arc::default();
        Table {
            schema,
            layouts,
            key_layouts,
            form,
            index_keys,
            physical_keys: Vec::new(),
            adopted: false,
            changing: None,
            version: 0,
        }
    }

    /// The same table with layouts of single keys, which precede the others.
    #[must_use]
    pub fn with_key_layouts(mut self, key_layouts: Arc<KeyLayouts>) -> Self {
        if self.layouts.iter().all(|one| one.index().is_some()) && key_layouts.version() > 0 {
            self.form = Form::Recorded;
        }
        self.key_layouts = key_layouts;
        self
    }

    /// The same table with layouts of single values of index keys. Those of attributes that rules
    /// spread do not count: rules precede them.
    #[must_use]
    pub fn with_value_layouts(mut self, values: &[ValueLayout]) -> Self {
        for value in
            values.iter().filter(|value| self.layouts.of_attribute(&value.index.attribute.name).is_empty())
        {
            let attribute = &value.index.attribute;
            if !self.index_keys.iter().any(|known| known.attribute() == attribute) {
                self.index_keys.push(IndexKey::new(attribute.clone()));
            }
            if let Some(key) = self.index_keys.iter_mut().find(|known| known.attribute() == attribute) {
                key.add_value(value);
            }
        }
        if !values.is_empty() && matches!(self.form, Form::Suffix | Form::Number) && self.layouts.is_empty() {
            self.form = Form::Whole;
        }
        self
    }

    /// The same table, whose record has that version.
    #[must_use]
    pub fn of_version(self, version: u64) -> Self {
        Table { version, ..self }
    }

    /// The version of its record, which counts every change of it and of those of its keys.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The same table while all its keys get other layouts. Without layouts of its own keys, only
    /// shards of those on record are read as such.
    #[must_use]
    pub fn changing(mut self, changing: Changing) -> Self {
        if self.layouts.iter().all(|one| one.index().is_some()) {
            self.form = Form::Recorded;
        }
        self.changing = Some(changing);
        self
    }

    /// How all its keys get other layouts, if they do.
    pub fn change(&self) -> Option<&Changing> {
        self.changing.as_ref()
    }

    /// The change of the table that a logical key without a record is part of.
    pub fn change_of(&self, key: &[u8]) -> Option<&Changing> {
        self.changing.as_ref().filter(|_| self.key_layouts.get(key).is_none())
    }

    /// The layouts of single keys.
    pub fn key_layouts(&self) -> &Arc<KeyLayouts> {
        &self.key_layouts
    }

    /// The layout of a logical key: its own on record, or that of the first rule that names it;
    /// `None` for a key that stays whole because nothing names it. Of a key that moves, the one
    /// before.
    pub fn layout_of(&self, key: &[u8]) -> Option<&Arc<Layout>> {
        self.recorded(key).map(InForce::settled).or_else(|| self.by_rule(key))
    }

    /// The layout that the first rule which names a logical key gives it. A number without room for
    /// a shard stays whole, as if none did.
    pub fn by_rule(&self, key: &[u8]) -> Option<&Arc<Layout>> {
        self.layouts.of(key).filter(|_| self.can_have_shards(key))
    }

    /// Whether a logical key can have shards: every one but numbers without room for them.
    pub fn can_have_shards(&self, key: &[u8]) -> bool {
        self.key.partition.key_type != KeyType::N || number_codec::has_room(key)
    }

    /// What is in force for a logical key; `None` for a key that stays whole because nothing names
    /// it.
    pub fn in_force(&self, key: &[u8]) -> Option<InForce> {
        let of_rule = || self.by_rule(key).map(|layout| InForce::Stable(Arc::clone(layout)));
        self.recorded(key).cloned().or_else(of_rule)
    }

    fn recorded(&self, key: &[u8]) -> Option<&InForce> {
        if self.key_layouts.is_empty() {
            return None;
        }
        self.key_layouts.get(key).map(|recorded| &recorded.in_force)
    }

    /// The same table while index keys migrate. Its layouts name them, be it those of before or of
    /// after.
    #[must_use]
    pub fn migrating(mut self, phase: &MigrationPhase) -> Self {
        let named = self.index_keys.iter_mut().filter(|key| phase.attributes.contains(&key.attribute().name));
        named.for_each(|key| key.migrating(phase));
        self
    }

    /// The attributes that are stored spread because they are the partition keys of indexes; never
    /// a key of the table.
    pub fn index_keys(&self) -> &[IndexKey] {
        &self.index_keys
    }

    /// Whether keys of its indexes migrate: a worker rewrites items while clients continue.
    pub fn is_migrating(&self) -> bool {
        self.index_keys.iter().any(IndexKey::is_migrating)
    }

    /// Whether some of its keys are written by templates.
    pub(crate) fn has_templates(&self) -> bool {
        self.form == Form::Templates
    }

    /// Whether every partition key of the table is stored as it is.
    pub fn keys_are_whole(&self) -> bool {
        self.form == Form::Whole
    }

    /// The spread attribute of that name.
    pub fn index_key(&self, attribute: &str) -> Option<&IndexKey> {
        self.index_keys.iter().find(|key| key.attribute().name == attribute)
    }

    /// The attributes whose stored values are not what the client sent: the partition key, and the
    /// spread keys of indexes.
    pub fn stored_otherwise(&self) -> impl Iterator<Item = &str> {
        let partition = std::iter::once(self.key.partition.name.as_str());
        partition.chain(self.index_keys.iter().map(|key| key.attribute().name.as_str()))
    }

    /// Whether values of that attribute are stored with shard suffixes.
    pub fn is_suffixed(&self, attribute: &str) -> bool {
        self.index_key(attribute).is_some() || !self.keys_are_whole() && self.key.partition.name == attribute
    }

    /// How its keys are laid out.
    pub fn layouts(&self) -> &Arc<TableLayouts> {
        &self.layouts
    }

    /// Whether some of its keys hold counters.
    pub fn has_counters(&self) -> bool {
        self.counter_attributes().next().is_some()
    }

    /// The attributes of its counters, by rules and of single keys; some perhaps twice.
    pub fn counter_attributes(&self) -> impl Iterator<Item = &String> {
        let of_rules = self.layouts.iter().filter_map(|one| one.layout().counter_attributes()).flatten();
        of_rules.chain(self.key_layouts.counter_attributes())
    }

    /// Whether some of its keys lie in shards that others draw.
    pub fn has_externally_assigned(&self) -> bool {
        self.layouts.iter().any(|one| one.index().is_none() && one.layout().is_externally_assigned())
    }

    /// The slot of a physical key, if its shard is externally assigned.
    pub fn assigned_slot(&self, physical: &[u8]) -> Option<Slot> {
        if !self.has_externally_assigned() {
            return None;
        }
        let (logical, slot) = self.decode(physical);
        let layout = self.layout_of(logical)?;
        slot.filter(|_| layout.is_externally_assigned())
    }

    /// Whether a stored item, with that physical key, is a part of a counter that does not count as
    /// an item.
    pub fn is_part(&self, physical: &[u8]) -> bool {
        let (logical, slot) = self.decode(physical);
        let Some(slot) = slot.filter(|slot| *slot != Slot::default()) else { return false };
        // Before the names that a counter is to have are known to be free, they are others'.
        let is_free = |layout: &Layout| self.recorded(logical).is_some() && slot.shard >= layout.shards;
        self.layout_of(logical)
            .is_some_and(|layout| layout.counter_attributes().is_some() && !is_free(layout))
    }

    /// What has to be put around a logical key, laid out so, to make it the physical key of a slot.
    ///
    /// # Errors
    /// [`Unplaced`] for a key that this makes too long, or that a template would give the physical
    /// key of another one.
    pub fn affixes(&self, logical: &[u8], layout: &Layout, slot: Slot) -> Result<Affixes, Unplaced> {
        let affixes = match self.form {
            Form::Suffix => Affixes::suffix(codec::suffix(logical, slot.shard)),
            Form::Number => {
                if let Some((of, shard)) = number_codec::split_shard(logical) {
                    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                    return Err(Unplaced::ReservedNumber { key: text(logical), logical: text(of), shard });
                }
                Self::number_suffix(logical, slot)?
            }
            Form::Buckets => Affixes::suffix(codec::bucket_suffix(logical, slot)),
            Form::Templates => layout.template().map(|template| template.affixes(slot)).unwrap_or_default(),
            Form::Whole => Affixes::default(),
            Form::Recorded => {
                self.refuse_shard(logical)?;
                match self.key.partition.key_type {
                    KeyType::S | KeyType::B => Affixes::suffix(codec::plain_suffix(slot.shard)),
                    KeyType::N => Self::number_suffix(logical, slot)?,
                }
            }
        };
        if !affixes.is_empty() && logical.len() + affixes.len() > MAX_PARTITION_KEY {
            return Err(KeyTooLong { logical: logical.len(), suffix: affixes.len() }.into());
        }
        if self.form == Form::Templates {
            self.admit(logical)?;
            if affixes.is_empty() && self.written_as_physical(logical) == Some(PhysicalKeys::AsShard) {
                return Ok(affixes);
            }
            // Two keys never share a physical key, since it is read as one of them only: the other
            // is refused.
            let physical = affixes.around(logical);
            if self.decode(&physical) != (logical, layout.template().map(|_| slot)) {
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                return Err(Unplaced::Collides { logical: text(logical), physical: text(&physical) });
            }
        }
        Ok(affixes)
    }

    fn number_suffix(logical: &[u8], slot: Slot) -> Result<Affixes, Unplaced> {
        let no_room = || Unplaced::NoRoom(String::from_utf8_lossy(logical).into_owned());
        number_codec::suffix(logical, slot.shard).map(Affixes::suffix).ok_or_else(no_room)
    }

    /// Refuses a client's key that is the physical key of a recorded key's shard: it would be read
    /// as an item of that key.
    fn refuse_shard(&self, key: &[u8]) -> Result<(), Unplaced> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        match self.key_layouts.shard(key, self.key.partition.key_type) {
            Some((logical, _)) => Err(Unplaced::Reserved { key: text(key), logical: text(logical) }),
            None => Ok(()),
        }
    }

    /// The physical key of a logical key, laid out so, in a slot.
    ///
    /// # Errors
    /// As [`affixes`](Self::affixes).
    pub fn physical(&self, logical: &[u8], layout: &Layout, slot: Slot) -> Result<Vec<u8>, Unplaced> {
        Ok(self.affixes(logical, layout, slot)?.around(logical))
    }

    /// Reads a physical key: the logical key, a part of it, and its slot. What no logical key is
    /// written as (an unescaped key of before the table was adopted; in a table with templates also
    /// every key that none of them is for) is its own logical key; in a table with templates it has
    /// no slot.
    pub fn decode<'a>(&self, physical: &'a [u8]) -> (&'a [u8], Option<Slot>) {
        match self.form {
            Form::Whole => (physical, Some(Slot::default())),
            Form::Recorded => {
                let key_type = self.key.partition.key_type;
                let (logical, shard) = self.key_layouts.shard(physical, key_type).unwrap_or((physical, 0));
                (logical, Some(Slot::shard(shard)))
            }
            Form::Number => {
                let (logical, shard) = number_codec::split_shard(physical).unwrap_or((physical, 0));
                (logical, Some(Slot::shard(shard)))
            }
            Form::Suffix => {
                let decoded = codec::decode(physical);
                (decoded.logical, Some(Slot::shard(decoded.shard)))
            }
            Form::Buckets => {
                let (length, slot) = codec::bucket_decode(physical);
                (physical.get(..length).unwrap_or(physical), Some(slot))
            }
            Form::Templates => {
                let read = |one: &KeyLayout| {
                    let Strategy::Template { template, time, .. } = &one.layout().strategy else {
                        return None;
                    };
                    let granularity = time.as_ref().map(|time| time.granularity);
                    let (logical, slot) = template.decode(physical, granularity)?;
                    let own = self.layouts.of(logical)?;
                    (slot.shard < one.layout().shards && Arc::ptr_eq(own, one.layout()))
                        .then_some((logical, Some(slot)))
                };
                self.layouts.iter().find_map(read).unwrap_or((physical, None))
            }
        }
    }

    /// The logical key of a physical one.
    pub fn logical<'a>(&self, physical: &'a [u8]) -> &'a [u8] {
        self.decode(physical).0
    }

    /// Whether a logical key ends in the reserved form, and so is stored escaped; of a number, has
    /// no place at all.
    pub fn is_reserved(&self, key: &[u8]) -> bool {
        match self.form {
            Form::Suffix => codec::is_reserved(key),
            Form::Number => number_codec::split_shard(key).is_some(),
            Form::Buckets => codec::is_reserved_with_buckets(key),
            Form::Templates | Form::Whole | Form::Recorded => false,
        }
    }
}
