//! Adoption: brings a table that holds items under its rules, or back to logical keys, while nobody
//! else reads or writes it.
//!
//! One transaction moves each item to the key that the layout assigns ([`item_move`]). The
//! transaction succeeds only while the run's claim holds ([`Claim`]). The registry's record says
//! that an adoption is in progress, so gateways refuse the table meanwhile. A run that was
//! interrupted can be resumed, in either direction.
//!
//! The keys of indexes are adopted after the table's own keys and brought back before them, while
//! clients use the table ([`crate::table::index_migration`]).
//!
//! Not here: the passes over the items (`adoption_pass`); moving a table's own keys while clients
//! use it; the command line.

use futures::FutureExt;
use futures::future::BoxFuture;
use heatsink_control::claim::Claim;
use heatsink_control::describe::Described;
use heatsink_control::registry::Registry;
use heatsink_control::{AdoptionCheckpoint, Changer, KeyRecord, Record, State};

use crate::direction::Direction;
use crate::error::WorkerError;
use crate::items::item::ItemContext;
use crate::on_record::{taken_over, untag, write};
use crate::progress::{Phase, Progress};
use crate::recorded_keys;
use crate::table::adoption_pass::Pass;
use crate::table::index_migration::{IndexChange, IndexMigrationRun};
use crate::table::report::{AdoptionOptions, AdoptionReport};
use crate::table::survey::{self, Survey, SurveySummary};

/// A prepared adoption: the table exists, the rules can hold for it, and the registry does not
/// contradict them. It concerns either the table's own keys or the keys of its indexes. Where rules
/// ask for both, a second adoption follows.
pub struct Adoption {
    pub(crate) registry: Registry,
    pub(crate) changer: Changer,
    pub(crate) context: ItemContext,
    /// The table with every layout of the rules.
    pub(crate) rules: ItemContext,
    pub(crate) described: Described,
    pub(crate) direction: Direction,
    pub(crate) record: Option<Record>,
    /// The records of its single keys.
    pub(crate) keys: Vec<KeyRecord>,
    /// What changes of index keys; nothing for the table's own keys.
    pub(crate) index_change: IndexChange,
    /// Whether the operator declared keys that look like shards to be logical keys.
    pub(crate) keys_are_logical: bool,
}

impl Adoption {
    /// The same adoption, with every key taken as a logical key, even one that equals what the rule
    /// writes for a shard.
    #[must_use]
    pub fn with_logical_keys(self) -> Self {
        Adoption { keys_are_logical: true, ..self }
    }

    /// The attributes of the index keys to adopt. Clients may use the table meanwhile. Empty for
    /// the table's own keys, whose adoption needs the table alone.
    pub fn indexes(&self) -> &[String] {
        &self.index_change.attributes
    }

    /// Whether this ends an interrupted change of index keys by undoing it, so that they keep the
    /// layouts of before.
    pub fn undoes_a_change(&self) -> bool {
        !self.index_change.forward && !self.index_change.before.is_empty()
    }

    /// Whether this brings back keys of indexes while the table's own keys stay spread.
    pub fn rest_of_the_way_back(&self) -> bool {
        self.direction == Direction::Back
            && !self.indexes().is_empty()
            && !self.undoes_a_change()
            && !self.context.table.layouts().own().is_empty()
    }

    /// The record that the registry has of the table, if any.
    pub fn record(&self) -> Option<&Record> {
        self.record.as_ref()
    }

    /// The layouts that the table gets or leaves, as text.
    pub fn layouts(&self) -> String {
        let layouts = self.context.table.layouts();
        if self.undoes_a_change() {
            let IndexChange { attributes, before, .. } = &self.index_change;
            return layouts.with_indexes(attributes, before).to_string();
        }
        layouts.to_string()
    }

    /// Whether there is nothing to do.
    pub fn is_done(&self) -> bool {
        self.direction == Direction::Adopt
            && self.indexes().is_empty()
            && self.record.as_ref().is_some_and(|record| record.state == State::Active)
    }

    /// Whether an earlier run was interrupted, so that this one resumes it.
    pub fn is_resumed(&self) -> bool {
        self.record.as_ref().is_some_and(|record| record.state != State::Active)
    }

    /// Reads every item, and reports what would be moved and what cannot be. Changes nothing. Not
    /// for a resumed adoption, which finds moved and unmoved items together.
    pub fn survey<'a>(&'a self, progress: &'a dyn Progress) -> BoxFuture<'a, Result<Survey, WorkerError>> {
        async move {
            if !self.indexes().is_empty() {
                return self.index_migration().survey(progress).await;
            }
            progress.phase(Phase::Looking, None);
            let mut found =
                survey::survey(&self.registry, &self.context, &self.rules, self.direction, progress).await?;
            if self.keys_are_logical {
                found.sharded_already = None;
            }
            Ok(found)
        }
        .boxed()
    }

