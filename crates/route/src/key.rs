//! Keys within bodies: where an item lies, its partition key made physical, and made logical again.
//!
//! Works on the raw JSON of a key or an item, so that nothing else of it is touched.

use std::borrow::Cow;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use heatsink_dynamo::{AttributeDefinition, Error, KeyType, Value, json};
use heatsink_layout::{
    Affixes, IndexKey, Layout, MAX_PARTITION_KEY, MOVED, PrimaryKey, Slot, SortKey, Table, Unplaced,
    number_codec,
};

use crate::context::{ItemLocation, PlanContext};
use crate::refusal::Unplanned;
use crate::splice::Splice;

/// A key attribute's value: its bytes, and where they stand.
#[derive(Clone, Debug)]
pub(crate) struct KeyText<'a> {
    /// The attribute value; a slice of the body.
    value: &'a [u8],
    /// The JSON string that holds the value, quotes included; a slice of the body.
    raw: &'a [u8],
    /// The value: UTF-8 of a string, the canonical text of a number, decoded binary.
    pub(crate) bytes: Cow<'a, [u8]>,
    kind: KeyType,
}

impl<'a> KeyText<'a> {
    /// Reads `{"S": "text"}`, if it is of the kind that the schema wants and not empty. That it has
    /// no other type beside is checked before (`wire::check`).
    pub(crate) fn read(value: &'a [u8], kind: KeyType) -> Option<Self> {
        let raw = json::member(value, kind.name()).ok()??;
        let text = json::string(raw).ok()?;
        let bytes = match (kind, text) {
            (KeyType::B, text) => Cow::Owned(STANDARD.decode(text.as_bytes()).ok()?),
            (KeyType::N, text) => match number_codec::canonical(&text)? {
                Cow::Borrowed(number) if number.len() + 2 == raw.len() => {
                    // Without an escape it stands there.
                    Cow::Borrowed(raw.get(1..=number.len())?)
                }
                number => Cow::Owned(number.into_owned().into_bytes()),
            },
            (_, Cow::Borrowed(text)) => Cow::Borrowed(text.as_bytes()),
            (_, Cow::Owned(text)) => Cow::Owned(text.into_bytes()),
        };
        (!bytes.is_empty()).then_some(KeyText { value, raw, bytes, kind })
    }

    /// The value, for layouts.
    pub(crate) fn sort_key(&self) -> Option<SortKey<'_>> {
        let text = || std::str::from_utf8(&self.bytes).ok();
        Some(match self.kind {
            KeyType::S => SortKey::S(text()?),
            KeyType::N => SortKey::N(text()?),
            KeyType::B => SortKey::B(&self.bytes),
        })
    }

    /// Puts what makes a key physical around it where it stands.
    pub(crate) fn wrap(&self, affixes: &Affixes, splice: &mut Splice<'_>) {
        match self.kind {
            _ if affixes.before.is_empty() => self.append(&affixes.after, splice),
            // Both are text that JSON does not escape: they go within the quotes, whatever stands
            // there.
            KeyType::S | KeyType::N => {
                splice.insert(self.raw, self.raw.len() - 1, affixes.before.as_str());
                self.append(&affixes.after, splice);
            }
            KeyType::B => {
                splice.replace(self.raw, format!("\"{}\"", STANDARD.encode(affixes.around(&self.bytes))));
            }
        }
    }

    /// Appends a suffix to the key where it stands.
    pub(crate) fn append(&self, suffix: &str, splice: &mut Splice<'_>) {
        if suffix.is_empty() {
            return;
        }
        match self.kind {
            // A suffix is of the canonical text, which need not stand there.
            KeyType::N if !self.is_canonical() => {
                splice.replace(self.raw, [b"\"", &*self.bytes, suffix.as_bytes(), b"\""].concat());
            }
            // The suffix is ASCII that JSON does not escape: it goes before the closing quote,
            // whatever stands there.
            KeyType::S | KeyType::N => splice.insert(self.raw, 1, suffix),
            KeyType::B => {
                let physical = [&*self.bytes, suffix.as_bytes()].concat();
                splice.replace(self.raw, format!("\"{}\"", STANDARD.encode(physical)));
            }
        }
    }

    /// Whether the value stands there as it is here.
    fn is_canonical(&self) -> bool {
        self.raw.len() == self.bytes.len() + 2
            && self.raw.get(1..=self.bytes.len()).is_some_and(|raw| raw == &*self.bytes)
    }

    /// Empties the key where it stands: every DynamoDB refuses such a key. An empty number would be
    /// refused too soon, so one becomes an empty string.
    pub(crate) fn empty(&self, splice: &mut Splice<'_>) {
        match self.kind {
            KeyType::S | KeyType::B => splice.replace(self.raw, "\"\""),
            KeyType::N => splice.replace(self.value, r#"{"S":""}"#),
        }
    }

    /// Takes off a physical key, where it stands, what is around `logical`, a part of it.
    fn strip_to(&self, logical: &[u8], splice: &mut Splice<'_>) {
        let suffix = self.bytes.len() - logical.len();
        if suffix == 0 {
            return;
        }
        let leads = self.bytes.starts_with(logical);
        match self.kind {
            KeyType::B => splice.replace(self.raw, format!("\"{}\"", STANDARD.encode(logical))),
            KeyType::S | KeyType::N
                if leads
                    && match self.kind {
                        KeyType::N => self.is_canonical(),
                        _ => !self.raw.contains(&b'\\'),
                    } =>
            {
                splice.remove(self.raw, 1, suffix);
            }
            KeyType::S | KeyType::N => {
                let mut text = Vec::with_capacity(self.raw.len());
                json::write_string(&mut text, &String::from_utf8_lossy(logical));
                splice.replace(self.raw, text);
            }
        }
    }
}

