//! Rewrites the items of a value that are in an old form: as fast as it may, and not while it is
//! paused.
//!
//! Not here: one item (`index_rewrite::bring`), what has to be acknowledged before (`run`), what has
//! to rest (`rest`).

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use heatsink_control::Record;
use heatsink_control::claim::Claim;
use heatsink_env::{Env, MonotonicInstant};
use heatsink_layout::ValueLayout;

use super::run::Run;
use crate::error::WorkerError;
use crate::items::index_rewrite::{Brought, bring};
use crate::on_record::newest;
use crate::progress::Unwatched;

/// How often the index is walked for what is left before the run gives up: some writer bypasses the
/// gateways.
const WALKS: usize = 60;

/// How often a run that is paused looks whether it may go on.
const GLANCE: Duration = Duration::from_millis(100);

/// How often a run looks whether the table is still the one that it began with.
const SAME_TABLE: Duration = Duration::from_secs(1);

/// Lets so many items a second through, one after the other.
struct Pacer {
    apart: Duration,
    next: Mutex<MonotonicInstant>,
}

impl Pacer {
    fn new(env: &dyn Env, rate: u32) -> Self {
        Pacer { apart: Duration::from_secs(1) / rate.max(1), next: Mutex::new(env.now()) }
    }

    async fn wait(&self, env: &dyn Env) {
        let now = env.now();
        let at = {
            let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
            let at = (*next).max(now);
            *next = at + self.apart;
            at
        };
        if at > now {
            env.sleep(at.since(now)).await;
        }
    }
}

impl Run<'_> {
    /// Rewrites all items that the index shows in an old form, until it shows none for so long as
    /// it may lag. Returns the table's record as it is then.
    pub(super) async fn rewrite(&self, record: &Record, layout: &ValueLayout) -> Result<Record, WorkerError> {
        loop {
            let (claim, at_rest) = self.claim_at_rest(record).await?;
            let came = self.walk_until_none(&claim, &at_rest, layout).await;
            let newest = newest(&self.this.registry, record).await?;
            // A key that moved brought items elsewhere, in whatever form.
            if newest.keys != at_rest.keys {
                continue;
            }
            came?;
            claim.end().await?;
            return Ok(newest);
        }
    }

    /// The same under one claim.
    async fn walk_until_none(
        &self,
        claim: &Claim,
        record: &Record,
        layout: &ValueLayout,
    ) -> Result<(), WorkerError> {
        let this = self.this;
        let env = &**this.registry.env();
        let context = this.context(Some(record), layout).await?;
        let (pacer, looked) = (Pacer::new(env, self.options.rate), Mutex::new(env.now()));
        let old = layout.former.iter().copied().fold(layout.shards, u16::max);
        for walks in 0..WALKS {
            let (mut rewritten, stale) = (0, AtomicBool::new(false));
            for shard in 0..old {
                let walk = this.items(shard, None);
                rewritten += walk
                    .change_each(record, self.options.concurrency, &Unwatched, |item| {
                        let (context, stale, pacer, looked) = (&context, &stale, &pacer, &looked);
                        async move {
                            let mut brought = Brought::InForm;
                            for found in context.index_values(&item)? {
                                if !this.is_value(&found) || found.new.as_ref() == Ok(&found.stored) {
                                    continue;
                                }
                                pacer.wait(env).await;
                                self.may_go_on(env, looked).await?;
                                brought = bring(claim, context, &item, &found).await?;
                            }
                            stale.fetch_or(brought == Brought::Changed, Ordering::Relaxed);
                            if brought == Brought::Done {
                                self.count_one();
                            }
                            Ok(brought == Brought::Done)
                        }
                    })
                    .await?;
            }
            // Rows that were not as the index showed them any more count too.
            if walks > 0 && rewritten == 0 && !stale.into_inner() {
                return Ok(());
            }
            env.sleep(self.options.delay).await;
        }
        Err(WorkerError::Stopped(format!(
            "Items with an old form of {:?} keep appearing in the index {} of table {}: another writer bypasses the gateways, or the index lags by more than \
             {} s. Stop that and run this again",
            this.text(),
            this.walked,
            this.table(),
            self.options.delay.as_secs(),
        )))
    }

    /// Waits while the run is paused, and looks now and then whether the table is still there: one
    /// that was made again past the gateways has its name.
    async fn may_go_on(&self, env: &dyn Env, looked: &Mutex<MonotonicInstant>) -> Result<(), WorkerError> {
        let mut was_paused = false;
        loop {
            if self.steering.is_cancelled() {
                self.steering.comes_too_late();
            }
            if !self.steering.is_paused() {
                break;
            }
            was_paused = true;
            env.sleep(GLANCE).await;
        }
        let is_due = {
            let (now, mut looked) = (env.now(), looked.lock().unwrap_or_else(PoisonError::into_inner));
            let is_due = was_paused || now.since(*looked) >= SAME_TABLE;
            if is_due {
                *looked = now;
            }
            is_due
        };
        if is_due { self.same_table().await } else { Ok(()) }
    }

    pub(super) async fn same_table(&self) -> Result<(), WorkerError> {
        let this = self.this;
        let described = this.registry.describe(this.table()).await?;
        if described.is_some_and(|described| described.schema.id == this.described.schema.id) {
            return Ok(());
        }
        Err(WorkerError::Stopped(format!(
            "Table {} was deleted, or deleted and created again, while a value of its index {} was rewritten. There is nothing more to rewrite",
            this.table(),
            this.index.name
        )))
    }
}
