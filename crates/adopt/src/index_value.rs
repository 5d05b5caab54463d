//! The values of an item's spread index keys: each as it is stored, and in the forms of before and after a migration.
//!
//! Not here: rewriting them (`index_migration`).

use heatsink_layout::{IndexKey, PrimaryKey};

use crate::item::{Attributes, NoKey, Scalar, TableContext, bytes};

/// One spread index key of one item.
pub(crate) struct IndexValue<'a> {
    pub key: &'a IndexKey,
    pub stored: Vec<u8>,
    /// The stored value in the form before the migration, and in the form after it; twice the same where none is under way.
    pub old: Vec<u8>,
    pub new: Result<Vec<u8>, String>,
}

impl TableContext {
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
            // Values too long to take a suffix are stored without one.
            let old = key.former(&logical, primary).unwrap_or_default();
            Some(IndexValue { key, stored, old, new })
        });
        Ok(values.collect())
    }
}
