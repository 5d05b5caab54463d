//! How many shards the keys of parts have, by the layouts in force.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use heatsink_control::Control;
use heatsink_dynamo::KeyType;
use heatsink_heat::detect::{PartHeat, PartName, ShownKey};
use heatsink_layout::{Bucket, InForce, Layout, LayoutSource, Phase};

use crate::placed::Placed;

/// The layouts of tables by name, those that could be told, at a time.
pub(super) struct Layouts {
    tables: HashMap<String, Arc<dyn LayoutSource>>,
    /// Milliseconds since 1970.
    now: u64,
}

/// The layouts of the tables that parts are of, at a time in milliseconds since 1970. Of a table
/// that cannot be looked at now no shards are shown.
pub(super) async fn layouts_of(control: &Control, now: u64, parts: &[PartHeat]) -> Layouts {
    let mut layouts = Layouts { tables: HashMap::new(), now };
    for part in parts {
        if let (Some(table), None) = (part.name.table.as_deref(), &part.name.index)
            && !layouts.tables.contains_key(table)
            && let Ok(pass) = control.resolve(&[table]).await
        {
            layouts.tables.insert(table.to_owned(), control.view(&pass).handle());
        }
    }
    layouts
}

/// The layout by which a key is written: of one that moves, the new one from CHECK on.
fn written(in_force: &InForce) -> &Arc<Layout> {
    match in_force {
        InForce::Moving(moving) if moving.phase >= Phase::Check => &moving.to,
        other => other.settled(),
    }
}

/// The slots that the writes of a key go to, by shard; `None` where the table is not sharded. Of a
/// key that moves, the new ones from CHECK on; of one in buckets, those of the bucket of now.
fn slots_of(table: &str, key: &[u8], layouts: &Layouts) -> Option<Vec<u16>> {
    let source = layouts.tables.get(table)?;
    let table = source.table(table)?;
    let in_force = source.in_force(&table, key);
    let layout = written(&in_force);
    let seconds = i64::try_from(layouts.now / 1_000).unwrap_or(i64::MAX);
    let bucket = layout.time().and_then(|time| Bucket::at(seconds, time.granularity));
    let shards = bucket.map_or(layout.shards, |bucket| layout.shards_in(bucket));
    Some((0..shards).map(|shard| layout.slot_number(shard)).collect())
}

/// Whether the shards of a key are ranges of its sort key.
pub(super) fn in_ranges(table: &str, key: &[u8], layouts: &Layouts) -> bool {
    let source = layouts.tables.get(table);
    let of = |source: &Arc<dyn LayoutSource>| {
        let table = source.table(table)?;
        Some(written(&source.in_force(&table, key)).split_points().is_some())
    };
    source.and_then(of).unwrap_or_default()
}

/// How many these are.
pub(super) fn shards_of(table: &str, key: &[u8], layouts: &Layouts) -> Option<u16> {
    slots_of(table, key, layouts).and_then(|slots| u16::try_from(slots.len()).ok())
}

/// The slots of a key of a part; `None` too where it is an index's.
pub(super) fn slots(key: &ShownKey, part: &PartName, layouts: &Layouts) -> Option<Vec<u16>> {
    if part.index.is_some() {
        return None;
    }
    slots_of(part.table.as_deref()?, &key_bytes(key.kind, &key.text)?, layouts)
}

/// The bytes of a key that has this text, as layouts have them; `None` of a binary one that was cut.
pub(super) fn key_bytes(kind: KeyType, text: &str) -> Option<Cow<'_, [u8]>> {
    Some(match kind {
        KeyType::S | KeyType::N => Cow::Borrowed(text.as_bytes()),
        KeyType::B => Cow::Owned(STANDARD.decode(text).ok()?),
    })
}

/// The numbers of the partitions that the writes of a key of a table go to.
pub(super) fn partitions(
    key: &ShownKey,
    part: &PartName,
    layouts: &Layouts,
    placed: &Placed,
) -> Option<Vec<u64>> {
    let is_known = part.table.as_deref().is_some_and(|table| layouts.tables.contains_key(table));
    // A number lies where its canonical form does.
    if key.kind != KeyType::S || part.index.is_some() || !is_known {
        return None;
    }
    let slots = slots(key, part, layouts).unwrap_or_else(|| vec![0]);
    Some(placed.numbers(key.text.as_bytes(), &slots))
}

/// How many these are.
pub(super) fn shards(key: &ShownKey, part: &PartName, layouts: &Layouts) -> Option<u16> {
    slots(key, part, layouts).and_then(|slots| u16::try_from(slots.len()).ok())
}