    fn index_migration(&self) -> IndexMigrationRun<'_> {
        IndexMigrationRun {
            registry: &self.registry,
            changer: &self.changer,
            context: &self.context,
            described: &self.described,
            direction: self.direction,
            record: self.record.as_ref(),
            change: &self.index_change,
        }
    }

    /// Carries out the adoption, verification included. Can be interrupted anywhere and run again.
    ///
    /// # Errors
    /// [`WorkerError::Stopped`] before anything is changed when items cannot be moved, or when the
    /// items found at the end are not those of the start.
    pub fn run(
        self,
        options: AdoptionOptions,
        progress: &dyn Progress,
    ) -> BoxFuture<'_, Result<AdoptionReport, WorkerError>> {
        async move {
            if self.is_done() {
                let table = self.context.table.name.clone();
                return Ok(AdoptionReport {
                    table,
                    direction: self.direction,
                    indexes: Vec::new(),
                    already: true,
                    items: 0,
                    moved: 0,
                    tied: 0,
                    recipe: None,
                    checksum: String::new(),
                });
            }
            let this = Adoption { changer: self.changer.exclusively(options.exclusive), ..self };
            if this.changer.begin().await.is_err() {
                progress.phase(Phase::Settling, None);
                this.changer.begin_patiently().await?;
            }
            this.run_begun(options, progress).await
        }
        .boxed()
    }

    async fn run_begun(
        self,
        options: AdoptionOptions,
        progress: &dyn Progress,
    ) -> Result<AdoptionReport, WorkerError> {
        if !self.indexes().is_empty() {
            return self.index_migration().run(options, progress).await;
        }
        if self.direction == Direction::Release {
            return self.release(progress).await;
        }
        if let Some(report) = self.turn_back().await? {
            return Ok(report);
        }
        let (mut record, mut checkpoint, mut said) = self.begin(options.exclusive, progress).await?;
        let claim = Claim::take(&self.registry, &record, options.concurrency).await?;
        progress.phase(Phase::Settling, None);
        self.changer.announce(&record.name, record.version).await?;
        if !checkpoint.is_counted() {
            let survey = self.survey(progress).await?;
            if let Some(why) = self.refusal(&survey) {
                claim.end().await?;
                self.take_back(&record).await?;
                return Err(why);
            }
            checkpoint = self.checkpoint(&survey, checkpoint.run, true);
            record = write(&self.registry, &record, self.under_way(checkpoint.clone())).await?;
            said = SurveySummary::of(&survey);
        }
        let mut moved = 0;
        loop {
            let pass = Pass { registry: &self.registry, context: &self.context, direction: self.direction };
            moved += pass.run(&claim, &record, &checkpoint, options.concurrency, progress).await?;
            let next = match self.direction {
                Direction::Adopt => checkpoint.depth.checked_sub(1),
                _ => Some(checkpoint.depth + 1).filter(|depth| *depth <= checkpoint.deepest),
            };
            let Some(next) = next else { break };
            checkpoint.depth = next;
            record = write(&self.registry, &record, self.under_way(checkpoint.clone())).await?;
        }
        self.verify(&record, &checkpoint, progress).await?;
        claim.end().await?;
        match self.direction {
            Direction::Adopt => {
                record = write(&self.registry, &record, State::Active).await?;
            }
            _ => {
                record = recorded_keys::forget(&self.registry, record, &self.keys).await?;
                if !self.registry.remove(&record).await? {
                    return Err(self.taken_over());
                }
                untag(&self.registry, &self.described).await;
            }
        }
        self.changer.make_known(&record.name, record.version).await?;
        Ok(AdoptionReport {
            table: self.context.table.name.clone(),
            direction: self.direction,
            indexes: Vec::new(),
            already: false,
            items: checkpoint.items,
            moved,
            tied: said.tied,
            recipe: said.recipe,
            checksum: checkpoint.checksum,
        })
    }

    pub(crate) fn under_way(&self, checkpoint: AdoptionCheckpoint) -> State {
        match self.direction {
            Direction::Adopt => State::Adopting(checkpoint),
            _ => State::Returning(checkpoint),
        }
    }

    /// Removes the record of a table whose items stay where they are. One conditional delete, so no
    /// intermediate state exists.
    async fn release(&self, progress: &dyn Progress) -> Result<AdoptionReport, WorkerError> {
        let table = &self.context.table.name;
        let survey = self.survey(progress).await?;
        if survey.refused > 0 {
            return Err(WorkerError::Stopped(survey.refusal(table)));
        }
        match &self.record {
            Some(record) if self.registry.remove(record).await? => {
                self.changer.announce(&record.name, record.version).await?;
                untag(&self.registry, &self.described).await
            }
            _ => return Err(self.taken_over()),
        }
        Ok(AdoptionReport {
            table: table.clone(),
            direction: self.direction,
            indexes: Vec::new(),
            already: false,
            items: survey.items,
            moved: 0,
            tied: survey.tied,
            recipe: survey.recipe,
            checksum: survey.checksum,
        })
    }

    pub(crate) fn taken_over(&self) -> WorkerError {
        taken_over(&self.context.table.name)
    }

    /// Counts every item at its key and compares with the counts of the start.
    async fn verify(
        &self,
        record: &Record,
        checkpoint: &AdoptionCheckpoint,
        progress: &dyn Progress,
    ) -> Result<(), WorkerError> {
        progress.phase(Phase::Verifying, Some(checkpoint.items));
        let found = survey::count(&self.registry, &self.context, self.direction, progress).await?;
        let table = &self.context.table.name;
        if let Some(first) = found.misplaced_first {
            return Err(WorkerError::Stopped(format!(
                "{} of {} items of table {table} are not where the layouts put them, {first} first. Another client wrote to it. Stop that client and run this again",
                found.misplaced, found.items,
            )));
        }
        if (found.items, &found.checksum) == (checkpoint.items, &checkpoint.checksum) {
            return Ok(());
        }
        // Recorded, so that the next run compares with the current items: the operator has been
        // told of the difference and may accept it.
        let now =
            AdoptionCheckpoint { items: found.items, checksum: found.checksum.clone(), ..checkpoint.clone() };
        write(&self.registry, record, self.under_way(now)).await?;
        Err(WorkerError::Stopped(format!(
            "Every item of table {table} is at its place, but they are not the items of the start: {} with checksum {} then, {} with checksum {} now. \
             Somebody else wrote to the table meanwhile. If that is as it should be, run this again to accept it",
            checkpoint.items, checkpoint.checksum, found.items, found.checksum,
        )))
    }
}
