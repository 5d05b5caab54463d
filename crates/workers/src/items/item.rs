//! One stored item as adoption sees it: its key, its target key, its size, its part of the
//! checksum.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use heatsink_control::reshard_intent::key_text;
use heatsink_dynamo::{Error, KeyType};
use heatsink_layout::{Hash, Layout, MAX_PARTITION_KEY, SortKey, Table, Unplaced, number_codec};
use serde_json::{Map, Value as Json, json};
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use crate::direction::Direction;
use crate::error::WorkerError;

/// An item's attributes as the store gave them.
pub(crate) type Attributes = Map<String, Json>;

/// A table's schema and layouts, from which the key of an item follows.
#[derive(Debug)]
pub(crate) struct ItemContext {
    pub table: Arc<Table>,
}

/// The store sent an item that does not have the table's key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NoKey;

impl From<NoKey> for Error {
    fn from(_: NoKey) -> Self {
        Error::internal("The store sent an item without the table's key")
    }
}

impl From<NoKey> for WorkerError {
    fn from(no_key: NoKey) -> Self {
        WorkerError::Store(no_key.into())
    }
}

impl ItemContext {
    /// The bytes of an item's partition key.
    pub fn key(&self, item: &Attributes) -> Result<Vec<u8>, NoKey> {
        let partition = &self.table.key.partition;
        bytes(item.get(&partition.name).ok_or(NoKey)?, partition.key_type)
    }

    /// A partition key for people.
    pub fn text(&self, key: &[u8]) -> String {
        key_text(key, self.table.key.partition.key_type)
    }

    /// The item's primary key, as requests name it.
    pub fn primary_key(&self, item: &Attributes) -> Attributes {
        let names = [Some(&self.table.key.partition), self.table.key.sort.as_ref()];
        let found = names.into_iter().flatten().filter_map(|attribute| item.get_key_value(&attribute.name));
        found.map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    /// A hash of an item's logical primary key.
    pub fn identity(&self, item: &Attributes, logical: &[u8]) -> u64 {
        xxh3_64(Json::Object(self.primary_key(&self.rekeyed(item, logical))).to_string().as_bytes())
    }

    /// The same item with another partition key.
    pub fn rekeyed(&self, item: &Attributes, key: &[u8]) -> Attributes {
        let partition = &self.table.key.partition;
        let mut item = item.clone();
        item.insert(partition.name.clone(), value(key, partition.key_type));
        item
    }

    /// Whether the table was sharded by hand: its items have physical keys before the adoption, and
    /// keep them.
    pub fn by_hand(&self) -> bool {
        self.table.layouts().iter().any(|one| one.layout().template().is_some())
    }

    /// Whether this logical key cannot be read as a shard of another key.
    pub fn stands_alone(&self, logical: &[u8]) -> bool {
        !self.by_hand() || self.table.decode(logical).1.is_none()
    }

    /// The logical key of an item that is stored under `key`, before or after an adoption.
    pub fn logical<'a>(&self, key: &'a [u8], direction: Direction) -> &'a [u8] {
        if direction == Direction::Adopt && !self.by_hand() { key } else { self.table.logical(key) }
    }

    /// The physical key that the layout assigns to the item of that logical key, which is stored
    /// under `key`.
    pub fn assigned_key(
        &self,
        key: &[u8],
        logical: &[u8],
        item: &Attributes,
    ) -> Result<Result<Vec<u8>, Unplaced>, NoKey> {
        let whole = Layout::none();
        let layout = self.table.layout_of(logical).map_or(&whole, |layout| layout);
        let sort = self.sort(item)?;
        let sort = sort.as_ref().map(Scalar::key);
        let slot = match self.table.decode(key).1 {
            // Other writers choose the shard at random, so the item is right in any slot.
            Some(slot)
                if layout.hash == Hash::Random
                    && layout.slots_of(sort).is_ok_and(|slots| slots.contains(&slot)) =>
            {
                Ok(slot)
            }
            _ => layout.hashed_slot(sort),
        };
        Ok(slot.and_then(|slot| self.table.physical(logical, layout, slot)))
    }

    /// The value of an item's sort key.
    pub fn sort(&self, item: &Attributes) -> Result<Option<Scalar>, NoKey> {
        match &self.table.key.sort {
            None => Ok(None),
            Some(sort) => Scalar::of(item.get(&sort.name).ok_or(NoKey)?).ok_or(NoKey).map(Some),
        }
    }

    /// The longest partition key that the table can hold: an index that has it as its sort key
    /// takes fewer bytes.
    pub fn longest_key(&self) -> usize {
        let partition = &self.table.key.partition.name;
        let in_sort_key = self.table.indexes.iter().any(|index| index.key.sort_has(partition));
        if in_sort_key { MAX_SORT_KEY } else { MAX_PARTITION_KEY }
    }
}

