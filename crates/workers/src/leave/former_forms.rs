//! Items that have the key of an index and not the index's sort key are in no index, so a value of
//! it that came back has left them in the form that they had. Before its record goes they get the
//! plain form. The whole table is read, while clients use it.
//!
//! Not here: the items that an index shows (`value`).

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use heatsink_control::claim::Claim;
use heatsink_control::registry::Registry;
use heatsink_control::{Changer, Record, State};
use heatsink_layout::Table;

use crate::error::{WorkerError, usage};
use crate::items::index_rewrite::{Brought, bring};
use crate::items::item::ItemContext;
use crate::items::walk::Walk;
use crate::on_record::{taken_over, write};
use crate::progress::{Phase, Progress};

/// Rewrites them, so many at once, and takes the values off the record. Returns how many.
///
/// # Errors
/// The store's, or that another process changed the record.
pub(super) fn write_plain<'a>(
    registry: &'a Registry,
    changer: &'a Changer,
    record: &'a Record,
    concurrency: usize,
    progress: &'a dyn Progress,
) -> BoxFuture<'a, Result<u64, WorkerError>> {
    async move {
        let Some(described) = registry.describe(&record.name).await? else {
            return usage(format!("There is no table {}", record.name));
        };
        // Its own version, so that a run that was taken over stops.
        let record = &write(registry, record, State::Active).await?;
        let keys = registry.key_layouts(record, None).await?;
        let table = Table::new(described.schema, Arc::new(record.layouts.clone()))
            .with_value_layouts(&record.values)
            .with_key_layouts(keys);
        let context = &ItemContext { table: Arc::new(table) };
        let claim = Claim::take(registry, record, concurrency).await?;
        progress.phase(Phase::Settling, None);
        changer.announce(&record.name, record.version).await?;
        progress.phase(Phase::Moving, None);
        let walk = Walk::new(registry, &record.name);
        let claimed = &claim;
        let change = |item| async move {
            let mut any = false;
            for value in context.index_values(&item)? {
                any |= bring(claimed, context, &item, &value).await? == Brought::Done;
            }
            Ok(any)
        };
        let moved = walk.change_each(record, concurrency, progress, change).await?;
        claim.end().await?;
        let next = Record { values: Vec::new(), version: record.version + 1, ..record.clone() };
        if !registry.replace(record, &next).await? {
            return Err(taken_over(&record.name));
        }
        changer.announce(&next.name, next.version).await?;
        Ok(moved)
    }
    .boxed()
}
