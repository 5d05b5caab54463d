//! The order in which a Scan meets the items of a table, and a Query of an index those with equal
//! index keys. It is that of physical keys: another layout is another order.

use heatsink_dynamo::IndexSchema;
use xxhash_rust::xxh3::xxh3_64;

use crate::{IndexKey, KeyLayout, Table};

/// The name of the order of a Query of an index whose partition key is stored in several forms.
/// Even on a table that was empty when it was laid out there was another order before.
pub const MIGRATING: &str = "migrating";

impl Table {
    /// The same table, and whether it may have held items before it was laid out so.
    #[must_use]
    pub fn adopted(mut self, adopted: bool) -> Self {
        self.adopted = adopted;
        self
    }

    /// Whether the table may have held items before it was laid out so.
    pub fn is_adopted(&self) -> bool {
        self.adopted
    }

    /// Names the order of a Scan of the table, or of an index of it with these key attributes;
    /// nothing where that order is the one of a table without layouts. Two layouts that put items
    /// under other physical keys give it two names. Layouts of single keys do not: a Scan reads
    /// keys that have changed by themselves
    /// ([`KeyLayouts::is_apart`](crate::KeyLayouts::is_apart)).
    pub fn scan_order(&self, index: &[&str]) -> Option<String> {
        let matters = |one: &&KeyLayout| match one.attribute() {
            None => true,
            Some(attribute) => index.contains(&attribute.name.as_str()),
        };
        let layouts: Vec<&KeyLayout> = self.layouts().iter().filter(matters).collect();
        let mut text = serde_json::to_vec(&layouts).unwrap_or_default();
        let mut values: Vec<(&[u8], u16)> = Vec::new();
        for key in self.index_keys().iter().filter(|key| index.contains(&key.attribute().name.as_str())) {
            values.extend(key.values().map(|one| (&*one.value, one.shards)));
        }
        if layouts.is_empty() && values.is_empty() {
            return None;
        }
        values.sort_unstable();
        for (value, shards) in values {
            text.extend([value, &[0], &shards.to_be_bytes()].concat());
        }
        Some(format!("{:016x}", xxh3_64(&text)))
    }

    /// Whether items may hold a value of an index's partition key in several forms.
    pub fn is_index_mixed(&self, index: &IndexSchema) -> bool {
        let mixed = |name: &str| self.index_key(name).is_some_and(IndexKey::is_mixed);
        index.key.partition.iter().any(|attribute| mixed(&attribute.name))
    }

    /// Names the order in which a Query of an index meets items with equal index keys; nothing
    /// where that order is the one of a table without layouts.
    pub fn query_order(&self, index: &IndexSchema) -> Option<String> {
        let suffixed = index.key.partition.iter().filter(|attribute| self.is_suffixed(&attribute.name));
        // These are put in order by logical keys, whatever the layouts.
        if index.key.sort.iter().any(|attribute| self.is_suffixed(&attribute.name)) || suffixed.count() > 1 {
            return Some("logical".to_owned());
        }
        if self.is_index_mixed(index) {
            return Some(MIGRATING.to_owned());
        }
        let order = self.scan_order(&index.key.names().collect::<Vec<_>>());
        if self.key_layouts().newest() == 0 {
            return order;
        }
        let mut text = order.unwrap_or_default().into_bytes();
        text.extend_from_slice(&self.key_layouts().digest().to_be_bytes());
        Some(format!("{:016x}", xxh3_64(&text)))
    }
}