/// The longest sort key, in bytes (AWS Developer Guide, "Constraints", sort keys).
const MAX_SORT_KEY: usize = 1_024;

/// A key's bytes as an attribute value.
pub(crate) fn value(bytes: &[u8], key_type: KeyType) -> Json {
    match key_type {
        KeyType::B => json!({ "B": BASE64.encode(bytes) }),
        KeyType::N => json!({ "N": String::from_utf8_lossy(bytes) }),
        KeyType::S => json!({ "S": String::from_utf8_lossy(bytes) }),
    }
}

/// The bytes of a key's value; of a number its canonical text.
pub(crate) fn bytes(value: &Json, key_type: KeyType) -> Result<Vec<u8>, NoKey> {
    let text = value.get(key_type.name()).and_then(Json::as_str).ok_or(NoKey)?;
    match key_type {
        KeyType::B => BASE64.decode(text).map_err(|_| NoKey),
        KeyType::N => number_codec::canonical(text).map(|text| text.into_owned().into_bytes()).ok_or(NoKey),
        KeyType::S => Ok(text.as_bytes().to_vec()),
    }
}

/// A value from which a shard can be computed.
pub(crate) enum Scalar {
    S(String),
    N(String),
    B(Vec<u8>),
}

impl Scalar {
    pub fn of(value: &Json) -> Option<Self> {
        let text = |kind: &str| value.get(kind).and_then(Json::as_str);
        Some(match (text("S"), text("N"), text("B")) {
            (Some(text), ..) => Scalar::S(text.to_owned()),
            (_, Some(text), _) => Scalar::N(text.to_owned()),
            (.., Some(text)) => Scalar::B(BASE64.decode(text).ok()?),
            _ => return None,
        })
    }

    pub fn key(&self) -> SortKey<'_> {
        match self {
            Scalar::S(text) => SortKey::S(text),
            Scalar::N(text) => SortKey::N(text),
            Scalar::B(bytes) => SortKey::B(bytes),
        }
    }
}

/// The number of reserved suffixes that a key ends in: 0 for `game`, 1 for `game#~1`, 2 for
/// `game#~1#~0`. Numbers have one at most.
pub(crate) fn depth(table: &Table, mut key: &[u8]) -> usize {
    if table.key.partition.key_type == KeyType::N {
        return usize::from(table.is_reserved(key));
    }
    let mut depth = 0;
    while table.is_reserved(key) {
        let Some(end) = key.iter().rposition(|byte| *byte == b'#') else { break };
        key = &key[..end];
        depth += 1;
    }
    depth
}

/// A primary key for a message; long values are cut.
pub(crate) fn shown(key: &Attributes) -> String {
    let cut = |value: &Json| match value
        .as_object()
        .and_then(|object| object.values().next())
        .and_then(Json::as_str)
    {
        Some(text) if text.chars().count() > 60 => {
            format!("\"{}…\"", text.chars().take(60).collect::<String>())
        }
        Some(text) => format!("{text:?}"),
        None => value.to_string(),
    };
    let parts: Vec<String> = key.iter().map(|(name, value)| format!("{name} = {}", cut(value))).collect();
    parts.join(", ")
}

