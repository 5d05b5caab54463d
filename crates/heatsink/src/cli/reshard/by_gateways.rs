//! Has gateways give keys, or values of indexes, what is wanted, and waits until they have.
//!
//! Not here: the commands of `reshard`, which say what they do (`ask`, `value`).

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
    let mut followed: Vec<(&ReshardIntent, u16)> = Vec::with_capacity(intents.len());
    for intent in &intents {
        let record = match intent.index {
            None => opened.registry.key_record(id, &intent.key, intent.key_type).await.map_err(unread)?,
            Some(_) => None,
        };
        followed.push((intent, record.map_or(1, |record| record.layout.shards)));
    }
    follow::all(opened, &followed, place).await
}
