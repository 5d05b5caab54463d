//! Has gateways give keys, or values of indexes, what is wanted, and waits until they have.
//!
//! Not here: the commands of `reshard`, which say what they do (`ask`, `value`).

use std::collections::HashMap;

use heatsink_control::reshard_intent::ReshardIntent;
use heatsink_workers::ReshardReport;

use super::args::{How, Place};
use super::follow;
use super::intents::{self, Wish};
use super::opened::Opened;
use super::told::unread;
use crate::exit::Exit;

/// Asks for it on record, and waits for all of them.
///
/// # Errors
/// Nothing was asked for, or one of them was not carried out: what to do.
pub(in crate::cli) async fn by_gateways(
    opened: &Opened,
    table: &str,
    wishes: &[Wish],
    how: &How,
    place: &Place,
) -> Result<Vec<ReshardReport>, Exit> {
    let Some(described) = opened.registry.describe(table).await.map_err(unread)? else {
        return Err(Exit::usage(format!("There is no table {table}")));
    };
    let id = &described.schema.id;
    // Counters among them get fewer parts.
    intents::known_to_all(opened, |one| one.knows_narrowing, "counters that get fewer shards").await?;
    let intents = intents::write(opened, (id, table), wishes, how, place).await?;
    // What each has now, for the report.
    let records: HashMap<Vec<u8>, u16> = match opened.registry.read(id).await.map_err(unread)? {
        Some(record) => {
            let records = opened.registry.all_key_records(&record).await.map_err(unread)?;
            records.into_iter().map(|one| (one.key, one.layout.shards)).collect()
        }
        None => HashMap::new(),
    };
    let has = |intent: &ReshardIntent| match intent.index {
        None => records.get(&intent.key).copied().unwrap_or(1),
        Some(_) => 1,
    };
    let followed: Vec<_> = intents.iter().map(|intent| (intent, has(intent))).collect();
    follow::all(opened, &followed, place).await
}
