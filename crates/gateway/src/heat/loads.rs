//! The loads of the hottest keys of tables, for whoever acts on them.
//!
//! Not here: keys of indexes, which have no layout of their own by key.

use std::collections::HashMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use heatsink_dynamo::KeyType;
use heatsink_env::MonotonicInstant;
use heatsink_heat::KeyLoad;
use heatsink_heat::detect::{KeyHeat, Kind, ShownKey};

use super::Heat;

/// The most items of a page that are reckoned with.
const MOST_ITEMS: f64 = 1_000.0;

impl Heat {
    /// The keys of the last window, the highest loads first.
    pub(crate) fn loads(&self, now: MonotonicInstant) -> Vec<KeyLoad> {
        let mut loads: HashMap<(String, ShownKey), KeyLoad> = HashMap::new();
        for part in self.parts(now).1 {
            let (Some(table), None) = (&part.name.table, &part.name.index) else { continue };
            for heat in part.keys {
                let Some(bytes) = bytes(&heat) else { continue };
                let load = loads.entry((table.to_string(), heat.key.clone())).or_insert_with(|| KeyLoad {
                    table: table.to_string(),
                    key: bytes,
                    ..KeyLoad::default()
                });
                add(load, part.name.kind, &heat);
            }
        }
        let mut loads: Vec<KeyLoad> = loads.into_values().collect();
        loads.iter_mut().for_each(|load| load.page = items(load));
        loads.sort_by(|a, b| (b.writes + b.reads).total_cmp(&(a.writes + a.reads)));
        loads
    }
}

fn add(load: &mut KeyLoad, kind: Kind, heat: &KeyHeat) {
    // What may be another key's is not this one's.
    let units = (heat.units_per_s - heat.error_units_per_s).max(0.0);
    load.requests += heat.requests_per_s;
    load.throttled += heat.throttled_per_s;
    load.item_bytes = load.item_bytes.max(heat.largest_item_bytes);
    match kind {
        Kind::Write => {
            load.writes = units;
            load.growing = heat.growing_sort_share.unwrap_or(0.0);
            load.one_item = heat.same_sort_share.unwrap_or(0.0);
        }
        Kind::Read => {
            load.reads = units;
            load.queries = heat.requests_per_s;
            load.same_page = heat.same_page_share.unwrap_or(0.0);
        }
    }
}

/// How many items a read has, by what it costs: half a unit for each 4 KB.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to the range")]
fn items(load: &KeyLoad) -> u32 {
    let bytes = load.reads / load.queries.max(1e-9) * 2.0 * 4_096.0;
    (bytes / f64::from(load.item_bytes.max(1))).clamp(1.0, MOST_ITEMS) as u32
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
