//! Carries the reshard of a value out: its steps, from what is on record to what is wanted. Can be
//! killed anywhere and run again.
//!
//! Not here: the items (`rewrite`), whether it is possible (`prepare`).

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use heatsink_control::Record;
use heatsink_control::reshard_intent::Steering;
use heatsink_layout::{Phase, ValueLayout, ValueMigration, shards};
use heatsink_reshard::{Side, State};

use super::{ValueReshard, is_trivial};
use crate::error::WorkerError;
use crate::key::report::ReshardReport;
use crate::on_record::{self, tag, taken_over, untag};
use crate::progress::Progress;

/// How the reshard of a value is run.
#[derive(Clone, Copy, Debug)]
pub struct ValueOptions {
    /// How many items are rewritten at once; at least 1.
    pub concurrency: usize,
    /// Whether no other process uses the store, so that there are no gateways to wait for. A run
    /// within a gateway knows by itself.
    pub exclusive: bool,
    /// How long an index may lag behind its table.
    pub delay: Duration,
    /// How many items a second may be rewritten.
    pub rate: u32,
}

/// A run under way.
pub(super) struct Run<'a> {
    pub this: &'a ValueReshard,
    pub options: ValueOptions,
    pub steering: &'a Steering,
    pub progress: &'a dyn Progress,
    /// How many shards the value is to have: those that were asked for, unless the run is
    /// cancelled.
    target: u16,
    rewritten: AtomicU64,
}

impl ValueReshard {
    /// Carries it out. Can be interrupted anywhere and run again.
    ///
    /// # Errors
    /// [`WorkerError::Stopped`] if a client's own value has a form that the value would get, or
    /// items cannot be rewritten; the message says how to go on. [`WorkerError::Busy`] where
    /// another run, or another change of the table, has written the record meanwhile.
    pub async fn run(
        self,
        options: ValueOptions,
        progress: &dyn Progress,
    ) -> Result<ReshardReport, WorkerError> {
        self.run_steered(options, &Steering::default(), progress).await
    }

    /// [`run`](Self::run) that can be paused and cancelled.
    ///
    /// # Errors
    /// As [`run`](Self::run); [`WorkerError::Cancelled`] where the value is as it was.
    pub fn run_steered<'p>(
        self,
        options: ValueOptions,
        steering: &'p Steering,
        progress: &'p dyn Progress,
    ) -> BoxFuture<'p, Result<ReshardReport, WorkerError>> {
        async move {
            let announcer = self.announcer.clone().exclusively(options.exclusive);
            let this = ValueReshard { announcer, ..self };
            let (target, rewritten) = (this.shards, AtomicU64::new(0));
            Run { this: &this, options, steering, progress, target, rewritten }.go().await
        }
        .boxed()
    }
}

