//! Checks what the rules would mean for every table of a store. Changes nothing.

use std::fmt;
use std::sync::Arc;

use heatsink_dynamo::{Code, Error, Operation};
use heatsink_env::Env;
use heatsink_store::Store;
use serde_json::{Value as Json, json};

use crate::describe::Described;
use crate::registry::Registry;
use crate::resolve::{Judgement, contradiction, judge, waiting};
use crate::rules::{DesiredLayout, Rules};
use crate::table_cache::TableStatus;
use heatsink_layout::{DIRECTORY, TableLayouts};

/// What the rules mean for one table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Its requests are forwarded. Holds the reasons why glob rules that name the table do not
    /// apply.
    Forwarded(Vec<String>),
    /// It is recorded, and the rules agree or do not mention it.
    Sharded(TableLayouts),
    /// It is recorded as the first field says; the rules for these indexes wait for their adoption.
    Waiting(TableLayouts, Vec<String>),
    /// It is recorded, and the record holds, though some of its rules could not be recorded any
    /// more: the reasons. Includes what waits.
    Outlived(TableLayouts, Vec<String>),
    /// It is empty, and will be recorded on first use.
    Empty(TableLayouts),
    /// It is recorded as the first field says, which holds; the rules say otherwise.
    Contradicted(TableLayouts, String),
    /// Its requests would be refused: the reason.
    Refused(String),
}

impl Verdict {
    /// One word for programs.
    pub const fn name(&self) -> &'static str {
        match self {
            Verdict::Forwarded(_) => "forwarded",
            Verdict::Sharded(_) => "sharded",
            Verdict::Waiting(..) => "waiting",
            Verdict::Outlived(..) => "outlived",
            Verdict::Empty(_) => "empty",
            Verdict::Contradicted(..) => "contradicted",
            Verdict::Refused(_) => "refused",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Forwarded(skipped) if skipped.is_empty() => f.write_str("forwarded, no rule is for it"),
            Verdict::Forwarded(skipped) => write!(f, "forwarded; {}", skipped.join("; ")),
            Verdict::Sharded(layouts) => write!(f, "sharded and on record: {layouts}"),
            Verdict::Waiting(layouts, indexes) => {
                if layouts.is_empty() {
                    f.write_str("forwarded")?;
                } else {
                    write!(f, "sharded and on record: {layouts}")?;
                }
                write!(f, "; to be adopted: index {}", indexes.join(", "))
            }
            Verdict::Outlived(layouts, warnings) => {
                write!(f, "sharded and on record: {layouts}; warning: {}", warnings.join("; "))
            }
            Verdict::Empty(layouts) => write!(f, "empty; will be sharded from its first use on: {layouts}"),
            Verdict::Contradicted(_, reason) => write!(f, "as on record: {reason}"),
            Verdict::Refused(reason) => write!(f, "refused: {reason}"),
        }
    }
}

/// The rules and the tables of a store, compared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// Each table, with the effect of the rules.
    pub tables: Vec<(String, Verdict)>,
    /// Each rule, in order, with its tables.
    pub rules: Vec<Named>,
}

/// The tables of one rule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Named {
    /// Tables that it names and can hold for.
    pub tables: Vec<String>,
    /// Tables that it names and cannot hold for.
    pub left_alone: Vec<String>,
}

/// Compares the rules with every table of a store.
///
/// # Errors
/// The store's.
pub async fn check(store: Arc<dyn Store>, env: Arc<dyn Env>, rules: &Rules) -> Result<Checked, Error> {
    let registry = rules.fence().registry_in(store, env);
    let mut checked =
        Checked { rules: rules.iter().map(|_| Named::default()).collect(), ..Checked::default() };
    let mut start = Json::Null;
    loop {
        let body = if start.is_null() { json!({}) } else { json!({ "ExclusiveStartTableName": start }) };
        let mut page = registry.call(Operation::ListTables, body).await?;
        for name in page["TableNames"].as_array().into_iter().flatten().filter_map(Json::as_str) {
            if [registry.name(), DIRECTORY].contains(&name) {
                continue;
            }
            let Some(described) = registry.describe(name).await? else { continue };
            if let Some(verdict) = verdict(&registry, rules, &described).await? {
                checked.tables.push((name.to_owned(), verdict));
                for (number, fits) in rules.naming(&described.schema) {
                    if let Some(named) = checked.rules.get_mut(number - 1) {
                        let tables = if fits.is_ok() { &mut named.tables } else { &mut named.left_alone };
                        tables.push(name.to_owned());
                    }
                }
            }
        }
        start = page["LastEvaluatedTableName"].take();
        if start.is_null() {
            return Ok(checked);
        }
    }
}

/// `None` for a table that does not exist any more.
async fn verdict(
    registry: &Registry,
    rules: &Rules,
    described: &Described,
) -> Result<Option<Verdict>, Error> {
    let waits = |recorded: Option<&TableLayouts>| {
        let desired = match recorded {
            Some(recorded) => rules.desired_layout_recorded(&described.schema, recorded).0,
            None => rules.desired_layout(&described.schema),
        };
        match desired {
            DesiredLayout::Sharded(desired) => waiting(&desired, recorded),
            _ => Vec::new(),
        }
    };
    Ok(Some(match judge(registry, rules, described, (None, None)).await {
        Ok(Judgement::Empty(layouts, _)) => Verdict::Empty(layouts),
        Ok(Judgement::Pending(record)) => Verdict::Empty(record.layouts),
        Ok(Judgement::Intended(_)) => return Ok(None),
        Ok(Judgement::Stands(TableStatus::Sharded(table), mut warnings, _)) => {
            let layouts = TableLayouts::clone(table.layouts());
            let desired = rules.desired_layout_recorded(&described.schema, &layouts).0;
            if let Some(reason) = contradiction(registry.name(), &table.name, &desired, &layouts) {
                return Ok(Some(Verdict::Contradicted(layouts, reason)));
            }
            match waits(Some(&layouts)) {
                indexes if !warnings.is_empty() => {
                    if !indexes.is_empty() {
                        warnings.push(format!("to be adopted: index {}", indexes.join(", ")));
                    }
                    Verdict::Outlived(layouts, warnings)
                }
                indexes if indexes.is_empty() => Verdict::Sharded(layouts),
                indexes => Verdict::Waiting(layouts, indexes),
            }
        }
        Ok(Judgement::Stands(TableStatus::Refused { error, .. }, ..)) => {
            Verdict::Refused(error.message.unwrap_or_default())
        }
        // It is on record with whole keys.
        Ok(Judgement::Stands(TableStatus::Forward, warnings, standing))
            if standing.version > 0 && !warnings.is_empty() =>
        {
            Verdict::Contradicted(TableLayouts::default(), warnings.join("; "))
        }
        Ok(Judgement::Stands(TableStatus::Forward, ..) | Judgement::Reused(_)) => {
            Verdict::Forwarded(match rules.desired_layout(&described.schema) {
                DesiredLayout::Unmentioned { skipped } => skipped,
                DesiredLayout::Sharded(_) => {
                    return Ok(Some(Verdict::Waiting(TableLayouts::default(), waits(None))));
                }
                _ => vec!["the rules keep its keys whole".to_owned()],
            })
        }
        Err(error) if error.code == Code::ResourceNotFoundException => return Ok(None),
        Err(error) => return Err(error),
    }))
}
