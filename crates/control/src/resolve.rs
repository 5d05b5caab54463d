//! Finds the status of a table: combines the store's description, the registry's record and the
//! rules.
//!
//! Not here: recording an empty table (`first_use`), for how long the result is valid
//! (`table_cache`, `fence`).

use std::sync::Arc;

use heatsink_dynamo::{Error, Outcome, TableSchema};

use crate::behind_head;
use crate::describe::{Described, out_of_date};
use crate::first_use;
use crate::inner::Inner;
use crate::known_keys::KnownTables;
use crate::lost_registry;
use crate::memory::RememberedTable;
use crate::name::{Holder, NameEntry};
use crate::record::{Record, State};
use crate::registry::Registry;
use crate::rest::{Rest, Standing};
use crate::rules::{DesiredLayout, Rules};
use crate::table_cache::{CachedTable, Freshness, TableStatus, not_found};
use crate::tags;
use crate::unrecorded_table;
use heatsink_layout::{KeyLayouts, OfIndex, Table, TableLayouts};

/// How often a look-up is repeated because the registry changed meanwhile.
const TRIES: usize = 20;

/// Looks a table up and caches its status. The status of a table that does not exist is removed.
pub(crate) async fn look(inner: &Inner, name: &str) -> Result<(), Error> {
    for _ in 0..TRIES {
        let rules = inner.rules.load_full();
        let began = inner.fence.seen();
        // Taken before the first request, so that the age of the result is never understated.
        let checked = inner.registry.env().now();
        let Some(described) = inner.registry.describe(name).await? else {
            inner.tables.remove(name);
            return Ok(());
        };
        // Read again after each published change: a read in the middle of the transaction that
        // wrote both the table's record and a key's may have shown the one as it is and the other
        // as it was.
        let known = inner
            .tables
            .get(name)
            .filter(|known| known.schema.id == described.schema.id && !known.fresh.is_expired());
        let known = known.and_then(|known| match &known.status {
            TableStatus::Sharded(table) => Some(Arc::clone(table.key_layouts())),
            _ => None,
        });
        let (status, warnings, standing) =
            match judge(&inner.registry, &rules, &described, (known, Some(inner.tables.keys()))).await? {
                Judgement::Stands(TableStatus::Sharded(table), warnings, standing) => {
                    match inner.untagged.settle(&inner.registry, &described).await {
                        None => (TableStatus::Sharded(table), warnings, standing),
                        Some(problem) => (refused(problem, true), warnings, standing),
                    }
                }
                Judgement::Stands(status, warnings, standing) => (status, warnings, standing),
                Judgement::Empty(layouts, entry) => {
                    first_use::begin(inner, &described, layouts, entry.as_ref()).await?;
                    continue;
                }
                Judgement::Pending(record) => {
                    first_use::help(inner, record).await?;
                    continue;
                }
                Judgement::Intended(entry) => {
                    first_use::take_over(inner, &described, entry).await?;
                    continue;
                }
                Judgement::Reused(entry) => {
                    first_use::take_name(inner, &described.schema, &entry).await?;
                    continue;
                }
            };
        let mut warnings = warnings;
        let streams = described.streams;
        if streams && rules.shares_calls() {
            warnings.extend(rules.of_stream(&described.schema));
        }
        log_once(inner, &rules, name, &described.schema, &status, &warnings);
        let version = standing.version;
        remember(inner, &described.schema, &status, version);
        let before = inner.tables.get(name).filter(|before| before.schema.id == described.schema.id);
        let is_later =
            |known: &Arc<CachedTable>| known.created == standing.created && known.version > version;
        if before.as_ref().is_some_and(is_later) {
            return Err(behind_head::older(&inner.registry, name, "than this gateway has read before"));
        }
        let was = before.as_ref().map(|before| (before.version, before.rest));
        let rest = Rest::of(standing, was, &**inner.registry.env(), checked);
        // A gate that is about to be closed must not be reused.
        let same = before.filter(|before| before.version == version && !before.fresh.is_expired());
        let gate = same.map(|before| Arc::clone(&before.gate)).unwrap_or_default();
        let schema = Arc::new(described.schema);
        let fresh = Freshness::new(checked);
        let created = standing.created;
        let known = CachedTable { schema, status, warnings, fresh, version, created, rest, gate, streams };
        if inner.tables.insert(name, known, began, || inner.fence.seen()) {
            if !Arc::ptr_eq(&rules, &inner.rules.load()) {
                // Other rules came meanwhile, after which all tables are looked up again.
                inner.tables.expire(name);
            }
            return Ok(());
        }
    }
    Err(Error::unavailable(
        format!("The registry changes too often to tell how table {name} is laid out"),
        Outcome::NotDone,
    ))
}

