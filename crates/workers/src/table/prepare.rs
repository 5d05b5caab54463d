//! Prepares an adoption: compares the table, its record and the rules. Changes nothing.
//!
//! Not here: reading the items (`survey`), carrying the adoption out (`adoption`).

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use heatsink_control::{
    Changer, DesiredLayout, Fencing, IndexKeyMigration, Record, Rules, State, agree, claim, lost_registry,
};
use heatsink_dynamo::TableSchema;
use heatsink_env::Env;
use heatsink_layout::{KeyLayout, Strategy, Table, TableLayouts};
use heatsink_store::Store;

use crate::direction::Direction;
use crate::eligible;
use crate::error::WorkerError;
use crate::items::item::ItemContext;
use crate::recorded_keys;
use crate::table::adoption::Adoption;
use crate::table::index_migration::IndexChange;

impl Adoption {
    /// Checks whether `table` can be adopted under `rules`, or brought back. Changes nothing.
    ///
    /// # Errors
    /// [`WorkerError::Usage`] with the reason why not.
    pub fn prepare<'a>(
        store: Arc<dyn Store>,
        env: Arc<dyn Env>,
        rules: &'a Rules,
        table: &'a str,
        direction: Direction,
    ) -> BoxFuture<'a, Result<Self, WorkerError>> {
        async move { Self::prepare_with(store, env, rules, table, direction, false).await }.boxed()
    }

    /// The same for a table whose name is recorded under another id, where that record does not
    /// apply: the table is another one, and its items are under their logical keys.
    ///
    /// # Errors
    /// As [`prepare`](Self::prepare).
    pub fn prepare_anew<'a>(
        store: Arc<dyn Store>,
        env: Arc<dyn Env>,
        rules: &'a Rules,
        table: &'a str,
    ) -> BoxFuture<'a, Result<Self, WorkerError>> {
        async move { Self::prepare_with(store, env, rules, table, Direction::Adopt, true).await }.boxed()
    }

    async fn prepare_with(
        store: Arc<dyn Store>,
        env: Arc<dyn Env>,
        rules: &Rules,
        table: &str,
        direction: Direction,
        anew: bool,
    ) -> Result<Self, WorkerError> {
        let registry = rules.fence().registry_in(store, env);
        let usage = |problem: String| Err(WorkerError::Usage(problem));
        let described = eligible::usable(&registry, table).await?;
        let record = registry.read(&described.schema.id).await?;
        if direction == Direction::Adopt
            && record.is_none()
            && !anew
            && let Some(problem) = eligible::named_before(&registry, table, &described.schema.id).await?
        {
            return usage(problem);
        }
        // Of a sharded table each shard would become a logical key. What its items say is judged by
        // the rules (`survey`).
        if direction == Direction::Adopt
            && record.is_none()
            && !anew
            && let Some(problem) = lost_registry::refusal_if_written(&registry, &described).await?
        {
            return usage(problem);
        }
        // Single keys, and time to live, are in the way of what has to be moved alone.
        let is_done = direction == Direction::Adopt
            && record.as_ref().is_some_and(|record| is_as_ruled(rules, &described.schema, record));
        let keys = match &record {
            Some(_) if is_done => Vec::new(),
            Some(record) => recorded_keys::of(&registry, record, direction).await?,
            None => Vec::new(),
        };
        if let Some(value) = record.as_ref().and_then(|record| record.values.first()).filter(|_| !is_done) {
            return usage(format!(
                "Single values of the index {0} of table {table} are on record by `heatsink reshard`, and a table with such values cannot be adopted, or \
                 brought back: bring each back first, with `heatsink reshard start {table} VALUE --index {0} --shards 1`; `heatsink reshard status {table}` \
                 lists them",
                value.index.name
            ));
        }
        let mut ruled = None;
        let (layouts, index_change) = match (direction, &record) {
            (Direction::Back | Direction::Release, None) => {
                return usage(format!(
                    "Table {table} is not on record as sharded: there is nothing to bring back"
                ));
            }
            (Direction::Release, Some(record)) => {
                releasable(record).map_err(WorkerError::Usage)?;
                (record.layouts.clone(), IndexChange::none())
            }
            (Direction::Back, Some(record)) => {
                let (attributes, before) = match &record.state {
                    // An interrupted change is undone first.
                    State::MigratingIndexKeys(migration) => {
                        (migration.attributes.clone(), migration.before.clone())
                    }
                    _ => (record.layouts.attributes(), TableLayouts::default()),
                };
                (record.layouts.clone(), IndexChange { attributes, before, forward: false })
            }
            (Direction::Adopt, record) => {
                let desired = match record {
                    Some(record) => rules.desired_layout_recorded(&described.schema, &record.layouts).0,
                    None => rules.desired_layout(&described.schema),
                };
                let desired = match desired {
                    DesiredLayout::Sharded(layouts) => layouts,
                    DesiredLayout::Impossible(reason) => return usage(reason),
                    DesiredLayout::Unsharded => {
                        return usage(format!(
                            "The rules leave every key of table {table} unsharded: there is nothing to adopt"
                        ));
                    }
                    DesiredLayout::Unmentioned { skipped } if skipped.is_empty() => {
                        return usage(format!("No rule is for table {table}"));
                    }
                    DesiredLayout::Unmentioned { skipped } => return usage(skipped.join("; ")),
                };
                match record {
                    Some(record) if !agree(&desired, &record.layouts) => {
                        return usage(format!(
                            "The rules say {desired}; the registry's record of table {table} says {}. Bring it back first with --back",
                            record.layouts
                        ));
                    }
                    // An interrupted adoption is ended first: undone if the rules ask for what was
                    // before, otherwise with the layouts on its record.
                    Some(Record { state: State::MigratingIndexKeys(migration), layouts, .. }) => {
                        let IndexKeyMigration { attributes, before, .. } = migration.clone();
                        let asked = desired.only(&attributes);
                        // In whatever order the rules and the record name them.
                        let same = asked.differing(&before).is_empty() && before.differing(&asked).is_empty();
                        let undone = !before.is_empty() && same;
                        (layouts.clone(), IndexChange { attributes, before, forward: !undone })
                    }
                    Some(Record { state: State::Adopting(_) | State::Returning(_), layouts, .. }) => {
                        (layouts.clone(), IndexChange::none())
                    }
                    Some(Record { layouts: recorded, .. }) => {
                        let attributes = recorded.differing(&desired);
                        let before = recorded.only(&attributes);
                        let layouts = recorded.with_indexes(&attributes, &desired);
                        (layouts, IndexChange { attributes, before, forward: true })
                    }
                    None if !desired.own().is_empty() => {
                        let own = desired.own();
                        ruled = Some(desired);
                        (own, IndexChange::none())
                    }
                    None => {
                        let attributes = desired.attributes();
                        (desired, IndexChange { attributes, ..IndexChange::none() })
                    }
                }
            }
        };
        if !index_change.attributes.is_empty()
            && let Some(State::Pending | State::Deleting { .. } | State::Gone) =
                record.as_ref().map(|record| &record.state)
        {
            return usage(format!(
                "Table {table} is being recorded, or deleted: run this again once that is done"
            ));
        }
        if index_change.attributes.is_empty()
            && direction != Direction::Release
            && !is_done
            && registry.expires(table).await?
        {
            return usage(format!(
                "Table {table} has time to live enabled, which would delete items while they are counted and moved. Turn it off until this is done"
            ));
        }
        if direction != Direction::Release && !claim::is_possible(&registry).await? {
            return usage(format!(
                "The store of table {table} has no TransactWriteItems, without which a run that was killed could still change items after it was \
                 run again"
            ));
        }
        let key_layouts = recorded_keys::layouts(record.as_ref().map_or(0, |record| record.keys), &keys);
        let table = |layouts| {
            Table::new(described.schema.clone(), Arc::new(layouts)).with_key_layouts(Arc::clone(&key_layouts))
        };
        let rules_context = ItemContext { table: Arc::new(table(ruled.unwrap_or_else(|| layouts.clone()))) };
        let phase = index_change.phase(&layouts);
        let context = ItemContext { table: Arc::new(table(layouts).migrating(&phase)) };
        let changer = Changer::new(registry.clone(), Fencing::shared(rules.fence(), "adopt"));
        Ok(Adoption {
            registry,
            changer,
            context,
            rules: rules_context,
            described,
            direction,
            record,
            keys,
            index_change,
            keys_are_logical: false,
        })
    }
}