/// Where an item lies.
#[derive(Clone, Debug)]
pub(crate) struct Located<'a> {
    /// Its logical partition key.
    pub(crate) partition: KeyText<'a>,
    sort: Option<KeyText<'a>>,
    /// The layout in force for it.
    pub(crate) layout: Arc<Layout>,
    /// Where it may lie, and which slot the request goes to.
    pub(crate) location: ItemLocation,
    /// What makes the logical key the physical one of that slot.
    pub(crate) affixes: Affixes,
}

impl Located<'_> {
    /// The item's primary key.
    pub(crate) fn primary(&self) -> Option<PrimaryKey<'_>> {
        let sort = match &self.sort {
            None => None,
            Some(sort) => Some(sort.sort_key()?),
        };
        Some(PrimaryKey { partition: self.partition.sort_key()?, sort })
    }
}

/// Finds where the item with the primary key in `object` (a raw `Key` or `Item`) lies.
pub(crate) fn locate<'a>(
    table: &Table,
    context: &PlanContext<'_>,
    object: &'a [u8],
) -> Result<Located<'a>, Unplanned> {
    let lies = |partition: &[u8], sort: Option<SortKey<'_>>| {
        let layout = context.layout(table, partition);
        let location = context.locate(table, &layout, partition, sort)?;
        if let Some(bucket) = location.slot.bucket {
            context.learn_bucket(table, partition, bucket);
        }
        let affixes = table.affixes(partition, &layout, location.slot)?;
        Ok((layout, location, affixes))
    };
    locate_where(table, object, lies)
}

/// Finds the primary key in `object`, of which `lies` says where the item is.
fn locate_where<'a>(
    table: &Table,
    object: &'a [u8],
    lies: impl FnOnce(&[u8], Option<SortKey<'_>>) -> Result<(Arc<Layout>, ItemLocation, Affixes), Unplaced>,
) -> Result<Located<'a>, Unplanned> {
    let members = json::members(object).map_err(|_| Unplanned::Invalid)?;
    let find = |attribute: &AttributeDefinition| {
        let mut found = members.iter().filter(|(name, _)| *name == attribute.name);
        match (found.next(), found.next()) {
            (Some((_, value)), None) => KeyText::read(value, attribute.key_type).ok_or(Unplanned::Invalid),
            (Some(_), Some(_)) => Err(Unplanned::Refused(Error::serialization(format!(
                "The attribute {} occurs more than once",
                attribute.name
            )))),
            (None, _) => Err(Unplanned::Invalid),
        }
    };
    let partition = find(&table.key.partition)?;
    if partition.bytes.len() > MAX_PARTITION_KEY {
        return Err(Unplanned::Invalid);
    }
    let sort = table.key.sort.as_ref().map(find).transpose()?;
    let sort_key = match &sort {
        Some(sort) => Some(sort.sort_key().ok_or(Unplanned::Invalid)?),
        None => None,
    };
    let (layout, location, affixes) = lies(&partition.bytes, sort_key)?;
    Ok(Located { partition, sort, layout, location, affixes })
}

/// Makes a raw key or item physical: its partition key, and what it holds of the spread keys of
/// indexes.
pub(crate) fn place<'a>(
    table: &Table,
    context: &PlanContext<'_>,
    object: &'a [u8],
    splice: &mut Splice<'_>,
) -> Result<Located<'a>, Unplanned> {
    let located = locate(table, context, object)?;
    put(table, &located, object, splice)?;
    Ok(located)
}

/// What the cursor of a Scan is of, and so where an item of a key on record lay when it was given
/// out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CursorOf {
    /// The layouts in force.
    InForce,
    /// The layout of the table's rules: the key had not moved.
    Former,
    /// One in which the item lay in this shard.
    Shard(u16),
}

