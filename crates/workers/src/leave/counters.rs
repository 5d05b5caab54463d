//! The keys whose items are counters by a rule. No record names them, so the table is read.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use heatsink_control::MAX_KEY_RECORDS;
use heatsink_control::registry::Registry;
use heatsink_dynamo::Error;
use heatsink_layout::Table;

use super::sharded::Sharded;
use crate::error::{WorkerError, usage};
use crate::items::item::ItemContext;
use crate::items::walk::Walk;
use crate::progress::{Phase, Progress};
use crate::recorded_keys;

/// Those of a table that are still in parts, or may get parts.
///
/// # Errors
/// The store's; [`WorkerError::Usage`] where there are more than can be on record.
pub(super) fn of<'a>(
    registry: &'a Registry,
    found: &'a Sharded,
    progress: &'a dyn Progress,
) -> BoxFuture<'a, Result<Vec<Vec<u8>>, WorkerError>> {
    async move {
    let record = &found.record;
    let Some(described) = registry.describe(&record.name).await? else {
        return Err(WorkerError::Store(Error::internal(format!("The table {} is gone", record.name))));
    };
    let keys = recorded_keys::layouts(record.keys, &found.keys);
    let table = Table::new(described.schema, Arc::new(record.layouts.clone())).with_key_layouts(keys);
    let context = ItemContext { table: Arc::new(table) };
    progress.phase(Phase::Looking, found.items);
    let mut counters: BTreeSet<Vec<u8>> = BTreeSet::new();
    let mut walk = Walk::of_keys(registry, &context.table);
    while let Some(page) = walk.page().await? {
        for item in &page {
            let key = context.key(item)?;
            let logical = context.table.logical(&key);
            let layout = context.table.layout_of(logical);
            let in_parts =
                layout.is_some_and(|layout| layout.counter_attributes().is_some() && layout.shards > 1);
            if in_parts && !counters.contains(logical) {
                counters.insert(logical.to_vec());
            }
            progress.passed(1);
        }
        if counters.len() + found.keys.len() > MAX_KEY_RECORDS {
            return usage(format!(
                "More than {MAX_KEY_RECORDS} keys of table {0} are counters by its rules, and so many can be summed into whole items. Read each total through a \
                 gateway, write it to a table without the rule, and delete table {0}",
                record.name
            ));
        }
    }
    Ok(counters.into_iter().collect())
    }
    .boxed()
}
