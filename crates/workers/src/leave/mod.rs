//! The way out: brings everything of a table back to where its clients' keys say, and takes it off
//! the record. It can be killed anywhere: which step is next follows from what is on record.
//!
//! - [`Sharded`]: what of a table is sharded, and what is in the way.
//! - [`Step`]: what the table has to go through.
//! - [`Leave`]: carries the steps out.
//!
//! Not here: removing the registry ([`Registry::dismantle`]), which gateways would bring the table
//! back (their registrations say it), the command line.

mod counters;
mod former_forms;
mod off_record;
mod sharded;
mod step;

use std::sync::Arc;

use futures::FutureExt;
use futures::future::{BoxFuture, LocalBoxFuture};
use heatsink_control::registry::Registry;
use heatsink_control::reshard_intent::{Request, Subject};
use heatsink_control::{Changer, Fencing, Rules};
use heatsink_dynamo::KeyType;
use heatsink_env::Env;
use heatsink_store::Store;

pub use self::sharded::{InTheWay, Sharded, asks_for_whole};
pub use self::step::Step;
use crate::direction::Direction;
use crate::error::{WorkerError, usage};
use crate::key::table_context::TableContext;
use crate::progress::Progress;
use crate::runner::Here;
use crate::table::adoption::Adoption;
use crate::table::report::AdoptionOptions;

/// How many items are moved, or rewritten, at once.
const CONCURRENCY: usize = 32;

/// How a table leaves.
#[derive(Clone, Debug)]
pub struct LeaveOptions {
    /// Whether no other process uses the store.
    pub alone: bool,
    /// Capacity units a second that moving the items of a key may take of its shards.
    pub rate: u32,
    /// Items a second that are read to verify them; `None` for no limit.
    pub read_rate: Option<u64>,
    /// Whether the table's stream may show each item that moves.
    pub streams_confirmed: bool,
    /// Who leaves, for people.
    pub by: String,
}

/// What a step has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StepReport {
    /// Items that were moved, summed or rewritten.
    pub moved: u64,
    /// Items that were looked at, where all of them were.
    pub looked_at: Option<u64>,
}

/// A table on its way out.
pub struct Leave {
    store: Arc<dyn Store>,
    env: Arc<dyn Env>,
    rules: Rules,
    registry: Registry,
    changer: Changer,
    table: String,
    options: LeaveOptions,
    /// Whether this run has made the counters of rules whole.
    counted: bool,
}

impl Leave {
    /// The way out of the table of that name. Of `rules` only the fence counts: what lies where is
    /// on record.
    pub fn new(
        store: Arc<dyn Store>,
        env: Arc<dyn Env>,
        rules: &Rules,
        table: &str,
        options: LeaveOptions,
    ) -> Self {
        let rules = rules.clone().without_rules();
        let registry = rules.fence().registry_in(Arc::clone(&store), Arc::clone(&env));
        let changer = Changer::new(registry.clone(), Fencing::shared(rules.fence(), "leave"));
        let changer = changer.exclusively(options.alone);
        Leave { store, env, rules, registry, changer, table: table.to_owned(), options, counted: false }
    }

    /// The next step; `None` where nothing of the table is on record, or where it is left as it is.
    ///
    /// # Errors
    /// The store's; a record that cannot be read.
    pub async fn next(&self) -> Result<Option<Step>, WorkerError> {
        let found = Sharded::named(&self.registry, &self.table).await?;
        // Records of former tables of the name go first.
        let found = found.iter().min_by_key(|one| one.exists);
        Ok(found.and_then(|found| Step::next(found, self.counted)))
    }

