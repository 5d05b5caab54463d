//! How many shards the keys of parts have, by the layouts in force.

use std::collections::HashMap;
use std::sync::Arc;

use heatsink_dynamo::KeyType;
use heatsink_heat::detect::{PartHeat, PartName, ShownKey};
use heatsink_layout::{InForce, LayoutSource, Phase};

use crate::Service;

/// The layouts of tables by name; those that could be told.
pub(super) type Layouts = HashMap<String, Arc<dyn LayoutSource>>;

/// The layouts of the tables that parts are of. Of a table that cannot be looked at now no shards are shown.
pub(super) async fn layouts_of(service: &Service, parts: &[PartHeat]) -> Layouts {
    let mut layouts = Layouts::new();
    for part in parts {
        if let (Some(table), None) = (part.name.table.as_deref(), &part.name.index)
            && !layouts.contains_key(table)
            && let Some(told) = service.layouts(table).await
        {
            layouts.insert(table.to_owned(), told);
        }
    }
    layouts
}

/// How many shards the writes of a key go to; `None` where the table is not sharded. Of a key that moves, the new ones from CHECK on.
pub(super) fn shards_of(table: &str, key: &[u8], layouts: &Layouts) -> Option<u16> {
    let layouts = layouts.get(table)?;
    let table = layouts.table(table)?;
    Some(match layouts.in_force(&table, key) {
        InForce::Moving(moving) if moving.phase >= Phase::Check => moving.to.shards,
        other => other.settled().shards,
    })
}

/// The same of a key of a part; `None` too where it is an index's.
pub(super) fn shards(key: &ShownKey, part: &PartName, layouts: &Layouts) -> Option<u16> {
    if part.index.is_some() || key.kind == KeyType::B {
        return None;
    }
    shards_of(part.table.as_deref()?, key.text.as_bytes(), layouts)
}