/// The status of a table, as far as it follows without changing anything.
pub(crate) enum Judgement {
    /// Known. With warnings about rules that the record has outlived, and the version of the
    /// record.
    Stands(TableStatus, Vec<String>, Standing),
    /// Empty and not recorded: it gets these layouts as soon as they are recorded.
    Empty(TableLayouts, Option<NameEntry>),
    /// It is being recorded, or deleted.
    Pending(Record),
    /// A gateway created it, or was about to, and has not recorded it.
    Intended(NameEntry),
    /// Empty, without a rule, and with a name that another table has on record.
    Reused(NameEntry),
}

/// The status of a table. `known`: the layouts of its recorded keys, as they were read before, and
/// the records.
pub(crate) async fn judge(
    registry: &Registry,
    rules: &Rules,
    described: &Described,
    (known, tables): (Option<Arc<KeyLayouts>>, Option<&KnownTables>),
) -> Result<Judgement, Error> {
    let schema = &described.schema;
    let (mut entry, mut record) = registry.look_up(&schema.name, &schema.id).await?;
    let bound = Holder::Bound { id: schema.id.clone() };
    let others = |entry: &Option<NameEntry>| {
        entry.as_ref().is_some_and(|entry| entry.holder != Holder::Free && entry.holder != bound)
    };
    // The two were not read at the same time: the record, and its name entry, may have been written
    // in between.
    if record.is_none() && entry.as_ref().is_some_and(|entry| entry.holder == bound) {
        record = registry.read(&schema.id).await?;
    }
    if let Some(found) = record {
        record = Some(behind_head::checked(registry, found, entry.as_ref()).await?);
    }
    // A table that is being recorded or deleted is handled by its record, whoever has its name.
    let holds =
        |record: &Record| !matches!(record.state, State::Pending | State::Deleting { .. } | State::Gone);
    if record.as_ref().is_some_and(holds) && others(&entry) {
        entry = registry.entry(&schema.name).await?;
        // A record is written together with its name entry. So the entry read now shows a later
        // holder.
        match entry.as_ref() {
            Some(intent) if matches!(intent.holder, Holder::Intent { .. }) => {
                return Ok(Judgement::Intended(intent.clone()));
            }
            _ if others(&entry) => return Err(out_of_date(&schema.name)),
            _ => {}
        }
    }
    match record {
        Some(Record { state: State::Gone, .. }) => return Err(out_of_date(&schema.name)),
        Some(record) if matches!(record.state, State::Pending | State::Deleting { .. }) => {
            return Ok(Judgement::Pending(record));
        }
        Some(record) => {
            let (desired, mut warnings) = rules.desired_layout_recorded(schema, &record.layouts);
            if !matches!(record.state, State::ChangingKeys(_)) {
                warnings.extend(contradiction(registry.name(), &schema.name, &desired, &record.layouts));
            }
            let keys = match tables {
                Some(tables) => registry.key_layouts_anew(&record, known, tables).await?,
                None => registry.key_layouts(&record, known).await?,
            };
            let status = recorded(rules, schema, &record, keys);
            let migrates = matches!(record.state, State::MigratingIndexKeys(_))
                || record.values.iter().any(|value| value.migration.is_some());
            let standing = Standing {
                version: record.version,
                created: record.created,
                changed: record.changed.0,
                migrates,
            };
            return Ok(Judgement::Stands(status, warnings, standing));
        }
        None => {}
    }
    let stands = |status| Ok(Judgement::Stands(status, Vec::new(), Standing::default()));
    if described.status == "CREATING" {
        // Whether it will hold items (a restore, an import) is not known yet. The store gives the
        // same answer.
        return match (rules.desired_layout(schema), &entry) {
            (DesiredLayout::Unsharded | DesiredLayout::Unmentioned { .. }, None) => {
                stands(TableStatus::Forward)
            }
            (DesiredLayout::Impossible(reason), _) => stands(refused(reason, true)),
            _ => Err(not_found()),
        };
    }
    let mut copy_of = None;
    match &entry {
        Some(NameEntry { holder: Holder::Bound { id }, .. }) if *id != schema.id => {
            match registry.read(id).await? {
                Some(other) if other.state != State::Gone => {
                    if described.is_before(&other) {
                        return Err(out_of_date(&schema.name));
                    }
                    copy_of = Some(other);
                }
                _ => {}
            }
        }
        Some(entry) if matches!(entry.holder, Holder::Intent { .. }) => {
            return Ok(Judgement::Intended(entry.clone()));
        }
        _ => {}
    }
    let layouts = match rules.desired_layout(schema) {
        DesiredLayout::Sharded(layouts) => Some(layouts),
        DesiredLayout::Unsharded | DesiredLayout::Unmentioned { .. } if copy_of.is_none() => {
            return stands(not_on_record(registry, described, entry.as_ref()).await);
        }
        DesiredLayout::Unsharded | DesiredLayout::Unmentioned { .. } => None,
        DesiredLayout::Impossible(reason) => return stands(refused(reason, true)),
    };
    let empty = registry.is_empty(&schema.name).await?;
    // An index waits for its adoption, which reads the items itself.
    let waits = |layouts: &TableLayouts| !empty && layouts.iter().all(|one| one.index().is_some());
    if layouts.as_ref().is_some_and(|layouts| !waits(layouts))
        && let Some(problem) = tags::foreign(registry, described).await?
    {
        return stands(refused(problem, empty));
    }
    match (layouts, copy_of) {
        (Some(layouts), _) if empty => Ok(Judgement::Empty(layouts, entry)),
        (None, Some(_)) if empty && let Some(entry) = entry => Ok(Judgement::Reused(entry)),
        (_, Some(original)) => stands(refused(restored(schema, &original), false)),
        // Every item is where it would be without the rule, which holds once the index is adopted.
        (Some(layouts), _) if layouts.iter().all(|one| one.index().is_some()) => {
            stands(not_on_record(registry, described, entry.as_ref()).await)
        }
        (Some(layouts), _) => {
            // What its items show is said below, with the rules.
            if entry.is_none()
                && let Some(sign) = lost_registry::written(registry, described).await
            {
                return stands(refused(sign.refusal(&schema.name, registry.name()), false));
            }
            let message = unrecorded_table::refusal(registry, schema, &layouts).await?;
            stands(refused(message, false))
        }
        (None, None) => stands(TableStatus::Forward),
    }
}

