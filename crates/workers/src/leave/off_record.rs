//! Takes a table off the record whose keys are all whole: each item is looked at first, then the
//! records of its keys go, and then its own.
//!
//! Clients go on. What changes for them is that names which were reserved for shards are theirs
//! again, and that Scans which began before have to begin again.
//!
//! Not here: tables under rules, which leave the record by their adoption (`table`).

use std::sync::Arc;

use futures::FutureExt;
use futures::future::LocalBoxFuture;
use heatsink_control::Record;

use super::{Leave, StepReport};
use crate::error::WorkerError;
use crate::on_record::{taken_over, untag};
use crate::progress::Progress;
use crate::recorded_keys;
use crate::verify::{Verification, VerifyError};

impl Leave {
    /// Takes the records of keys off, and that of the table where it says nothing more.
    ///
    /// # Errors
    /// [`WorkerError::Stopped`] where items are not where the record puts them.
    pub(super) fn take_off_record<'a>(
        &'a self,
        progress: &'a dyn Progress,
    ) -> LocalBoxFuture<'a, Result<StepReport, WorkerError>> {
        async move {
            let found = self.sharded().await?;
            let mut done = StepReport::default();
            if found.record.keys > 0 {
                done.looked_at = Some(self.verify(progress).await?);
            }
            let record = recorded_keys::forget(&self.registry, found.record, &found.keys).await?;
            self.changer.announce(&record.name, record.version).await?;
            if record.is_empty() {
                self.remove(&record).await?;
            }
            Ok(done)
        }
        .boxed_local()
    }

    /// Takes off what is on record of a table that does not exist any more.
    pub(super) fn forget(&self) -> LocalBoxFuture<'_, Result<StepReport, WorkerError>> {
        async move {
            for record in self.registry.named(&self.table).await? {
                let described = self.registry.describe(&record.name).await?;
                if described.is_some_and(|described| described.schema.id == record.id) {
                    continue;
                }
                if !self.registry.forget_table(&record).await? {
                    return Err(taken_over(&record.name));
                }
            }
            Ok(StepReport::default())
        }
        .boxed_local()
    }

    async fn remove(&self, record: &Record) -> Result<(), WorkerError> {
        // The tag first: nobody would take it off after a run that was killed in between.
        if let Some(described) = self.registry.describe(&record.name).await? {
            untag(&self.registry, &described).await;
        }
        if !self.registry.remove(record).await? {
            return Err(taken_over(&record.name));
        }
        self.changer.announce(&record.name, record.version + 1).await?;
        Ok(())
    }

    /// How many items were looked at, each where it should be.
    fn verify<'a>(&'a self, progress: &'a dyn Progress) -> LocalBoxFuture<'a, Result<u64, WorkerError>> {
        async move {
        let (store, env) = (Arc::clone(&self.store), Arc::clone(&self.env));
        let prepared = Verification::prepare(store, env, &self.table, None, self.registry.name()).await;
        let findings = match prepared {
            Ok(ready) => ready.look(self.options.read_rate, progress).await,
            Err(error) => Err(error),
        };
        let findings = findings.map_err(|error| match error {
            VerifyError::Store(error) => WorkerError::Store(error),
            VerifyError::Stopped(why) => WorkerError::Busy(why),
            VerifyError::Usage(why) | VerifyError::NotRecorded(why) => WorkerError::Stopped(why),
        })?;
        match findings.wrong() {
            0 => Ok(findings.items),
            wrong => Err(WorkerError::Stopped(format!(
                "{wrong} items of table {0} are not where its record puts them, so it stays on record. `heatsink verify {0}` names them and says what to do; then \
                 run this again",
                self.table
            ))),
        }
        }
        .boxed_local()
    }
}
