//! What a reshard of a value takes: its items in the index, and how many of them change their form.
//! Changes nothing.

use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use heatsink_layout::{ValueLayout, ValueMigration};
use serde::Serialize;

use super::ValueReshard;
use crate::error::WorkerError;
use crate::items::index_value::IndexValue;
use crate::progress::{Phase, Progress, Unwatched};

/// What would be rewritten.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ValuePlan {
    /// Over how many shards it is spread now.
    pub from: u16,
    /// And will be.
    pub to: u16,
    /// Its items in the index.
    pub items: u64,
    /// How many of them change their shard.
    pub to_rewrite: u64,
    /// Items that have the attribute and not the index's sort key keep their form, and requests
    /// look for several forms for good.
    pub keeps_former_forms: bool,
}

/// What was counted in the index.
struct Counted {
    items: u64,
    to_rewrite: u64,
}

impl ValueReshard {
    /// Reads the value's items in the index, and says what would be rewritten. Changes nothing.
    ///
    /// # Errors
    /// [`WorkerError::Stopped`] if a client's own value is in the way.
    pub fn plan<'p>(&'p self, progress: &'p dyn Progress) -> BoxFuture<'p, Result<ValuePlan, WorkerError>> {
        async move {
            let layout = self.on_record(self.record.as_ref());
            self.free(&layout, self.shards).await?;
            progress.phase(Phase::Looking, None);
            let Counted { items, to_rewrite } = self.count(Duration::ZERO, progress).await?;
            let (from, to, keeps_former_forms) = (layout.shards, self.shards, self.may_miss);
            Ok(ValuePlan { from, to, items, to_rewrite, keeps_former_forms })
        }
        .boxed()
    }

    /// Counts about how many items will be rewritten, with a pause between two pages, so that the
    /// count takes little of what clients need.
    pub fn counting(&self, pause: Duration) -> BoxFuture<'static, Result<u64, WorkerError>> {
        let this = self.clone();
        async move { Ok(this.count(pause, &Unwatched).await?.to_rewrite) }.boxed()
    }

    async fn count(&self, pause: Duration, progress: &dyn Progress) -> Result<Counted, WorkerError> {
        let layout = self.on_record(self.record.as_ref());
        let migration = ValueMigration { to: self.shards, writes_new: true, run: 0 };
        let reserved = layout.reserved.max(self.shards);
        let after = ValueLayout { migration: Some(migration), reserved, ..layout.clone() };
        let context = self.context(self.record.as_ref(), &after).await?;
        let mut counted = Counted { items: 0, to_rewrite: 0 };
        for shard in 0..layout.extent() {
            let mut walk = self.items(shard, None);
            while let Some(page) = walk.page().await? {
                for item in &page {
                    let found = context.index_values(item)?;
                    let moves = |found: &IndexValue<'_>| found.new.as_ref() != Ok(&found.stored);
                    counted.to_rewrite +=
                        u64::from(found.iter().any(|found| self.is_value(found) && moves(found)));
                    counted.items += 1;
                    progress.passed(1);
                }
                if !pause.is_zero() {
                    self.registry.env().sleep(pause).await;
                }
            }
        }
        Ok(counted)
    }
}
