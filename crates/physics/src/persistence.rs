//! The state of a table that must outlive the process: its partitions and its growth. Partitions
//! are never merged, so they are never forgotten (docs/explain/partitions.md#split-for-heat).

use serde::{Deserialize, Serialize};

use crate::key_position::KeyPosition;
use crate::ranges::Ranges;
use crate::tables::Tables;

/// The partitions of one table and of its global indexes, to be stored with the table's data.
/// Buckets, heat, splits under way and bytes are not stored: after a restart every partition has
/// its full ceiling, and heat is measured anew.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedTable {
    /// The table's own.
    pub own: SavedPartitions,
    /// By the global index's name.
    pub indexes: Vec<(String, SavedPartitions)>,
}

/// The partitions of one table or index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedPartitions {
    /// The id of the next partition.
    next_id: u64,
    /// Warm throughput, units per second: reads, writes.
    warm: [u64; 2],
    partitions: Vec<SavedPartition>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct SavedPartition {
    id: u64,
    from: KeyPosition,
}

/// A table cannot be restored: the stored partitions do not divide the key range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotPartitions;

impl std::fmt::Display for NotPartitions {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("the kept partitions do not cut the key range into ranges, from its start and in order")
    }
}

impl std::error::Error for NotPartitions {}

impl Tables {
    /// The state of a table to store; `None` if there is no such table.
    pub fn save(&self, table: &str) -> Option<SavedTable> {
        let named = self.names.get(table)?;
        let saved = |id: u32| Some(self.resources.get(id as usize)?.as_deref()?.save());
        let indexes = named.indexes.iter().filter_map(|(name, id)| Some((name.to_string(), saved(id.0)?)));
        Some(SavedTable { indexes: indexes.collect(), own: saved(named.own.0)? })
    }

    /// Gives a table, and those of its global indexes that were kept, the partitions they had. Call
    /// it right after they were made. Does nothing if there is no such table.
    ///
    /// # Errors
    /// [`NotPartitions`]; then nothing was changed.
    pub fn restore(&mut self, now: u64, table: &str, saved: &SavedTable) -> Result<(), NotPartitions> {
        let Some(named) = self.names.get(table) else { return Ok(()) };
        let kept = |name: &str| saved.indexes.iter().find(|(kept, _)| kept == name).map(|(_, saved)| saved);
        let indexes = named.indexes.iter().filter_map(|(name, id)| Some((*id, kept(name)?)));
        let all: Vec<_> = [(named.own, &saved.own)].into_iter().chain(indexes).collect();
        let mut ranges = Vec::new();
        for (id, saved) in &all {
            ranges.push(saved.ranges(now, *id != named.own).ok_or(NotPartitions)?);
        }
        for ((id, saved), ranges) in all.into_iter().zip(ranges) {
            let (Some(resource), _, events) = self.parts(id) else { continue };
            resource.ranges = ranges;
            resource.capacity.warm_up(now, saved.warm);
            if !resource.capacity.mode().provisioned() {
                resource.grow(now, events);
            }
        }
        Ok(())
    }

    /// A number that changes whenever [`Tables::save`] of any table would give something else.
    pub fn revision(&self) -> u64 {
        self.revision + self.events.changes()
    }
}

impl crate::resource::Resource {
    fn save(&self) -> SavedPartitions {
        let partitions = self
            .ranges
            .all
            .iter()
            .enumerate()
            .map(|(at, partition)| SavedPartition { id: partition.id, from: self.ranges.bounds(at).0 });
        SavedPartitions {
            next_id: self.ranges.next_id(),
            warm: self.capacity.warm(),
            partitions: partitions.collect(),
        }
    }
}

impl SavedPartitions {
    fn ranges(&self, now: u64, index: bool) -> Option<Ranges> {
        let kept: Vec<(u64, KeyPosition)> = self.partitions.iter().map(|one| (one.id, one.from)).collect();
        Ranges::kept(now, &kept, self.next_id, index)
    }
}