/// Makes the raw key at which a Scan goes on physical. Nothing of a key in buckets ever moves: an
/// item lies as the key's own layout says.
pub(crate) fn place_cursor(
    table: &Table,
    context: &PlanContext<'_>,
    object: &[u8],
    of: CursorOf,
    splice: &mut Splice<'_>,
) -> Result<(), Unplanned> {
    let shard = if let CursorOf::Shard(shard) = of { Some(shard) } else { None };
    let lies = |partition: &[u8], sort: Option<SortKey<'_>>| {
        let by_rule = table.by_rule(partition).cloned();
        let has_buckets = by_rule.as_ref().is_some_and(|layout| layout.time().is_some());
        let recorded =
            of != CursorOf::InForce && table.key_layouts().get(partition).is_some() && !has_buckets;
        let (layout, location) = match (by_rule, shard.filter(|_| !has_buckets)) {
            (layout, Some(shard)) => (layout, ItemLocation::at(Slot::shard(shard))),
            (Some(layout), None) if recorded => {
                let slot = layout.slot_of(sort)?;
                (Some(layout), ItemLocation::at(slot))
            }
            (None, None) if recorded => (None, ItemLocation::at(Slot::default())),
            _ => {
                let layout = context.layout(table, partition);
                let location = context.locate(table, &layout, partition, sort)?;
                (Some(layout), location)
            }
        };
        let layout = layout.unwrap_or_else(|| Arc::new(Layout::none()));
        let affixes = match table.affixes(partition, &layout, location.slot) {
            // It has become the physical key of another key's shard.
            Err(Unplaced::Reserved { .. }) => Affixes::default(),
            affixes => affixes?,
        };
        Ok((layout, location, affixes))
    };
    put(table, &locate_where(table, object, lies)?, object, splice)
}

/// Makes a raw key or item physical that was located.
fn put(
    table: &Table,
    located: &Located<'_>,
    object: &[u8],
    splice: &mut Splice<'_>,
) -> Result<(), Unplanned> {
    located.partition.wrap(&located.affixes, splice);
    for key in table.index_keys() {
        spread(key, object, located, splice)?;
    }
    Ok(())
}

/// Makes an item's value of one spread attribute physical. One of another type, or an empty one, is
/// the store's to refuse.
fn spread(
    key: &IndexKey,
    object: &[u8],
    located: &Located<'_>,
    splice: &mut Splice<'_>,
) -> Result<(), Unplanned> {
    let attribute = key.attribute();
    let members = json::members(object).map_err(|_| Unplanned::Invalid)?;
    let mut found = members.iter().filter(|(name, _)| *name == attribute.name);
    let Some((_, value)) = found.next() else { return Ok(()) };
    if found.next().is_some() {
        return Err(Unplanned::Refused(Error::serialization(format!(
            "The attribute {} occurs more than once",
            attribute.name
        ))));
    }
    let Some(value) = KeyText::read(value, attribute.key_type) else { return Ok(()) };
    let primary = located.primary().ok_or(Unplanned::Invalid)?;
    let suffix = key.checked_suffix(&value.bytes, primary)?;
    value.append(&suffix, splice);
    Ok(())
}

/// Makes the partition key of a raw key or item logical again, and the spread keys of indexes, and
/// takes the mark of a moved item off. An object without one is left alone: a projection may have
/// dropped it.
pub(crate) fn strip(table: &Table, object: &[u8], splice: &mut Splice<'_>) -> Result<(), json::Malformed> {
    if let Some(unmarked) = unmarked(table, object)? {
        let unmarked = Bytes::from(unmarked);
        let mut own = Splice::new(&unmarked);
        strip_keys(table, &unmarked, &mut own)?;
        splice.replace(object, own.finish(&unmarked));
        return Ok(());
    }
    strip_keys(table, object, splice)
}

/// A raw item without the mark of an old copy, if it has one.
pub(crate) fn unmarked(table: &Table, item: &[u8]) -> Result<Option<Vec<u8>>, json::Malformed> {
    // Old copies are marked, and gone before every gateway knows that their keys rest.
    if !table.key_layouts().any_changes() || json::member(item, MOVED)?.is_none() {
        return Ok(None);
    }
    json::splice_members(item, &[(MOVED, None)]).map(Some)
}

fn strip_keys(table: &Table, object: &[u8], splice: &mut Splice<'_>) -> Result<(), json::Malformed> {
    let partition = &table.key.partition;
    if let Some(value) = json::member(object, &partition.name)?
        && let Some(key) = KeyText::read(value, partition.key_type)
    {
        key.strip_to(table.logical(&key.bytes), splice);
    }
    for key in table.index_keys() {
        let attribute = key.attribute();
        if let Some(value) = json::member(object, &attribute.name)?
            && let Some(value) = KeyText::read(value, attribute.key_type)
        {
            value.strip_to(key.logical(&value.bytes), splice);
        }
    }
    Ok(())
}

/// A key's bytes as a value.
pub(crate) fn literal(kind: KeyType, bytes: &[u8]) -> Value {
    match kind {
        KeyType::B => Value::B(Bytes::copy_from_slice(bytes)),
        KeyType::S => Value::S(String::from_utf8_lossy(bytes).into_owned()),
        KeyType::N => Value::N(String::from_utf8_lossy(bytes).into_owned()),
    }
}