/// The status of a table without a record, whose requests are forwarded: unless it shows that its
/// record is lost.
async fn not_on_record(registry: &Registry, described: &Described, entry: Option<&NameEntry>) -> TableStatus {
    // Where the registry has an entry for the name, it knows the table.
    let sign = match entry {
        None => lost_registry::of_table(registry, described).await,
        Some(_) => lost_registry::of_named(registry, described).await,
    };
    match sign {
        None => TableStatus::Forward,
        Some(sign) => refused(sign.refusal(&described.schema.name, registry.name()), false),
    }
}

/// The error for a table that took the name of a recorded one and holds items.
fn restored(schema: &TableSchema, original: &Record) -> String {
    let (name, old, new) = (&schema.name, &original.id, &schema.id);
    format!(
        "Table {name} is on record with the id {old}, and the store now shows another table of that name, with the id {new}, which holds items. \
         If it is a restored copy, its items lie as the old record says: `heatsink adopt {name} --records-from {old}` puts it on record so; if it is \
         another table, `heatsink adopt {name} --records-from none` brings it under its rules"
    )
}

/// What an operator has to know where the rules say otherwise than the record, which holds. If no
/// rule mentions the table, or an index, there is no contradiction, nor where a rule for an index
/// waits for its adoption.
pub(crate) fn contradiction(
    registry: &str,
    table: &str,
    desired: &DesiredLayout,
    recorded: &TableLayouts,
) -> Option<String> {
    let whole = TableLayouts::default();
    let desired: &dyn std::fmt::Display = match desired {
        DesiredLayout::Impossible(reason) => {
            return Some(format!("{reason}. The record in {registry} goes on to hold"));
        }
        DesiredLayout::Unsharded if !agree(&whole, recorded) => &"that its keys stay whole",
        DesiredLayout::Sharded(desired) if !agree(desired, recorded) => desired,
        _ => return None,
    };
    let recorded: &dyn std::fmt::Display =
        if recorded.is_empty() { &"that only single keys have shards" } else { recorded };
    Some(format!(
        "The rules contradict the registry for table {table}: the rules say {desired}, the record in {registry} says {recorded}. \
         Stored items lie as the record says, and it goes on to hold: change the rules back, or bring the table out with \
         `heatsink adopt {table} --back` and in again"
    ))
}

