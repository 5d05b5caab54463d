//! One pass of an adoption: moves every item of one depth to the key that the layout assigns, or
//! back.
//!
//! **Passes.** A stored key in the reserved form is either a logical key that has yet to be
//! escaped, or a shard of another key. The depth of a key, the number of reserved suffixes that it
//! ends in, tells them apart: a logical key of depth d is stored at depth d before, and deeper
//! after (at d too, for d = 0). So the deepest keys are moved first, one depth per pass. When the
//! pass of depth d runs, every item at depth d is one that has not been moved yet, and the target
//! keys are free. The way back runs the passes in the opposite order. Nearly every table has one
//! pass.
//!
//! Not here: the order of passes and what is on record (`adoption`), moving one item (`item_move`).

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use heatsink_control::claim::Claim;
use heatsink_control::registry::Registry;
use heatsink_control::{AdoptionCheckpoint, Record};
use heatsink_layout::Bucket;

use crate::direction::Direction;
use crate::error::WorkerError;
use crate::items::item::{Attributes, ItemContext, depth, shown};
use crate::items::item_move;
use crate::items::walk::Walk;
use crate::progress::{Phase, Progress};

/// The buckets that a pass has entered in the directory.
type Entered = Mutex<HashSet<(Vec<u8>, Bucket)>>;

/// One pass.
pub(crate) struct Pass<'a> {
    pub registry: &'a Registry,
    pub context: &'a ItemContext,
    pub direction: Direction,
}

impl Pass<'_> {
    /// Moves every item of the current pass. Returns the number of moved items.
    pub async fn run(
        &self,
        claim: &Claim,
        record: &Record,
        checkpoint: &AdoptionCheckpoint,
        concurrency: usize,
        progress: &dyn Progress,
    ) -> Result<u64, WorkerError> {
        progress.phase(Phase::Moving, Some(checkpoint.items));
        let entered = &Mutex::new(HashSet::new());
        let walk = Walk::new(self.registry, &self.context.table.name);
        walk.change_each(record, concurrency, progress, |item| async move {
            let key = self.context.key(&item)?;
            self.enter(entered, &key, &item).await?;
            let Some(target) = self.target(&key, &item, checkpoint.depth)? else { return Ok(false) };
            item_move::move_item(claim, self.registry, self.context, &item, &target).await?;
            Ok(true)
        })
        .await
    }

    /// Enters the bucket of an item in the directory, once for each key and bucket, before the item
    /// is written there.
    async fn enter(&self, entered: &Entered, key: &[u8], item: &Attributes) -> Result<(), WorkerError> {
        let table = &self.context.table;
        let logical = self.context.logical(key, self.direction);
        let Ok(assigned) = self.context.assigned_key(key, logical, item)? else { return Ok(()) };
        let Some(bucket) = table.decode(&assigned).1.and_then(|slot| slot.bucket) else { return Ok(()) };
        let row = (logical.to_vec(), bucket);
        if !entered.lock().unwrap_or_else(PoisonError::into_inner).contains(&row) {
            self.registry.enter_bucket(table, logical, bucket).await?;
            entered.lock().unwrap_or_else(PoisonError::into_inner).insert(row);
        }
        Ok(())
    }

    /// The key to which the pass of that depth moves an item; `None` if it stays.
    fn target(&self, key: &[u8], item: &Attributes, pass: usize) -> Result<Option<Vec<u8>>, WorkerError> {
        let table = &self.context.table;
        let logical = self.context.logical(key, self.direction);
        let target = match self.direction {
            Direction::Adopt if depth(table, key) == pass => {
                self.context.assigned_key(key, logical, item)?.map_err(|unplaced| {
                    WorkerError::Stopped(format!(
                        "{unplaced}. The item is {}",
                        shown(&self.context.primary_key(item))
                    ))
                })?
            }
            Direction::Back if self.context.by_hand() => {
                if !self.context.stands_alone(logical) {
                    // Under that key it would be taken for a shard of another key, and be moved to
                    // that one.
                    return Err(WorkerError::Stopped(format!(
                        "The logical key {:?} would be read as a shard of another key. The item is {}",
                        self.context.text(logical),
                        shown(&self.context.primary_key(item))
                    )));
                }
                logical.to_vec()
            }
            Direction::Back if depth(table, key) > pass && depth(table, logical) == pass => logical.to_vec(),
            _ => return Ok(None),
        };
        Ok((target != key).then_some(target))
    }
}
