//! Records a table whose items are already where the layouts put them: a copy of a sharded table,
//! or a table that was created again and filled from one. The layouts are those of the rules, or
//! those on another table's record. No item is written.
//!
//! First every item is read, and each must be under the key that the layouts assign. The same pass
//! enters buckets in the directory, which lists buckets by the id of the table, and this is another
//! table.
//!
//! Not here: moving items (`adoption`).

use std::sync::Arc;

use heatsink_control::describe::Described;
use heatsink_control::registry::Registry;
use heatsink_control::{Changer, DesiredLayout, Fencing, Record, Rules, State};
use heatsink_env::Env;
use heatsink_layout::{MigrationPhase, Strategy, Table, TableLayouts};
use heatsink_store::Store;
use serde::Serialize;

use crate::eligible;
use crate::error::WorkerError;
use crate::items::item::{Attributes, ItemContext};
use crate::items::item_location::ItemLocation;
use crate::items::walk::Walk;
use crate::on_record::{self, tag};
use crate::progress::{Phase, Progress};
use crate::table::survey::Survey;

/// The source of the layouts.
#[derive(Clone, Copy, Debug)]
pub enum Layouts<'a> {
    /// The rules.
    Of(&'a Rules),
    /// The registry's record of the table with this name or id.
    RecordedFor(&'a str),
}

/// A prepared recording.
pub struct AsItLies {
    changer: Changer,
    registry: Registry,
    described: Described,
    layouts: TableLayouts,
    from: Option<String>,
}

/// The result of a recording.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Recorded {
    /// The table.
    pub table: String,
    /// Its id.
    pub id: String,
    /// The id of the table whose record it was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The layouts, in words.
    pub layouts: String,
    /// The attributes of index keys with plain values: they are not recorded, and wait for
    /// `heatsink adopt`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<String>,
    /// The number of items, each where the layouts put it. Counter fragments are not counted.
    pub items: u64,
    /// Whether the table is recorded now; `false` after a dry run.
    pub recorded: bool,
}

/// The forms found of one index key.
#[derive(Default)]
struct IndexKeys {
    name: String,
    spread: u64,
    plain: u64,
}

impl AsItLies {
    /// Checks whether `table` can be recorded as it is. Changes nothing.
    ///
    /// # Errors
    /// [`WorkerError::Usage`] with the reason why not.
    pub async fn prepare(
        store: Arc<dyn Store>,
        env: Arc<dyn Env>,
        layouts: Layouts<'_>,
        table: &str,
        fencing: Fencing,
    ) -> Result<Self, WorkerError> {
        let registry = Registry::new(store, env, &fencing.registry).expecting(&fencing.expectation);
        let changer = Changer::new(registry.clone(), fencing);
        let described = eligible::usable(&registry, table).await?;
        let usage = |problem: String| Err(WorkerError::Usage(problem));
        if registry.read(&described.schema.id).await?.is_some() {
            return usage(format!(
                "Table {table} is on record already. `heatsink verify {table}` checks whether its items are where the record puts them"
            ));
        }
        let (layouts, from) = match layouts {
            Layouts::Of(rules) => match rules.desired_layout(&described.schema) {
                DesiredLayout::Sharded(layouts) => (layouts, None),
                DesiredLayout::Impossible(reason) => return usage(reason),
                DesiredLayout::Unsharded => {
                    return usage(format!("The rules leave every key of table {table} unsharded"));
                }
                DesiredLayout::Unmentioned { skipped } if skipped.is_empty() => {
                    return usage(format!("No rule is for table {table}"));
                }
                DesiredLayout::Unmentioned { skipped } => return usage(skipped.join("; ")),
            },
            Layouts::RecordedFor(named) => {
                let record = original(&registry, named).await?;
                (record.layouts, Some(record.id))
            }
        };
        Ok(AsItLies { registry, changer, described, layouts, from })
    }

    /// The layouts in words.
    pub fn layouts(&self) -> String {
        self.layouts.to_string()
    }

    /// The id of the table whose record it gets.
    pub fn from(&self) -> Option<&str> {
        self.from.as_deref()
    }

    /// Reads every item, and records the table if each is where the layouts put it; a dry run
    /// records nothing.
    ///
    /// # Errors
    /// [`WorkerError::Stopped`] with the items that are elsewhere. The table is not recorded then.
    pub async fn run(self, dry_run: bool, progress: &dyn Progress) -> Result<Recorded, WorkerError> {
        let schema = &self.described.schema;
        let table = Table::new(schema.clone(), Arc::new(self.layouts.clone()));
        // So that values in the plain form are told from spread ones.
        let context =
            ItemContext { table: Arc::new(table.migrating(&MigrationPhase::spreading(&self.layouts))) };
        if !dry_run {
            self.changer.begin_patiently().await?;
            self.registry.make_directory(&self.layouts).await?;
        }
        let waiting = self.read(&context, dry_run, progress).await?;
        let (items, waiting) = waiting;
        let layouts = self.layouts.without(&waiting);
        if layouts.is_empty() {
            return Err(WorkerError::Usage(format!(
                "No key of table {0} is spread: bring it under its rules with `heatsink adopt {0}`",
                schema.name
            )));
        }
        let recorded = Recorded {
            table: schema.name.clone(),
            id: schema.id.clone(),
            from: self.from.clone(),
            layouts: layouts.to_string(),
            waiting,
            items,
            recorded: !dry_run,
        };
        if dry_run {
            return Ok(recorded);
        }
        let record = self.registry.first_record(&self.described, layouts, true);
        on_record::begin(&self.registry, &record).await?;
        self.changer.announce(&record.name, record.version).await?;
        tag(&self.registry, &self.described).await;
        Ok(recorded)
    }

