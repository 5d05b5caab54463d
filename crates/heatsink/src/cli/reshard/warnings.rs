//! What an operator has to know before a key gets other shards, and the question where a table gets
//! its first ones.

use heatsink_workers::{Plan, Reshard, TableContext};

use super::opened::{Access, Opened};
use super::told::{exit, unread};
use crate::cli::confirm;
use crate::exit::Exit;

/// What the first shards of a table at an upstream mean to all that use it; nothing where it has
/// some, or where nobody else can use it.
pub(super) async fn all_through(
    opened: &Opened,
    table_id: &str,
    table: &str,
) -> Result<Option<String>, Exit> {
    if opened.access != Access::BesideGateways {
        return Ok(None);
    }
    let recorded = opened.registry.read(table_id).await.map_err(unread)?.is_some();
    Ok((!recorded).then(|| {
        format!(
            "Nothing of table {table} is sharded yet. From then on everything that reads or writes it has to go through gateways of Heatsink: what goes \
             past them finds a part of the items alone, and writes where no request looks"
        )
    }))
}

/// Asks whether that is so. Where there is nobody to ask it is a warning, and the command goes on:
/// a reshard has a way back.
pub(super) fn ask(all_through: Option<&str>, yes: bool) -> Result<(), Exit> {
    match all_through {
        Some(about) if !yes && confirm::is_possible() => confirm::ask(yes, about),
        Some(about) if !yes => {
            tracing::warn!("{about}");
            Ok(())
        }
        _ => Ok(()),
    }
}

/// What is odd about giving these keys shards: each with its text.
pub(super) async fn of_keys(
    context: &TableContext,
    keys: impl Iterator<Item = (String, &Reshard)>,
) -> Result<Vec<String>, Exit> {
    let mut warnings = Vec::new();
    for (key, reshard) in keys {
        if !reshard.is_begun() && !reshard.has_items().await.map_err(exit)? {
            warnings.push(no_items(&context.table().name, &key));
        }
    }
    Ok(warnings)
}

/// The same of what would be done.
pub(super) async fn of_plan(plan: &Plan, reshard: &Reshard) -> Result<Vec<String>, Exit> {
    let mut warnings = Vec::new();
    if plan.items == 0 && !reshard.is_begun() && !reshard.has_items().await.map_err(exit)? {
        warnings.push(no_items(&plan.table, &plan.key));
    }
    Ok(warnings)
}

fn no_items(table: &str, key: &str) -> String {
    format!("table {table} has no item with the key {key:?}: is it spelt right? Only its record is written")
}
