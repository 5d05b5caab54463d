//! Index-key migration: brings the keys of indexes under a rule, to another number of shards, or
//! back, while clients use the table.
//!
//! An index's partition key is an attribute of the table's items, so no item moves. Each item's
//! value is rewritten in place, from its old form to its new one, on condition that it is unchanged
//! since it was read. Values that clients write meanwhile have the right form already.
//!
//! **Steps.** The record holds the current step, and before each step every gateway has
//! acknowledged the previous one. First every gateway reads both forms and writes the old one. Then
//! all gateways write the new form and items are rewritten. Then the record says that the migration
//! is done. An interrupted run can be resumed, in either direction. To turn it round changes
//! nothing of what gateways write, since some may know only the step before.
//!
//! A plain value in the reserved form would be read as a spread one. Where values were plain, or
//! become it, the run looks for such values before the first step and after it, and gateways refuse
//! to write them until the end.
//!
//! Not here: a table's own keys, whose items have to move (`adoption`); rewriting one value
//! (`index_rewrite`); how a gateway reads two forms (`route`).

use futures::FutureExt;
use futures::future::BoxFuture;
use heatsink_control::claim::Claim;
use heatsink_control::describe::Described;
use heatsink_control::registry::Registry;
use heatsink_control::{Changer, IndexKeyMigration, Record, State};
use heatsink_dynamo::Error;
use heatsink_dynamo::size::{MAX_ITEM, item_size};
use heatsink_dynamo::value::read_item;
use heatsink_layout::{MigrationPhase, TableLayouts};
use serde_json::Value as Json;

use crate::direction::Direction;
use crate::error::WorkerError;
use crate::items::index_rewrite::{Brought, bring, looks_spread};
use crate::items::index_value::IndexValue;
use crate::items::item::{Attributes, ItemContext, NoKey, shown};
use crate::items::walk::Walk;
use crate::on_record::{self, tag, taken_over, untag, write};
use crate::progress::{Phase, Progress};
use crate::table::report::{AdoptionOptions, AdoptionReport};
use crate::table::survey::Survey;

/// One prepared index-key migration.
pub(crate) struct IndexMigrationRun<'a> {
    pub registry: &'a Registry,
    pub changer: &'a Changer,
    /// The table with every layout of the rules and the record, as it migrates.
    pub context: &'a ItemContext,
    pub described: &'a Described,
    pub direction: Direction,
    pub record: Option<&'a Record>,
    pub change: &'a IndexChange,
}

/// What a migration changes.
pub(crate) struct IndexChange {
    /// The attributes to migrate.
    pub attributes: Vec<String>,
    /// Their layouts before, where they have layouts afterwards. Without: plain values.
    pub before: TableLayouts,
    /// To the layouts that the record has, or will have; otherwise to those of before.
    pub forward: bool,
}

impl IndexChange {
    /// What does not change keys of indexes.
    pub fn none() -> Self {
        IndexChange { attributes: Vec::new(), before: TableLayouts::default(), forward: true }
    }

    /// What the table's context has to know of it, with the layouts that the record has, or will
    /// have.
    pub fn phase(&self, recorded: &TableLayouts) -> MigrationPhase {
        self.migration(0, 0).phase(recorded)
    }

    /// Its first step.
    fn migration(&self, items: u64, run: u64) -> IndexKeyMigration {
        IndexKeyMigration {
            attributes: self.attributes.clone(),
            forward: self.forward,
            writes_new: false,
            touched: !self.forward,
            items,
            run,
            before: self.before.clone(),
        }
    }
}

impl<'a> IndexMigrationRun<'a> {
    fn table(&self) -> &str {
        &self.context.table.name
    }

    fn migration(&self) -> Option<&IndexKeyMigration> {
        match &self.record?.state {
            State::MigratingIndexKeys(migration) => Some(migration),
            _ => None,
        }
    }

