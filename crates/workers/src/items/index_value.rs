//! The values of an item's spread index keys: each as it is stored, and in all forms that it may
//! have.
//!
//! Not here: rewriting them (`index_rewrite`).

use heatsink_control::reshard_intent::key_text;
use heatsink_layout::{IndexKey, PrimaryKey};

use crate::items::item::{Attributes, ItemContext, NoKey, Scalar, bytes};

/// One spread index key of one item.
pub(crate) struct IndexValue<'a> {
    pub key: &'a IndexKey,
    pub stored: Vec<u8>,
    /// All forms in which a gateway may have stored it.
    pub forms: Vec<Vec<u8>>,
    /// The form that it has once it has migrated, if it does.
    pub new: Result<Vec<u8>, String>,
}

impl IndexValue<'_> {
    /// Whether a gateway may have stored it so.
    pub fn is_known(&self) -> bool {
        self.forms.contains(&self.stored)
    }

    /// A value of the attribute for people.
    pub fn text(&self, value: &[u8]) -> String {
        key_text(value, self.key.attribute().key_type)
    }
}

impl ItemContext {
    /// The spread index keys that an item has.
    pub fn index_values(&self, item: &Attributes) -> Result<Vec<IndexValue<'_>>, NoKey> {
        if self.table.index_keys().is_empty() {
            return Ok(Vec::new());
        }
        let schema = &self.table.key;
        let partition_key = self.key(item)?;
        let named = self.rekeyed(&self.primary_key(item), self.table.logical(&partition_key));
        let scalar = |name: &str| named.get(name).and_then(Scalar::of).ok_or(NoKey);
        let partition = scalar(&schema.partition.name)?;
        let sort = schema.sort.as_ref().map(|sort| scalar(&sort.name)).transpose()?;
        let primary = PrimaryKey { partition: partition.key(), sort: sort.as_ref().map(Scalar::key) };
        let values = self.table.index_keys().iter().filter_map(|key| {
            let attribute = key.attribute();
            let stored = bytes(item.get(&attribute.name)?, attribute.key_type).ok()?;
            let logical = key.logical(&stored).to_vec();
            let new = key.form(&logical, primary).map_err(|error| error.to_string());
            let forms = key.forms(&logical, primary);
            Some(IndexValue { key, stored, forms, new })
        });
        Ok(values.collect())
    }
}