impl Run<'_> {
    async fn go(mut self) -> Result<ReshardReport, WorkerError> {
        let this = self.this;
        let mut record = this.record.clone();
        self.heed_cancel(record.as_ref());
        if self.target == this.shards {
            self.not_frozen().await?;
            this.announcer.begin().await?;
        }
        loop {
            self.heed_cancel(record.as_ref());
            self.tell(record.as_ref());
            if this.is_at_rest(record.as_ref(), self.target) {
                break;
            }
            // The way back goes on: nothing has the new form yet.
            if self.target == this.shards {
                self.not_frozen().await?;
            }
            record = self.step(record).await?;
        }
        if let Some(record) = &record {
            // Also what a run wrote that was killed before it could say so.
            this.announcer.make_known(&record.name, record.version).await?;
        }
        if self.target != this.shards {
            return Err(WorkerError::Cancelled(format!(
                "The reshard of the value {:?} of the index {} of table {} was cancelled. The value has {}",
                this.text(),
                this.index.name,
                this.table(),
                shards(self.target)
            )));
        }
        Ok(ReshardReport {
            slots: Vec::new(),
            split_at: None,
            table: this.table().to_owned(),
            key: this.text(),
            from: this.from(),
            to: this.shards,
            moved: self.rewritten.into_inner(),
            step: None,
        })
    }

    async fn not_frozen(&self) -> Result<(), WorkerError> {
        match self.this.announcer.frozen().await? {
            Some(frozen) => Err(WorkerError::Busy(frozen.to_string())),
            None => Ok(()),
        }
    }

    /// Turns back if the run was cancelled and nothing is written in the new form yet.
    fn heed_cancel(&mut self, record: Option<&Record>) {
        if !self.steering.is_cancelled() || self.target != self.this.shards {
            return;
        }
        let layout = self.this.on_record(record);
        match layout.migration {
            Some(migration) if migration.writes_new && migration.to == self.target => {
                self.steering.comes_too_late();
            }
            // An earlier run's, which has to end.
            Some(migration) if migration.writes_new => self.target = migration.to,
            _ => self.target = layout.shards,
        }
    }

    fn tell(&self, record: Option<&Record>) {
        let layout = self.this.on_record(record);
        let moving = |phase| State::Moving { phase, closing: false };
        self.progress.state(match layout.migration {
            Some(migration) if migration.writes_new => moving(Phase::Move),
            Some(_) => moving(Phase::Prepare),
            None if layout.shards != self.target => moving(Phase::Reserve),
            None => State::Stable { in_force: Side::New, settled: true },
        });
    }

    pub(super) fn count_one(&self) {
        let all = self.rewritten.fetch_add(1, Ordering::Relaxed) + 1;
        self.progress.moved(all);
    }

    /// Takes the value one step further: the record after it, if one is left.
    async fn step(&self, record: Option<Record>) -> Result<Option<Record>, WorkerError> {
        let this = self.this;
        let layout = this.on_record(record.as_ref());
        let run = this.registry.env().random();
        let Some(migration) = layout.migration else {
            if layout.shards == self.target {
                // Clients are refused its former forms for as long as a gateway reads them: until
                // all know that it has one shard.
                let Some(record) = record else { return Ok(None) };
                self.settle(&record).await?;
                return self.write(Some(&record), None).await;
            }
            let record = self.reserve(record, layout).await?;
            let layout = this.on_record(Some(&record));
            let migration = ValueMigration { to: self.target, writes_new: false, run };
            return self
                .write(Some(&record), Some(ValueLayout { migration: Some(migration), ..layout }))
                .await;
        };
        let Some(record) = record else { return Ok(None) };
        if !migration.writes_new {
            if migration.to != self.target {
                // Nothing has the new form yet.
                let layout = ValueLayout { migration: None, ..layout };
                return self.write(Some(&record), Some(layout)).await;
            }
            self.settle(&record).await?;
            if self.steering.is_cancelled() {
                // While gateways were waited for.
                return Ok(Some(record));
            }
            let migration = ValueMigration { writes_new: true, run, ..migration };
            return self
                .write(Some(&record), Some(ValueLayout { migration: Some(migration), ..layout }))
                .await;
        }
        // Its own number, so that a run that was taken over stops.
        let layout = ValueLayout { migration: Some(ValueMigration { run, ..migration }), ..layout };
        let Some(record) = self.write(Some(&record), Some(layout.clone())).await? else { return Ok(None) };
        self.settle(&record).await?;
        let record = self.rewrite(&record, &layout).await?;
        let mut former = layout.former.clone();
        if this.may_miss {
            former.push(layout.shards);
            former.retain(|count| *count != migration.to);
            former.sort_unstable();
            former.dedup();
        } else {
            former.clear();
        }
        let layout = ValueLayout { shards: migration.to, migration: None, former, ..layout };
        self.write(Some(&record), Some(layout)).await
    }

    /// Reserves the forms that the value will have, and looks whether clients use them.
    async fn reserve(&self, record: Option<Record>, layout: ValueLayout) -> Result<Record, WorkerError> {
        let this = self.this;
        // Before anything is written.
        this.free(&layout, self.target).await?;
        let reserved = layout.reserved.max(self.target);
        let wanted = ValueLayout { reserved, ..layout.clone() };
        let written = match &record {
            Some(record) if record.values.contains(&wanted) => Some(record.clone()),
            record => self.write(record.as_ref(), Some(wanted)).await?,
        };
        let Some(record) = written else { return Err(taken_over(this.table())) };
        self.settle(&record).await?;
        this.registry.env().sleep(self.options.delay).await;
        if let Err(used) = this.free(&layout, self.target).await {
            let layout = ValueLayout { reserved: layout.extent(), ..layout };
            let kept = Some(layout).filter(|layout| !is_trivial(layout));
            let record = self.write(Some(&record), kept).await?;
            if let Some(record) = record {
                this.announcer.make_known(&record.name, record.version).await?;
            }
            return Err(used);
        }
        Ok(record)
    }

    /// Waits until every gateway follows the record, and no request planned before is in flight.
    async fn settle(&self, record: &Record) -> Result<(), WorkerError> {
        self.this.announcer.settle(&record.name, record.version).await?;
        Ok(())
    }

    /// Writes the layout of the value to the record, or takes it off. Returns the record, if
    /// anything is left on it. Records of keys may have changed meanwhile.
    async fn write(
        &self,
        record: Option<&Record>,
        layout: Option<ValueLayout>,
    ) -> Result<Option<Record>, WorkerError> {
        let this = self.this;
        let mut before = match record {
            Some(record) => record.clone(),
            None => {
                let Some(layout) = &layout else { return Ok(None) };
                let first = this.registry.first_record(&this.described, Default::default(), true);
                let first = Record { values: vec![layout.clone()], ..first };
                let found = on_record::begin_beside(&this.registry, &first).await?;
                let found = found.ok_or_else(|| taken_over(this.table()))?;
                if found == first {
                    tag(&this.registry, &this.described).await;
                    return Ok(Some(first));
                }
                // One value of a table goes at a time.
                if !found.values.is_empty() {
                    return Err(taken_over(this.table()));
                }
                found
            }
        };
        loop {
            let mut values = before.values.clone();
            values.retain(|one| !this.is_of(one));
            values.extend(layout.clone());
            let version = before.version + 1;
            let after = Record { values, adopted: true, version, ..before.clone() };
            if after.is_empty() {
                if this.registry.remove(&before).await? {
                    untag(&this.registry, &this.described).await;
                    this.announcer.make_known(&before.name, version).await?;
                    return Ok(None);
                }
            } else if this.registry.replace(&before, &after).await? {
                return Ok(Some(after));
            }
            before = on_record::newer(&this.registry, &before).await?;
        }
    }
}