    /// Reads every item. Returns the number of items, and the attributes that hold only plain
    /// values.
    async fn read(
        &self,
        context: &ItemContext,
        dry_run: bool,
        progress: &dyn Progress,
    ) -> Result<(u64, Vec<String>), WorkerError> {
        progress.phase(Phase::Looking, None);
        let mut found = Survey::default();
        let mut keys: Vec<IndexKeys> = Vec::new();
        let mut entered = Vec::new();
        let mut walk = Walk::new(&self.registry, &context.table.name);
        while let Some(page) = walk.page().await? {
            for item in &page {
                let key = context.key(item)?;
                match context.locate(&key, item)? {
                    ItemLocation::Expected => found.items += 1,
                    ItemLocation::CounterFragment(_) => {}
                    ItemLocation::Misplaced(place) => {
                        let place = context.text(&place);
                        found.refuse(context, item, &format!("by the record it would be under {place:?}"));
                    }
                    ItemLocation::Foreign(why) => found.refuse(context, item, &why),
                }
                see_index_keys(context, item, &mut keys, &mut found)?;
                if !dry_run && key != entered {
                    self.enter(context, &key).await?;
                    entered = key;
                }
                progress.passed(1);
            }
        }
        for mixed in keys.iter().filter(|key| key.spread > 0 && key.plain > 0) {
            found.refused += mixed.plain;
            found.refusals.push(format!(
                "{} values of {} are plain, and {} are spread",
                mixed.plain, mixed.name, mixed.spread
            ));
        }
        if found.refused > 0 {
            let table = &context.table.name;
            return Err(WorkerError::Stopped(format!(
                "Table {table} was not recorded: not every item is where {} puts it.\n{}",
                if self.from.is_some() { "the record" } else { "the rule" },
                found.refusal(table)
            )));
        }
        let plain = keys.into_iter().filter(|key| key.plain > 0).map(|key| key.name);
        Ok((found.items, plain.collect()))
    }

    /// Enters the bucket of a physical key in the directory, also for templates, whose buckets
    /// other writers begin.
    async fn enter(&self, context: &ItemContext, key: &[u8]) -> Result<(), WorkerError> {
        let (logical, slot) = context.table.decode(key);
        let Some(bucket) = slot.and_then(|slot| slot.bucket) else { return Ok(()) };
        if context.table.layouts().of(logical).is_some_and(|layout| layout.strategy != Strategy::None) {
            self.registry.enter_bucket(&context.table, logical, bucket).await?;
        }
        Ok(())
    }
}

/// Counts the forms of an item's index keys.
fn see_index_keys(
    context: &ItemContext,
    item: &Attributes,
    keys: &mut Vec<IndexKeys>,
    found: &mut Survey,
) -> Result<(), WorkerError> {
    for index_value in context.index_values(item)? {
        let name = &index_value.key.attribute().name;
        let at = keys.iter().position(|known| known.name == *name).unwrap_or_else(|| {
            keys.push(IndexKeys { name: name.clone(), ..IndexKeys::default() });
            keys.len() - 1
        });
        let Some(known) = keys.get_mut(at) else { continue };
        let is_new = index_value.new.as_ref() == Ok(&index_value.stored);
        match (is_new, index_value.forms.len() > 1) {
            // Its shard is 0, so both forms are equal.
            (true, false) => {}
            (true, true) => known.spread += 1,
            (false, _) if index_value.is_known() => known.plain += 1,
            (false, _) => {
                let stored = index_value.text(&index_value.stored);
                found.refuse(
                    context,
                    item,
                    &format!("its {name} is {stored:?}, which the rule never writes"),
                );
            }
        }
    }
    Ok(())
}

/// The only record with that name or id.
async fn original(registry: &Registry, named: &str) -> Result<Record, WorkerError> {
    let mut records = registry.named(named).await?;
    let Some(record) = records.pop() else {
        return Err(WorkerError::Usage(format!(
            "{} has no record of a table with the name or id {named}",
            registry.name()
        )));
    };
    if !records.is_empty() {
        let mut ids = vec![record.id];
        ids.extend(records.into_iter().map(|record| record.id));
        return Err(WorkerError::Usage(format!(
            "{} has records of several tables named {named}; say which by its id: {}",
            registry.name(),
            ids.join(", ")
        )));
    }
    if record.keys > 0 {
        return Err(WorkerError::Usage(format!(
            "Single keys of table {} ({}) are on record by `heatsink reshard`, and their records cannot be taken over yet",
            record.name, record.id
        )));
    }
    if !record.values.is_empty() {
        return Err(WorkerError::Usage(format!(
            "Single values of indexes of table {} ({}) are on record by `heatsink reshard`, and such records cannot be taken over yet",
            record.name, record.id
        )));
    }
    if record.state != State::Active {
        return Err(WorkerError::Usage(format!(
            "The record of table {} ({}) says that `heatsink adopt` is under way. A copy of it holds both moved and unmoved items; end that \
             first, and copy the table then",
            record.name, record.id
        )));
    }
    Ok(record)
}