/// A checksum over items that does not depend on their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Checksum(u128);

impl Checksum {
    /// Adds an item, under its logical key.
    pub fn add(&mut self, item: &Attributes) {
        // serde_json keeps members sorted by name, so equal items have equal text once their sets
        // are sorted.
        let text =
            json!(item.iter().map(|(name, value)| (name.clone(), canonical(value))).collect::<Attributes>())
                .to_string();
        self.0 = self.0.wrapping_add(xxh3_128(text.as_bytes()));
    }

    pub fn text(self) -> String {
        format!("{:032x}", self.0)
    }
}

/// Whether two items are equal. Sets are equal in any order.
pub(crate) fn same(a: &Attributes, b: &Attributes) -> bool {
    a.len() == b.len()
        && a.iter().all(|(name, value)| b.get(name).is_some_and(|other| canonical(value) == canonical(other)))
}

fn canonical(value: &Json) -> Json {
    let Some((kind, inner)) = value.as_object().and_then(|object| object.iter().next()) else {
        return value.clone();
    };
    let inner = match (kind.as_str(), inner) {
        ("SS" | "NS" | "BS", Json::Array(elements)) => {
            let mut elements: Vec<&str> = elements.iter().filter_map(Json::as_str).collect();
            elements.sort_unstable();
            json!(elements)
        }
        ("L", Json::Array(elements)) => elements.iter().map(canonical).collect(),
        ("M", Json::Object(members)) => {
            Json::Object(members.iter().map(|(name, value)| (name.clone(), canonical(value))).collect())
        }
        (_, plain) => plain.clone(),
    };
    let mut object = Map::new();
    object.insert(kind.clone(), inner);
    Json::Object(object)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let partition = heatsink_dynamo::AttributeDefinition { name: "pk".to_owned(), key_type: KeyType::S };
        let schema = heatsink_dynamo::TableSchema {
            name: "T".to_owned(),
            id: "t".to_owned(),
            key: heatsink_dynamo::KeySchema { partition, sort: None },
            indexes: Vec::new(),
        };
        Table::new(schema, Arc::new(heatsink_layout::TableLayouts::new(Vec::new())))
    }

    #[test]
    fn depth_counts_reserved_suffixes() {
        for (key, expected) in [
            ("game", 0),
            ("game#~1", 1),
            ("game#~01", 0),
            ("game#~1#~0", 2),
            ("#~0#~70000", 2),
            ("a#~x#~3", 1),
        ] {
            assert_eq!(depth(&table(), key.as_bytes()), expected, "{key}");
        }
    }

    #[test]
    fn the_checksum_forgets_order_and_nothing_else() {
        let item = |text: &str| serde_json::from_str::<Attributes>(text).unwrap();
        let sum = |items: &[&str]| {
            let mut sum = Checksum::default();
            items.iter().for_each(|text| sum.add(&item(text)));
            sum
        };
        let (a, b) = (
            r#"{"pk":{"S":"a"},"v":{"SS":["x","y"]}}"#,
            r#"{"pk":{"S":"b"},"v":{"L":[{"N":"1"},{"N":"2"}]}}"#,
        );
        let set_turned = r#"{"v":{"SS":["y","x"]},"pk":{"S":"a"}}"#;
        let list_turned = r#"{"pk":{"S":"b"},"v":{"L":[{"N":"2"},{"N":"1"}]}}"#;
        assert_eq!(sum(&[a, b]), sum(&[b, set_turned]));
        assert_ne!(sum(&[a, b]), sum(&[a, list_turned]));
        assert_ne!(sum(&[a, b]), sum(&[a]));
        assert_ne!(sum(&[a, a]), sum(&[]));
        assert!(same(&item(a), &item(set_turned)) && !same(&item(b), &item(list_turned)));
    }
}
