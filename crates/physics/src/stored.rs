//! Stored bytes: partitions that outgrow 10 GB split (docs/explain/partitions.md#split-for-heat),
//! and item collections under a local index that outgrow it are refused
//! (docs/explain/partitions.md#indexes).

use crate::ceilings::PARTITION_BYTES;
use crate::demand::ResourceId;
use crate::key_position::KeyPosition;
use crate::tables::Tables;

/// An item collection of a table with local indexes would hold more than 10 GB:
/// `ItemCollectionSizeLimitExceededException`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CollectionFull;

impl std::fmt::Display for CollectionFull {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Collection size exceeded.")
    }
}

impl std::error::Error for CollectionFull {}

impl Tables {
    /// Says that an item grew by so many bytes, or shrank if negative; with local indexes, their
    /// entries included.
    ///
    /// # Errors
    /// [`CollectionFull`] if the table has local indexes and this would take the item collection
    /// over 10 GB; then nothing was changed. The collection's size is counted from what this call
    /// was told since the model was made.
    pub fn store(&mut self, on: ResourceId, point: KeyPosition, bytes: i64) -> Result<(), CollectionFull> {
        let Some(resource) = self.get(on) else { return Ok(()) };
        if resource.local_indexes && bytes > 0 {
            let held = resource.collections.get(&point.position).copied().unwrap_or_default();
            if held.saturating_add_signed(bytes) > PARTITION_BYTES {
                return Err(CollectionFull);
            }
        }
        self.stored(on, point, bytes);
        Ok(())
    }

    /// The same for what is stored already, or no longer: it is never refused.
    pub fn stored(&mut self, on: ResourceId, point: KeyPosition, bytes: i64) {
        let Some(resource) = self.get(on) else { return };
        if resource.local_indexes {
            let collection = resource.collections.entry(point.position).or_default();
            *collection = collection.saturating_add_signed(bytes);
            if *collection == 0 {
                resource.collections.remove(&point.position);
            }
        }
        let at = resource.ranges.find(&point);
        let partition = &mut resource.ranges.all[at];
        partition.bytes = partition.bytes.saturating_add_signed(bytes);
    }
}
