//! The loads of the hottest keys of tables, for whoever acts on them.
//!
//! Not here: keys of indexes, which have no layout of their own by key.

use std::collections::HashMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use heatsink_dynamo::KeyType;
use heatsink_heat::KeyLoad;
use heatsink_heat::detect::{KeyHeat, PartHeat, ShownKey};

/// The keys of these parts, the highest loads first.
pub(super) fn of(parts: &[PartHeat]) -> Vec<KeyLoad> {
    let mut loads: HashMap<(&str, &ShownKey), KeyLoad> = HashMap::new();
    for part in parts {
        let (Some(table), None) = (part.name.table.as_deref(), &part.name.index) else { continue };
        for heat in &part.keys {
            let Some(bytes) = bytes(heat) else { continue };
            let load = loads.entry((table, &heat.key)).or_insert_with(|| KeyLoad {
                table: table.to_owned(),
                key: bytes,
                ..KeyLoad::default()
            });
            load.take(part.name.kind, heat);
        }
    }
    let mut loads: Vec<KeyLoad> = loads.into_values().collect();
    loads.sort_by(|a, b| (b.writes + b.reads).total_cmp(&(a.writes + a.reads)));
    loads
}

/// The key's bytes; `None` where it cannot have shards, or is not known whole.
fn bytes(heat: &KeyHeat) -> Option<Vec<u8>> {
    match heat.key.kind {
        _ if !heat.is_whole => None,
        KeyType::S => Some(heat.key.text.clone().into_bytes()),
        KeyType::B => STANDARD.decode(&heat.key.text).ok(),
        KeyType::N => None,
    }
}