/// The status of a recorded table. The record alone says how its keys lie.
fn recorded(rules: &Rules, schema: &TableSchema, record: &Record, keys: Arc<KeyLayouts>) -> TableStatus {
    let table = || {
        let taken = rules.physical_keys(&schema.name, &record.layouts, record.adopted);
        Table::new(schema.clone(), Arc::new(record.layouts.clone()))
            .with_physical_keys(taken)
            .with_value_layouts(&record.values)
            .with_key_layouts(Arc::clone(&keys))
            .adopted(record.adopted)
            .of_version(record.version)
    };
    let under_way = match &record.state {
        // Nothing of it was ever sharded.
        State::Active if record.is_empty() => return TableStatus::Forward,
        State::Active => return TableStatus::Sharded(Arc::new(table())),
        State::MigratingIndexKeys(migration) => {
            let phase = migration.phase(&record.layouts);
            return TableStatus::Sharded(Arc::new(table().migrating(&phase)));
        }
        State::ChangingKeys(change) => {
            let changing = change.changing(schema, &record.layouts);
            return TableStatus::Sharded(Arc::new(table().changing(changing)));
        }
        State::Pending | State::Deleting { .. } | State::Gone => {
            return TableStatus::Refused { error: not_found(), fatal: false };
        }
        State::Adopting(_) => "brought under its rules",
        State::Returning(_) => "brought back out of its rules",
    };
    let message = format!(
        "Table {0} is being {under_way} by `heatsink adopt {0}`; until that is done its items cannot be read or written. \
         If it was interrupted, run it again: it goes on where it stopped",
        record.name
    );
    TableStatus::Refused { error: Error::unavailable(message, Outcome::NotDone), fatal: false }
}

/// Whether rules and record agree on the table's own keys. Where they differ on keys of indexes the
/// record holds, and the rule waits until `heatsink adopt` has rewritten their values.
pub fn agree(desired: &TableLayouts, recorded: &TableLayouts) -> bool {
    desired.own() == recorded.own()
}

/// The indexes that rules would spread in another way than a record does.
pub(crate) fn waiting(desired: &TableLayouts, recorded: Option<&TableLayouts>) -> Vec<String> {
    let none = TableLayouts::default();
    let differing = recorded.unwrap_or(&none).differing(desired);
    let waits = |index: &&OfIndex| differing.contains(&index.attribute.name);
    let mut names: Vec<String> = Vec::new();
    for index in desired.iter().filter_map(|one| one.index()).filter(waits) {
        if !names.contains(&index.name) {
            names.push(index.name.clone());
        }
    }
    names
}

fn refused(message: String, fatal: bool) -> TableStatus {
    TableStatus::Refused { error: Error::validation(message), fatal }
}

/// Logs once per table what an operator should know of it.
fn log_once(
    inner: &Inner,
    rules: &Rules,
    name: &str,
    schema: &TableSchema,
    status: &TableStatus,
    warnings: &[String],
) {
    let before = inner.tables.get(name).filter(|known| known.schema.id == schema.id);
    let same_table = before.is_some();
    let said = before.as_ref().map_or(&[][..], |known| &known.warnings);
    for warning in warnings.iter().filter(|warning| !said.contains(warning)) {
        tracing::warn!(table = schema.name, "{warning}");
    }
    let refused_before = before.is_some_and(|known| matches!(known.status, TableStatus::Refused { .. }));
    let desired = || match status {
        TableStatus::Sharded(table) => rules.desired_layout_recorded(schema, table.layouts()).0,
        _ => rules.desired_layout(schema),
    };
    match status {
        TableStatus::Refused { error, .. } if !refused_before => {
            tracing::error!(table = schema.name, "{error}")
        }
        TableStatus::Forward | TableStatus::Sharded(_) if !same_table => match desired() {
            DesiredLayout::Unmentioned { skipped } if matches!(status, TableStatus::Forward) => {
                skipped.iter().for_each(|reason| tracing::info!(table = schema.name, "{reason}"));
            }
            DesiredLayout::Sharded(desired) => {
                let recorded = match status {
                    TableStatus::Sharded(table) => Some(&**table.layouts()),
                    _ => None,
                };
                for index in waiting(&desired, recorded) {
                    tracing::warn!(table = schema.name, index, "{}", waits(&schema.name));
                }
            }
            _ => {}
        },
        _ => {}
    }
}

/// Remembers that a table is on record, for the time when the registry is lost; and forgets one
/// that the registry does not have on record any more.
fn remember(inner: &Inner, schema: &TableSchema, status: &TableStatus, version: u64) {
    let Some(memory) = &inner.registry.expectation().memory else { return };
    match status {
        TableStatus::Sharded(_) => memory.note(&RememberedTable {
            registry: inner.registry.name().to_owned(),
            name: schema.name.clone(),
            id: schema.id.clone(),
        }),
        // Without a record, and no sign that it is lost.
        TableStatus::Forward if version == 0 && !inner.fence.sees_no_registry() => memory.forget(&schema.id),
        _ => {}
    }
}

/// What a rule for an index waits for.
pub(crate) fn waits(table: &str) -> String {
    format!(
        "the rule for the index waits until `heatsink adopt {table}` has rewritten its items; until then its keys stay as they are on record, or whole"
    )
}