    /// Carries a step out. It may be dropped anywhere; then [`next`](Self::next) says how to go on.
    ///
    /// # Errors
    /// [`WorkerError`] that says what to do.
    pub fn carry_out<'a>(
        &'a mut self,
        step: &'a Step,
        progress: Arc<dyn Progress>,
    ) -> LocalBoxFuture<'a, Result<StepReport, WorkerError>> {
        async move {
            self.changer.begin_patiently().await?;
            match step {
                Step::Keys(keys) => self.bring_keys(keys, &progress).await,
                Step::Counters => {
                    let keys = counters::of(&self.registry, &self.sharded().await?, &*progress).await?;
                    let done = self.bring_keys(&keys, &progress).await?;
                    self.counted = true;
                    Ok(done)
                }
                Step::Values(values) => self.bring_values(values, &progress).await,
                Step::FormerForms => {
                    let found = self.sharded().await?;
                    let (registry, changer) = (&self.registry, &self.changer);
                    let moved =
                        former_forms::write_plain(registry, changer, &found.record, CONCURRENCY, &*progress);
                    Ok(StepReport { moved: moved.await?, looked_at: None })
                }
                Step::Indexes(_) | Step::Own => self.adopt_back(&*progress).await,
                Step::OffRecord => self.take_off_record(&*progress).await,
                Step::Forgotten => self.forget().await,
            }
        }
        .boxed_local()
    }

    /// The keys of rules' counters that are still in parts: for whoever has others carry it out.
    ///
    /// # Errors
    /// As [`carry_out`](Self::carry_out).
    pub async fn counter_keys(&self, progress: &dyn Progress) -> Result<Vec<Vec<u8>>, WorkerError> {
        counters::of(&self.registry, &self.sharded().await?, progress).await
    }

    /// Notes that others have made the counters of rules whole.
    pub fn note_counted(&mut self) {
        self.counted = true;
    }

    async fn sharded(&self) -> Result<Sharded, WorkerError> {
        let found = Sharded::named(&self.registry, &self.table).await?;
        match found.into_iter().find(|one| one.exists) {
            Some(found) => Ok(found),
            None => usage(format!("Table {} is not on record", self.table)),
        }
    }

    /// Makes keys whole, one after the other, in this process.
    fn bring_keys<'a>(
        &'a self,
        keys: &'a [Vec<u8>],
        progress: &'a Arc<dyn Progress>,
    ) -> BoxFuture<'a, Result<StepReport, WorkerError>> {
        async move {
            let mut done = StepReport::default();
            let (store, env) = (Arc::clone(&self.store), Arc::clone(&self.env));
            let confirmed = self.options.streams_confirmed;
            let context = TableContext::read(store, env, &self.rules, &self.table, confirmed).await?;
            for key in keys {
                // Why it cannot move is said before anything is asked for.
                context.reshard(key, &1.into())?;
                let subject = Subject { index: None, key, key_type: context.key_type() };
                done.moved += self.carry(context.id(), subject, progress).await?;
            }
            Ok(done)
        }
        .boxed()
    }

    /// Gives values of indexes one shard, one after the other, in this process.
    async fn bring_values(
        &self,
        values: &[(String, Vec<u8>)],
        progress: &Arc<dyn Progress>,
    ) -> Result<StepReport, WorkerError> {
        let mut done = StepReport::default();
        let found = self.sharded().await?;
        for (index, key) in values {
            let of = found.record.values.iter().find(|one| one.index.name == *index && one.value == *key);
            let key_type = of.map_or(KeyType::S, |one| one.index.attribute.key_type);
            let subject = Subject { index: Some(index), key, key_type };
            done.moved += self.carry(&found.record.id, subject, progress).await?;
        }
        Ok(done)
    }

    async fn carry(
        &self,
        id: &str,
        subject: Subject<'_>,
        progress: &Arc<dyn Progress>,
    ) -> Result<u64, WorkerError> {
        let (store, env) = (Arc::clone(&self.store), Arc::clone(&self.env));
        let here = Here::new(store, env, &self.rules, "heatsink leave", self.options.alone);
        let request = Request {
            layout: 1.into(),
            rate: self.options.rate,
            streams_confirmed: self.options.streams_confirmed,
            by: self.options.by.clone(),
            asked: self.env.unix_millis(),
        };
        let table = (id, &*self.table);
        let report = here.take_up((table, subject), request, Arc::clone(progress)).await?;
        Ok(report.moved)
    }

    /// Takes index keys, or the table's own keys, out of the rules.
    async fn adopt_back(&self, progress: &dyn Progress) -> Result<StepReport, WorkerError> {
        let (store, env) = (Arc::clone(&self.store), Arc::clone(&self.env));
        let back = Adoption::prepare(store, env, &self.rules, &self.table, Direction::Back).await?;
        let options = AdoptionOptions { concurrency: CONCURRENCY, exclusive: self.options.alone };
        let report = back.run(options, progress).await?;
        Ok(StepReport { moved: report.moved, looked_at: Some(report.items) })
    }
}