/// Whether a table's items can stay where they are when its record is removed, or the reason why
/// not.
fn releasable(record: &Record) -> Result<(), String> {
    let Record { name, layouts, state, .. } = record;
    let own = layouts.own();
    let by_hand = |one: &KeyLayout| one.layout().template().is_some();
    if !own.iter().all(|one| by_hand(one) || one.layout().strategy == Strategy::None)
        || !own.iter().any(by_hand)
    {
        return Err(format!(
            "Table {name} is laid out by Heatsink's own suffixes ({layouts}), which nobody else reads: bring it back with --back alone"
        ));
    }
    if !layouts.attributes().is_empty() {
        return Err(format!(
            "Keys of indexes of table {name} are spread ({}): bring them back first, with --back alone",
            layouts.attributes().join(", ")
        ));
    }
    match state {
        State::Active => Ok(()),
        _ => Err(format!(
            "Table {name} is in the middle of `heatsink adopt`, so that some of its items have moved and some have not: end that first"
        )),
    }
}

/// Whether a table lies as its rules say, the keys of its indexes, too.
fn is_as_ruled(rules: &Rules, schema: &TableSchema, record: &Record) -> bool {
    let desired = rules.desired_layout_recorded(schema, &record.layouts).0;
    record.state == State::Active
        && matches!(desired, DesiredLayout::Sharded(desired)
            if agree(&desired, &record.layouts) && record.layouts.differing(&desired).is_empty())
}
