//! First touch of a table: what the store describes, what the registry records and what the rules wish, brought together.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use heatsink_dynamo::{Code, Error, Outcome, TableSchema};

use crate::control::{Inner, not_found};
use crate::describe::Described;
use crate::known::{Freshness, Known, Standing};
use crate::record::{Record, State};
use crate::registry::{REGISTRY, Registry};
use crate::rules::{Rules, Wish};
use crate::unrecorded;
use heatsink_layout::{OfIndex, Table, TableLayouts, Turn};

/// Looks a table up and remembers its standing. A table that is not there is forgotten: its requests go to the store, which says so.
pub(crate) async fn look(inner: &Inner, name: &str) -> Result<(), Error> {
    let changes = inner.changes.load(Ordering::Acquire);
    // From before the first request, so that the age of what is known is never understated.
    let checked = inner.registry.env().now();
    let described = match inner.registry.describe(name).await {
        Ok(described) => described,
        // A name that the store does not take: it tells the client in the words that belong to the client's operation.
        Err(error) if error.code == Code::ValidationException => None,
        Err(error) => return Err(error),
    };
    let Some(described) = described else {
        inner.tables.remove(name);
        return Ok(());
    };
    let (standing, warnings) = standing(inner, &described).await?;
    log_once(inner, name, &described.schema, &standing, &warnings);
    let schema = Arc::new(described.schema);
    let known = Known { schema, standing, warnings, fresh: Freshness::new(checked) };
    if inner.changes.load(Ordering::Acquire) != changes {
        known.fresh.expire();
    }
    inner.tables.insert(name, known);
    Ok(())
}

async fn standing(inner: &Inner, described: &Described) -> Result<(Standing, Vec<String>), Error> {
    match judge(&inner.registry, &inner.rules, described).await? {
        Judgement::Stands(standing, warnings) => Ok((standing, warnings)),
        Judgement::Empty(layouts) => {
            inner.registry.make_directory(&layouts).await?;
            let record =
                inner.registry.create(&inner.fresh_record(&described.schema, layouts.clone())).await?;
            Ok((recorded(&inner.rules, &described.schema, &record, &Wish::Sharded(layouts)), Vec::new()))
        }
    }
}

/// How a table stands, as far as that can be told without changing anything.
pub(crate) enum Judgement {
    /// So, with what an operator should know of rules that what is on record has outlived.
    Stands(Standing, Vec<String>),
    /// Empty and not on record: it takes these layouts as soon as they are.
    Empty(TableLayouts),
}

pub(crate) async fn judge(
    registry: &Registry,
    rules: &Rules,
    described: &Described,
) -> Result<Judgement, Error> {
    let schema = &described.schema;
    let stands = |standing| Ok(Judgement::Stands(standing, Vec::new()));
    if let Some(record) = registry.read(&schema.id).await? {
        let (wish, warnings) = rules.wish_recorded(schema, &record.layouts);
        return Ok(Judgement::Stands(recorded(rules, schema, &record, &wish), warnings));
    }
    let layouts = match rules.wish(schema) {
        Wish::Sharded(layouts) => layouts,
        Wish::Whole | Wish::Unmentioned { .. } => return stands(Standing::Forward),
        Wish::Impossible(reason) => return stands(refused(reason, true)),
    };
    if described.status == "CREATING" {
        // Whether it will hold items (a restore, an import) is not known yet. The store answers the same.
        return Err(not_found());
    }
    if registry.is_empty(&schema.name).await? {
        return Ok(Judgement::Empty(layouts));
    }
    if layouts.iter().all(|one| one.index().is_some()) {
        // Nothing lies elsewhere than it would without the rule, which holds once the index is brought in.
        return stands(Standing::Forward);
    }
    let message = unrecorded::refusal(registry, schema, &layouts).await?;
    stands(refused(message, false))
}

