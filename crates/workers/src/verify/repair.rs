//! Repairs findings where that loses nothing. Each repair is one transaction under a claim. Its
//! conditions hold only while the item and its target are as they were read, so a client's write in
//! between wins.

use std::collections::HashSet;

use futures::{StreamExt, TryStreamExt, stream};
use heatsink_control::claim::{Claim, Written};
use heatsink_control::registry::Registry;

use super::classify::{AT_ONCE, Found, RepairAction};
use super::error::VerifyError;
use super::findings::Repaired;
use crate::items::index_rewrite;
use crate::items::item::ItemContext;
use crate::items::item_move::{self, Moved};

/// A repair in progress.
pub(super) struct Repair<'a> {
    registry: &'a Registry,
    context: &'a ItemContext,
    claim: &'a Claim,
    done: Repaired,
}

/// The result for one finding.
enum Outcome {
    Moved,
    Deleted,
    Rewritten,
    Entered,
    Left,
    Nothing,
}

impl<'a> Repair<'a> {
    pub fn new(registry: &'a Registry, context: &'a ItemContext, claim: &'a Claim) -> Self {
        Repair { registry, context, claim, done: Repaired::default() }
    }

    /// The repairs so far.
    pub fn done(&self) -> Repaired {
        self.done
    }

    /// Repairs the findings of a page.
    pub async fn carry_out(&mut self, found: Vec<Found>) -> Result<(), VerifyError> {
        let mut buckets = HashSet::new();
        let mut found = found;
        // One entry serves all items of a bucket.
        found.retain(|one| match &one.action {
            RepairAction::Enter(_) => self.context.key(&one.item).is_ok_and(|key| buckets.insert(key)),
            _ => true,
        });
        let this = &*self;
        let mending = found.iter().map(|one| this.mend(one));
        let outcomes: Vec<Outcome> = stream::iter(mending).buffer_unordered(AT_ONCE).try_collect().await?;
        for outcome in outcomes {
            match outcome {
                Outcome::Moved => self.done.moved += 1,
                Outcome::Deleted => self.done.deleted += 1,
                Outcome::Rewritten => self.done.rewritten += 1,
                Outcome::Entered => self.done.entered += 1,
                Outcome::Left => self.done.left += 1,
                Outcome::Nothing => {}
            }
        }
        Ok(())
    }

    async fn mend(&self, found: &Found) -> Result<Outcome, VerifyError> {
        let (claim, registry, context, item) = (self.claim, self.registry, self.context, &found.item);
        Ok(match &found.action {
            RepairAction::Nothing => Outcome::Nothing,
            RepairAction::Move(place) => {
                match item_move::try_move(claim, registry, context, item, place).await? {
                    Moved::Done => Outcome::Moved,
                    Moved::Taken(_) | Moved::Changed => Outcome::Left,
                }
            }
            RepairAction::Delete(kept) => {
                match item_move::delete_copy(claim, registry, context, item, kept).await? {
                    Moved::Done => Outcome::Deleted,
                    Moved::Taken(_) | Moved::Changed => Outcome::Left,
                }
            }
            RepairAction::Rewrite(name) => {
                let index_values = context.index_values(item)?;
                let Some(index_value) =
                    index_values.iter().find(|index_value| index_value.key.attribute().name == *name)
                else {
                    return Ok(Outcome::Left);
                };
                let Ok(new) = &index_value.new else { return Ok(Outcome::Left) };
                match index_rewrite::rewrite(claim, context, item, index_value, new).await? {
                    Written::Done => Outcome::Rewritten,
                    Written::Refused(_) => Outcome::Left,
                }
            }
            RepairAction::Enter(bucket) => {
                // A superfluous entry costs a read and loses nothing, so it needs no claim.
                let key = context.key(item)?;
                registry.enter_bucket(&context.table, context.table.logical(&key), *bucket).await?;
                Outcome::Entered
            }
        })
    }
}