    /// Carries out the migration.
    pub fn run<'p>(
        self,
        options: AdoptionOptions,
        progress: &'p dyn Progress,
    ) -> BoxFuture<'p, Result<AdoptionReport, WorkerError>>
    where
        'a: 'p,
    {
        async move {
            let (mut record, mut migration) = self.begin(progress).await?;
            let claim = Claim::take(self.registry, &record, options.concurrency).await?;
            let mut rewritten = 0;
            if migration.touched || migration.forward {
                if !migration.writes_new {
                    self.settle(&record, progress).await?;
                    if !migration.touched {
                        let survey = self.survey(progress).await?;
                        if survey.refused > 0 {
                            let refusal = survey.refusal(self.table());
                            let way = format!("`heatsink adopt {} --back` ends the adoption", self.table());
                            return Err(WorkerError::Stopped(format!("{refusal}\n{way}")));
                        }
                    }
                    self.not_frozen().await?;
                    migration = IndexKeyMigration { writes_new: true, touched: true, ..migration };
                    record =
                        write(self.registry, &record, State::MigratingIndexKeys(migration.clone())).await?;
                }
                self.settle(&record, progress).await?;
                rewritten = self.pass(&claim, &record, &migration, options.concurrency, progress).await?;
                self.verify(&migration, progress).await?;
            }
            self.not_frozen().await?;
            claim.end().await?;
            self.finish(&record).await?;
            Ok(AdoptionReport {
                table: self.table().to_owned(),
                direction: self.direction,
                indexes: self.change.attributes.clone(),
                already: false,
                items: migration.items,
                moved: rewritten,
                tied: 0,
                recipe: None,
                checksum: String::new(),
            })
        }
        .boxed()
    }

    /// Clients go on in each step of an index key's change, so it waits before the next one while
    /// layouts are frozen.
    async fn not_frozen(&self) -> Result<(), WorkerError> {
        match self.changer.frozen().await? {
            Some(frozen) => Err(WorkerError::Stopped(format!(
                "{frozen}. Then run this again: it goes on where it stopped"
            ))),
            None => Ok(()),
        }
    }

    /// Waits until every gateway follows the record, and no request planned before is in flight.
    async fn settle(&self, record: &Record, progress: &dyn Progress) -> Result<(), WorkerError> {
        progress.phase(Phase::Settling, None);
        self.changer.announce(&record.name, record.version).await?;
        Ok(())
    }

    /// Records the first step, or takes over an interrupted run and reverses it if it went in the
    /// other direction.
    async fn begin(&self, progress: &dyn Progress) -> Result<(Record, IndexKeyMigration), WorkerError> {
        let run = self.registry.env().random();
        let forward = self.change.forward;
        if let (Some(record), Some(migration)) = (self.record, self.migration()) {
            // Turned round or not, it writes what it wrote: not every gateway may know that it has
            // begun.
            let writes_new = migration.writes_new == (migration.forward == forward);
            // Builds that turned it round otherwise had gateways write the layouts on record, and
            // did not say so.
            let touched = migration.touched || migration.writes_new == migration.forward;
            let migration = IndexKeyMigration { forward, writes_new, touched, run, ..migration.clone() };
            return Ok((
                write(self.registry, record, State::MigratingIndexKeys(migration.clone())).await?,
                migration,
            ));
        }
        if !self.change.before.is_empty() {
            self.known().await?;
        }
        let survey = self.survey(progress).await?;
        if survey.refused > 0 {
            return Err(WorkerError::Stopped(survey.refusal(self.table())));
        }
        let migration = self.change.migration(survey.items, run);
        let state = State::MigratingIndexKeys(migration.clone());
        let layouts = TableLayouts::clone(self.context.table.layouts());
        if let Some(record) = self.record {
            let record = Record { layouts, adopted: true, ..record.clone() };
            return Ok((write(self.registry, &record, state).await?, migration));
        }
        let record = Record { state, ..self.registry.first_record(self.described, layouts, true) };
        on_record::begin(self.registry, &record).await?;
        tag(self.registry, self.described).await;
        Ok((record, migration))
    }

    /// Refuses where gateways would refuse the table: older builds know plain and spread values
    /// alone.
    async fn known(&self) -> Result<(), WorkerError> {
        let older = self.changer.gateways_without(|one| one.knows_values).await?;
        if older.is_empty() {
            return Ok(());
        }
        Err(WorkerError::Stopped(format!(
            "Gateways of an older build do not know that the shards of an index key change, and would refuse every request on table {}: {}. Start newer ones in \
             their place first. Nothing was changed",
            self.table(),
            older.join(", ")
        )))
    }

    /// Records the end of the migration: the layouts of its attributes are those of after.
    /// Attributes that are plain leave the record.
    async fn finish(&self, record: &Record) -> Result<(), WorkerError> {
        let IndexChange { attributes, before, forward } = self.change;
        let layouts =
            if *forward { record.layouts.clone() } else { record.layouts.with_indexes(attributes, before) };
        let after = Record { layouts, ..record.clone() };
        if !after.is_empty() {
            write(self.registry, &after, State::Active).await?;
        } else if self.registry.remove(record).await? {
            untag(self.registry, self.described).await;
        } else {
            return Err(self.taken_over());
        }
        self.changer.make_known(&record.name, record.version + 1).await?;
        Ok(())
    }

    fn taken_over(&self) -> WorkerError {
        taken_over(self.table())
    }

    /// Rewrites every item whose value is in the old form. Returns the number of rewritten items.
    async fn pass(
        &self,
        claim: &Claim,
        record: &Record,
        migration: &IndexKeyMigration,
        concurrency: usize,
        progress: &dyn Progress,
    ) -> Result<u64, WorkerError> {
        progress.phase(Phase::Moving, Some(migration.items));
        let walk = Walk::new(self.registry, self.table());
        walk.change_each(record, concurrency, progress, |item| async move {
            let mut any = false;
            for index_value in self.index_values(&item)? {
                any |= bring(claim, self.context, &item, &index_value).await? == Brought::Done;
            }
            Ok(any)
        })
        .await
    }

    /// The migrated attributes that an item has.
    fn index_values(&self, item: &Attributes) -> Result<Vec<IndexValue<'_>>, NoKey> {
        let mut index_values = self.context.index_values(item)?;
        index_values.retain(|index_value| index_value.key.is_migrating());
        Ok(index_values)
    }

    /// Reads every item of a table before its migration.
    pub fn survey<'s>(&'s self, progress: &'s dyn Progress) -> BoxFuture<'s, Result<Survey, WorkerError>> {
        async move {
            progress.phase(Phase::Looking, None);
            let mut found = Survey::default();
            let mut walk = Walk::new(self.registry, self.table());
            while let Some(page) = walk.page().await? {
                for item in &page {
                    found.items += 1;
                    let mut moves = false;
                    for index_value in self.index_values(item)? {
                        moves |= index_value.new.as_ref() != Ok(&index_value.stored);
                        if let Some(reason) = self.in_the_way(item, &index_value)? {
                            found.refuse(self.context, item, &reason);
                        }
                    }
                    found.to_move += u64::from(moves);
                    progress.passed(1);
                }
            }
            Ok(found)
        }
        .boxed()
    }

    /// The reason why a value cannot be migrated.
    fn in_the_way(&self, item: &Attributes, index_value: &IndexValue<'_>) -> Result<Option<String>, Error> {
        let name = &index_value.key.attribute().name;
        let from_plain = index_value.key.comes_from_plain();
        if let Some(problem) = looks_spread(index_value) {
            return Ok(Some(if from_plain && index_value.new.as_ref() == Ok(&index_value.stored) {
                let plain = index_value.text(&index_value.stored);
                format!(
                    "its {name} is {plain:?}, just as the rule writes it. If the table is a copy of one whose {name} is spread, put it on record with \
                     `heatsink adopt {} --as-it-lies`",
                    self.table()
                )
            } else {
                problem
            }));
        }
        let new = match &index_value.new {
            Ok(new) => new,
            Err(problem) => return Ok(Some(problem.clone())),
        };
        if !index_value.is_known() {
            return Ok(Some(format!("its {name} was not written through a gateway")));
        }
        let longer = new.len().saturating_sub(index_value.stored.len());
        let text = Json::Object(item.clone()).to_string();
        // The text of an item is never shorter than its size, so most items need no exact count.
        if text.len() + longer <= MAX_ITEM {
            return Ok(None);
        }
        let size = item_size(&read_item(text.as_bytes())?) + longer;
        Ok((size > MAX_ITEM)
            .then(|| format!("with its shard suffix it has {size} bytes of at most {MAX_ITEM}")))
    }

    /// Reads every item again, and checks that each has the new form.
    async fn verify(
        &self,
        migration: &IndexKeyMigration,
        progress: &dyn Progress,
    ) -> Result<(), WorkerError> {
        progress.phase(Phase::Verifying, Some(migration.items));
        let (mut left, mut first) = (0_u64, None);
        let mut walk = Walk::new(self.registry, self.table());
        while let Some(page) = walk.page().await? {
            for item in &page {
                if self
                    .index_values(item)?
                    .iter()
                    .any(|index_value| index_value.new.as_ref() != Ok(&index_value.stored))
                {
                    left += 1;
                    first.get_or_insert_with(|| shown(&self.context.primary_key(item)));
                }
                progress.passed(1);
            }
        }
        let Some(first) = first else { return Ok(()) };
        Err(WorkerError::Stopped(format!(
            "{left} items of table {} hold a value in the old form, {first} first: another writer bypasses the gateways. Stop that and run \
             this again",
            self.table()
        )))
    }
}
