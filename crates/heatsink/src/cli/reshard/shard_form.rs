//! Keys that are written like shards, in a table without a record: nothing says whether they are
//! shards of another key whose record is lost. They are never taken for clients' keys unasked.

use heatsink_control::lost_registry::traces_of_key;
use heatsink_control::reshard_intent::key_text;
use heatsink_layout::codec::split_shard_of;
use heatsink_workers::TableContext;

use super::opened::Opened;
use super::told::unread;
use crate::exit::Exit;

/// Above this chance a key that an operator names may lie as it does by chance, and is a client's.
const CHANCE: f64 = 0.01;

/// Refuses keys that are written like shards, unless the table is on record. `named`: the operator
/// named the keys themselves; then one is refused only if its items lie like those of a shard.
pub(super) async fn refuse(
    opened: &Opened,
    context: &TableContext,
    keys: &[Vec<u8>],
    named: bool,
) -> Result<(), Exit> {
    if context.is_on_record() {
        return Ok(());
    }
    let table = &context.table().name;
    for own in keys {
        let Some((base, shard)) = split_shard_of(own, context.key_type()) else { continue };
        let [key, base] = [own, base].map(|key| key_text(key, context.key_type()));
        if named {
            let Some(described) = opened.registry.describe(table).await.map_err(unread)? else { continue };
            let traces = traces_of_key(&opened.registry, &described, own);
            let lies = traces.await.map_err(unread)?.iter().any(|(_, found)| found.by_chance() < CHANCE);
            if !lies {
                continue;
            }
        }
        return Err(Exit::usage(format!(
            "The key {key:?} of table {table} is written like shard {shard} of {base:?}, and the table has no record that says whether it is one: its record \
             may be lost. `heatsink verify {table}` looks at its items. A client's key of that form can be named by itself"
        )));
    }
    Ok(())
}