/// What a record means for a gateway with that wish. Where no rule speaks of the table, or of an index, the record alone holds. A
/// rule for an index that is not on record yet waits for its adoption.
fn recorded(rules: &Rules, schema: &TableSchema, record: &Record, wish: &Wish) -> Standing {
    let contradiction = |wished: &dyn std::fmt::Display| {
        refused(
            format!(
                "The rules contradict the registry for table {}: the rules say {wished}, the record in {REGISTRY} says {}. \
                 Stored items lie as the record says: change the rules back, or bring the table out with `heatsink adopt {} --back` first",
                record.name, record.layouts, record.name
            ),
            true,
        )
    };
    match wish {
        Wish::Impossible(reason) => return refused(reason.clone(), true),
        Wish::Whole => return contradiction(&"that its keys stay whole"),
        Wish::Sharded(wished) if !agree(wished, &record.layouts) => return contradiction(wished),
        Wish::Sharded(_) | Wish::Unmentioned { .. } => {}
    }
    let table = || {
        let taken = rules.physical_keys(&schema.name, &record.layouts);
        Table::new(schema.clone(), Arc::new(record.layouts.clone())).with_physical_keys(taken)
    };
    let under_way = match &record.state {
        State::Active => return Standing::Sharded(Arc::new(table())),
        State::Turning(turning) => {
            let turn = Turn { spreads: turning.spreads, writes_new: turning.writes_new };
            return Standing::Sharded(Arc::new(table().turning(&turning.attributes, turn)));
        }
        State::Adopting(_) => "brought under its rules",
        State::Returning(_) => "brought back out of its rules",
    };
    let message = format!(
        "Table {0} is being {under_way} by `heatsink adopt {0}`; until that is done its items cannot be read or written. \
         If it was interrupted, run it again: it goes on where it stopped",
        record.name
    );
    Standing::Refused { error: Error::unavailable(message, Outcome::NotDone), fatal: false }
}

/// Whether rules and record say the same of the table's own keys, and of every index key that both speak of.
pub(crate) fn agree(wished: &TableLayouts, recorded: &TableLayouts) -> bool {
    wished.own() == recorded.own()
        && wished.attributes().iter().all(|name| {
            let held = recorded.of_attribute(name);
            held.is_empty() || held == wished.of_attribute(name)
        })
}

/// The indexes that rules would spread and a record does not.
pub(crate) fn waiting(wished: &TableLayouts, recorded: Option<&TableLayouts>) -> Vec<String> {
    let unrecorded = |name: &&OfIndex| {
        recorded.is_none_or(|recorded| recorded.of_attribute(&name.attribute.name).is_empty())
    };
    wished.iter().filter_map(|one| one.index()).filter(unrecorded).map(|index| index.name.clone()).collect()
}

fn refused(message: String, fatal: bool) -> Standing {
    Standing::Refused { error: Error::validation(message), fatal }
}

/// Says once per table what an operator should know of it.
fn log_once(inner: &Inner, name: &str, schema: &TableSchema, standing: &Standing, warnings: &[String]) {
    let before = inner.tables.get(name).filter(|known| known.schema.id == schema.id);
    let same_table = before.is_some();
    let said = before.as_ref().map_or(&[][..], |known| &known.warnings);
    for warning in warnings.iter().filter(|warning| !said.contains(warning)) {
        tracing::warn!(table = schema.name, "{warning}");
    }
    let refused_before = before.is_some_and(|known| matches!(known.standing, Standing::Refused { .. }));
    let wish = || match standing {
        Standing::Sharded(table) => inner.rules.wish_recorded(schema, table.layouts()).0,
        _ => inner.rules.wish(schema),
    };
    match standing {
        Standing::Refused { error, .. } if !refused_before => tracing::error!(table = schema.name, "{error}"),
        Standing::Forward | Standing::Sharded(_) if !same_table => match wish() {
            Wish::Unmentioned { skipped } if matches!(standing, Standing::Forward) => {
                skipped.iter().for_each(|reason| tracing::info!(table = schema.name, "{reason}"));
            }
            Wish::Sharded(wished) => {
                let recorded = match standing {
                    Standing::Sharded(table) => Some(&**table.layouts()),
                    _ => None,
                };
                for index in waiting(&wished, recorded) {
                    tracing::warn!(table = schema.name, index, "{}", waits(&schema.name));
                }
            }
            _ => {}
        },
        _ => {}
    }
}

/// What a rule for an index waits for.
pub(crate) fn waits(table: &str) -> String {
    format!(
        "the rule for the index waits until `heatsink adopt {table}` has brought its items in; until then its keys stay whole"
    )
}
