//! The order in which a Scan meets the items of a table. It is that of a hash of physical keys: another layout is another order.

use xxhash_rust::xxh3::xxh3_64;

use crate::{KeyLayout, Table};

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

    /// Names the order of a Scan of the table, or of an index of it with these key attributes; nothing where that order is the one of a
    /// table without layouts. Two layouts that put items under other physical keys give it two names.
    pub fn scan_order(&self, index: &[&str]) -> Option<String> {
        let matters = |one: &&KeyLayout| match one.attribute() {
            None => true,
            Some(attribute) => index.contains(&attribute.name.as_str()),
        };
        let layouts: Vec<&KeyLayout> = self.layouts().iter().filter(matters).collect();
        let text = serde_json::to_vec(&layouts).unwrap_or_default();
        (!layouts.is_empty()).then(|| format!("{:016x}", xxh3_64(&text)))
    }
}
